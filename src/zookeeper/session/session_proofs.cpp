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

std::string session_folder(const location& where)
{
    return where.chroot + "/.s";
}

std::string session_node_path(const location& where, std::int64_t session)
{
    constexpr std::size_t digit_count = 16;
    std::string name(digit_count, '0');
    auto rest = static_cast<std::uint64_t>(session);
    for (auto at = name.rbegin(); at != name.rend(); ++at, rest >>= 4U)
        *at = "0123456789abcdef"[rest & 0xFU];
    return session_folder(where) + '/' + name;
}

} // namespace

void session::prove()
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
/// \param left number of requests that this beat may still send
void session::request_beat(bool writes, int left)
{
    unproven_.on_beat_sent();
    const auto path = session_node_path(settings_.where, life_.id());
    auto done = [self = shared_from_this(), left, of = connection_](const reply& got) {
        // A beat that was lost with its connection is replaced by one of the next connection.
        if (of == self->connection_)
            self->on_beat_answered(got, left - 1);
    };
    if (writes)
        requests_.write(path, {}, std::move(done));
    else
        requests_.create(path, {}, node_kind::ephemeral, std::move(done));
}

void session::on_beat_answered(const reply& got, int left)
{
    if (got.ok()) {
        own_node_.note_beat(got.stat);
        unproven_.on_beat_answered();
    } else if (got.what == status::no_node) {
        own_node_.note_removed();
        if (left > 0)
            return make_folder(session_folder(settings_.where), left);
    } else if (got.what == status::node_exists && left > 0) {
        // The reply to the creation was lost.
        return request_beat(true, left);
    } else if (got.what == status::access_denied) {
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
void session::make_folder(const std::string& path, int left)
{
    requests_.create(
        path, {}, node_kind::persistent, [self = shared_from_this(), path, left, of = connection_](const reply& got) {
            if (of != self->connection_)
                return;
            const auto parent = path.substr(0, path.rfind('/'));
            if (got.what == status::no_node && left > 1 && !parent.empty())
                return self->make_folder(parent, left - 1);
            if ((got.ok() || got.what == status::node_exists) && left > 1)
                return self->request_beat(false, left - 1);
            if (got.what == status::access_denied)
                return self->on_denied();
            self->end_beat();
        });
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
    const auto path = session_node_path(settings_.where, life_.id());
    // The server may lag behind its leader.
    requests_.sync(path, [self = shared_from_this()](const reply& got) {
        if (got.what == status::access_denied)
            self->on_denied();
    });
    requests_.exists(path, [self = shared_from_this(), of = connection_](const reply& found) {
        if (self->is_current_verification(found, of))
            self->on_own_node_found(found);
    });
}

/// Returns whether the verification continues with this reply. Otherwise the connection was lost meanwhile.
bool session::is_current_verification(const reply& found, unsigned of) const noexcept
{
    return of == connection_ && can_send() && (found.ok() || found.what == status::no_node);
}

void session::on_own_node_found(const reply& found)
{
    if (own_node_.has_lost_history(found)) {
        life_.end_lease();
        dispatcher_.add(session_event_dispatcher::event::history_lost);
        post_step();
        return;
    }
    // All replies of the previous connection have been delivered, and their changes were noted.
    unproven_.begin_verification();
    verifying_count_ = 0;
    verify_nodes();
}

void session::verify_nodes()
{
    unproven_.for_next(max_verifying, [this](const std::string& node) {
        ++verifying_count_;
        requests_.exists(node, [self = shared_from_this(), node, of = connection_](const reply& found) {
            if (self->is_current_verification(found, of))
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
        // The next beat proves the removal, so it must not be throttled.
        requests_.remove(node, [self = shared_from_this(), of = connection_](const reply& got) {
            if (of == self->connection_ && self->can_send() && got.what != status::unsent)
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
