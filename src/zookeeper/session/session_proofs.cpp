// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The beats of a session, and the verification of a session that was resumed.
#include "zookeeper/session/session.hpp"
#include "zookeeper/session/session_runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Number of nodes that may be granted or removed before the next beat is sent early. So few nodes have to be verified
/// after the session was resumed.
constexpr std::size_t max_unproven = 1000;
/// Maximum number of nodes whose verification is in flight.
constexpr std::size_t max_verifying = 1000;
/// Maximum number of requests of one beat, including those that create folders.
constexpr int max_beat_requests = 32;

std::string session_folder(const location& target)
{
    return target.chroot + "/.s";
}

std::string session_node_path(const location& target, std::int64_t session)
{
    constexpr std::size_t digit_count = 16;
    std::string name(digit_count, '0');
    auto rest = static_cast<std::uint64_t>(session);
    for (auto at = name.rbegin(); at != name.rend(); ++at, rest >>= 4U)
        *at = "0123456789abcdef"[rest & 0xFU];
    return session_folder(target) + '/' + name;
}

} // namespace

void session::verify_or_send_beat()
{
    if (life_.is_unverified() && is_resumed_)
        verify();
    else
        send_beat();
}

// Beats.

/// Sends a beat: a write to the session's own node, which also checks that the user may write below the chroot.
void session::send_beat()
{
    request_beat(own_node_.exists(), max_beat_requests);
}

/// Writes or creates the session's own node.
/// \param requests_left number of requests that this beat may still send
void session::request_beat(bool writes, int requests_left)
{
    unproven_.on_beat_sent();
    const auto path = session_node_path(settings_.target, life_.id());
    auto done = [self = shared_from_this(), requests_left, connection = connection_](const reply& reply) {
        // A beat that was lost with its connection is replaced by one of the next connection.
        if (connection == self->connection_)
            self->on_beat_answered(reply, requests_left - 1);
    };
    if (writes)
        requests_.write(path, {}, std::move(done));
    else
        requests_.create(path, {}, node_kind::ephemeral, std::move(done));
}

void session::on_beat_answered(const reply& reply, int requests_left)
{
    const bool shows_node = reply.ok() || reply.outcome == status::no_node;
    if (shows_node && own_node_.has_lost_history(reply))
        return on_history_lost();
    if (reply.ok()) {
        own_node_.note_beat(reply.stat);
        unproven_.on_beat_answered();
    } else if (reply.outcome == status::no_node && requests_left > 0) {
        return make_folder(session_folder(settings_.target), requests_left);
    } else if (reply.outcome == status::node_exists && requests_left > 0) {
        // The reply to the creation was lost.
        return request_beat(true, requests_left);
    } else if (reply.outcome == status::access_denied) {
        return on_denied();
    }
    end_beat();
}

/// Any answer but a denial shows that the server accepts the user.
void session::end_beat()
{
    life_.get_heartbeat().on_beat_ended(lease_clock::now());
    if (life_.is_unverified() && can_send())
        on_verified();
}

/// Creates a folder that may be missing, or else its parent, and then creates the session's own node. The requests are
/// sent one by one, because a server that throttles may carry out only the first of several.
void session::make_folder(const std::string& path, int requests_left)
{
    requests_.create(path, {}, node_kind::persistent,
        [self = shared_from_this(), path, requests_left, connection = connection_](const reply& reply) {
            if (connection != self->connection_)
                return;
            const auto parent = path.substr(0, path.rfind('/'));
            if (reply.outcome == status::no_node && requests_left > 1 && !parent.empty())
                return self->make_folder(parent, requests_left - 1);
            if ((reply.ok() || reply.outcome == status::node_exists) && requests_left > 1)
                return self->request_beat(false, requests_left - 1);
            if (reply.outcome == status::access_denied)
                return self->on_denied();
            self->end_beat();
        });
}

/// Neither the beats nor the verification continue: the owner closes the session.
void session::on_history_lost()
{
    life_.end_lease();
    dispatcher_.add(session_event_dispatcher::event::history_lost);
    if (runtime_)
        post_step();
}

void session::on_denied()
{
    life_.get_heartbeat().on_beat_ended(lease_clock::now());
    dispatcher_.add(session_event_dispatcher::event::denied);
    if (runtime_)
        post_step();
}

// Changes since the last beat.

void session::note_granted(const std::string& node, claim_ptr holder)
{
    unproven_.note_granted(node, std::move(holder));
    limit_unproven();
}

void session::note_removed(const std::string& node)
{
    unproven_.note_removed(node);
    limit_unproven();
}

void session::limit_unproven()
{
    if (unproven_.count_after_beat() >= max_unproven && connected() && life_.get_heartbeat().begin_early_beat())
        send_beat();
}

// Verification.

void session::verify()
{
    const auto path = session_node_path(settings_.target, life_.id());
    // The server may lag behind its leader. The requests are sent one by one, because a server that throttles may carry
    // out only the first of several.
    requests_.sync(path, [self = shared_from_this(), path, number = ++verification_](const reply& synced) {
        if (synced.outcome == status::access_denied)
            return self->on_denied();
        if (!self->continues_verification(synced, number))
            return;
        self->requests_.exists(path, [self, number](const reply& found) {
            if (self->continues_verification(found, number))
                self->on_own_node_found(found);
        });
    });
}

/// Returns whether verification `number` continues with this reply. If the server has not carried out the request, the
/// verification begins again with the next check of the heartbeat.
bool session::continues_verification(const reply& reply, unsigned number)
{
    if (number != verification_ || !can_send())
        return false;
    if (reply.ok() || reply.outcome == status::no_node)
        return true;
    ++verification_;
    is_throttled_ = true;
    life_.get_heartbeat().on_beat_refused();
    return false;
}

void session::on_own_node_found(const reply& found)
{
    if (own_node_.has_lost_history(found))
        return on_history_lost();
    // All replies of the previous connection have been delivered, and their changes were noted.
    unproven_.begin_verification();
    verifying_count_ = 0;
    verify_nodes();
}

void session::verify_nodes()
{
    unproven_.for_next(is_throttled_ ? 1 : max_verifying, [this](const std::string& node) {
        ++verifying_count_;
        requests_.exists(node, [self = shared_from_this(), node, number = verification_](const reply& found) {
            if (self->continues_verification(found, number))
                self->on_node_found(node, found);
        });
    });
    if (verifying_count_ > 0)
        return;
    // A session without a node of its own is verified by the beat that creates the node.
    if (own_node_.exists())
        on_verified();
    send_beat();
}

void session::on_verified()
{
    if (!life_.note_verified())
        dispatcher_.add(session_event_dispatcher::event::lease_ended);
    dispatcher_.add(session_event_dispatcher::event::connected);
    post_step();
}

void session::on_node_found(const std::string& node, const reply& found)
{
    const auto holder = unproven_.holder_of(node);
    if (!holder && found.ok()) {
        // The next beat would count the node as removed.
        requests_.remove(node, [self = shared_from_this(), number = verification_](const reply& reply) {
            // A node that cannot be removed is left, because no other attempt would succeed.
            const bool is_carried_out = reply.outcome < status::unsent && number == self->verification_;
            if (is_carried_out || self->continues_verification(reply, number))
                self->end_node_verification();
        });
        return;
    }
    if (holder && (!found.ok() || found.stat.ephemeral_owner != life_.id()))
        holder->lost(lost_reason::taken);
    end_node_verification();
}

void session::end_node_verification()
{
    if (--verifying_count_ == 0)
        verify_nodes();
}

} // namespace colock::inline v0::zookeeper::detail
