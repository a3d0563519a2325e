// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_manager.hpp"

#include "util/jitter.hpp"
#include "util/option_errors.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Maximum duration of the close of a session, which costs the server one write.
constexpr lease_clock::duration close_timeout = 5s;
/// Maximum duration of the close of a session once the deadline for the close of the client has passed.
constexpr lease_clock::duration late_close_timeout = 250ms;
/// Maximum number of nodes that are removed in one event-loop iteration.
constexpr int max_removed = 256;
/// Maximum delay of the first probe. Most outages are shorter, and need no probe. A session with a short timeout is
/// probed before it expires.
constexpr lease_clock::duration max_first_probe_delay = 5s;

lease_clock::duration first_probe_delay(const session_life& life)
{
    return std::min<lease_clock::duration>(life.counted_timeout() / 3, max_first_probe_delay);
}

} // namespace

/// Forwards the events of one session. Events are ignored once a newer session has replaced it.
class session_manager::listener final : public session_events
{
public:
    listener(std::shared_ptr<session_manager> all, remote::connection_number number) : all_(all), number_(number) {}

    void on_connected() noexcept override
    {
        forward([](session_manager& all) {
            all.unreachable_since_.reset();
            all.plan().note_accepted();
            all.end_probe();
            all.note_timeout();
            all.warn_of_few_ticks();
            all.remove_lost_nodes();
            // Events may have been missed while the session was disconnected.
            all.watches_.begin_round();
            all.opened();
        });
    }
    void on_suspended() noexcept override
    {
        forward([](session_manager& all) {
            all.set_problem(make_failure(errc::unavailable, "the connection was lost", asio::error::connection_reset));
            all.unreachable_since_ = lease_clock::now();
            all.handle(event::lost, asio::error::connection_reset);
            if (all.session_)
                all.probe_history_in(first_probe_delay(all.session_->life()));
        });
    }
    void on_unreachable(const connection_failure& failure) noexcept override
    {
        forward([&failure](session_manager& all) {
            all.fail_to_connect(make_failure(errc::unavailable, failure.text, failure.cause));
        });
    }
    void on_lease_ended() noexcept override
    {
        forward([](session_manager& all) {
            all.users_.mark_lost();
            all.remove_lost_nodes();
            // A claim that became the first while the session_lease had ended waits for an event of the session.
            static_cast<void>(all.watches_.changed({}));
        });
    }
    void on_expired() noexcept override
    {
        forward([](session_manager& all) { all.on_session_expired(); });
    }
    void on_history_lost() noexcept override
    {
        forward([](session_manager& all) { all.on_history_lost(); });
    }
    void on_denied() noexcept override
    {
        forward([](session_manager& all) { all.on_user_denied(); });
    }
    void on_changed(std::string_view path) noexcept override
    {
        forward([path](session_manager& all) {
            auto* const sender = all.watches_.changed(path) ? all.get_requests() : nullptr;
            // The remaining watches are set when a new waiter comes, or when the client's timer fires.
            if (sender)
                static_cast<void>(all.watches_.set_some(*sender, all.number_));
        });
    }
    void on_log(std::string_view) noexcept override {}

private:
    template <class Then>
    void forward(Then then) noexcept
    {
        if (const auto all = all_.lock(); all && all->session_ && all->number_ == number_)
            then(*all);
    }

    const std::weak_ptr<session_manager> all_;
    const remote::connection_number number_;
};

session_manager::session_manager(const asio::any_io_executor& strand, remote::client_base& owner,
    const settings& config, remote::event_reporter& reporter, watches& all_watches)
    : connection_loop(strand, owner, reporter, saturating_cast(config.idle_timeout)), strand_(strand), config_(config),
      watches_(all_watches), probe_timer_(strand), smallest_timeout_(config.session.smallest_timeout)
{
}

requests* session_manager::get_requests() noexcept
{
    return session_ && session_->connected() && plan().takes_requests() ? &session_->get_requests() : nullptr;
}

void session_manager::announce_requests() noexcept
{
    note_use();
    session_->announce_requests();
}

void session_manager::send()
{
    if (session_)
        session_->send();
}

void session_manager::forget_old_lists() noexcept
{
    if (session_)
        session_->get_requests().forget_old_lists();
}

std::int64_t session_manager::id() const noexcept
{
    return session_ ? session_->life().id() : 0;
}

std::shared_ptr<session_lease> session_manager::lease() const noexcept
{
    return session_ ? session_->life().lease() : nullptr;
}

void session_manager::note_granted(const std::string& node, claim_ptr holder)
{
    users_.note_granted(node);
    if (session_)
        session_->note_granted(node, std::move(holder));
}

void session_manager::note_created(const std::string& node)
{
    if (session_)
        session_->note_created(node);
}

void session_manager::note_removed(const std::string& node)
{
    users_.forget_granted(node);
    if (session_)
        session_->note_removed(node);
}

bool session_manager::in_use() const noexcept
{
    if (!users_.is_used() || plan().retired())
        return false;
    // Lock objects may outlive a shutdown, although their locks are lost. Nothing is released after the shutdown.
    const auto current_lease = lease();
    return !plan().closes() || !current_lease || !current_lease->has_ended(lease_clock::now());
}

void session_manager::connect()
{
    if (session_)
        return;
    if (!unreachable_since_)
        unreachable_since_ = lease_clock::now();
    ++number_;
    users_.clear();
    listener_ = std::make_shared<listener>(owner_.keep(*this), number_);
    auto session_config = config_.session;
    session_config.smallest_timeout = smallest_timeout_;
    session_ = session::make(strand_, std::move(session_config), listener_);
    session_->start();
}

/// Removes the nodes of lost locks. Their holders have been notified, but the nodes still block other claims, such as
/// those of this client.
void session_manager::remove_lost_nodes()
{
    for (int remaining = max_removed; users_.has_lost() && session_->connected(); --remaining) {
        if (remaining > 1) {
            session_->get_requests().remove(users_.take_lost(), reply_handler());
            continue;
        }
        // The rest is removed after this reply: the more requests are unanswered, the longer it takes to complete all
        // of them when the connection ends.
        session_->get_requests().remove(
            users_.take_lost(), [self = owner_.keep(*this), number = number_](const reply&) {
                if (self->session_ && self->number_ == number)
                    self->remove_lost_nodes();
            });
        return;
    }
}

void session_manager::note_timeout()
{
    const auto counted = session_->life().counted_timeout();
    if (smallest_timeout_ && counted < *smallest_timeout_)
        reports_.warn("a server grants sessions of " + colock::detail::in_words(counted) + ", less than the " +
                      colock::detail::in_words(*smallest_timeout_) +
                      " that leases counted on: locks of a session that is shortened are lost, and leases count "
                      "on the smaller timeout from now on; give all servers the same maxSessionTimeout, or the "
                      "smallest of them as smallest_session_timeout");
    smallest_timeout_ = counted;
}

void session_manager::warn_of_few_ticks()
{
    if (session_->life().has_few_ticks())
        reports_.warn(
            "leases count on sessions of " + colock::detail::in_words(session_->life().counted_timeout()) +
            ", less than four of the server's ticks, so leases last only for a part of this time; give a longer "
            "session_timeout, or the servers' tickTime as server_tick if it is shorter than assumed");
}

void session_manager::on_session_expired()
{
    replace_session(make_failure(errc::unavailable, "the session has expired"));
}

void session_manager::replace_session(failure_ptr failure)
{
    end_probe();
    // A session without a lease was never verified.
    const bool was_verified = session_ && session_->life().lease();
    session_ = nullptr;
    users_.clear();
    set_problem(std::move(failure));
    switch (plan().current()) {
    case plan_type::phase::connecting:
        if (was_verified)
            connect();
        else
            handle(event::failed);
        return;
    case plan_type::phase::waiting:
        // A server has just answered.
        if (was_verified)
            end_back_off();
        return;
    case plan_type::phase::open:
        handle(event::lost, asio::error::connection_reset);
        return;
    case plan_type::phase::idle:
    case plan_type::phase::draining:
        return;
    }
}

// A server refuses a session that has seen later transactions than the server has. If the ensemble was restored from a
// backup, or has lost its data, all of its servers refuse the session. The session would never end, because not even
// its expiry would be reported.

void session_manager::probe_history_in(lease_clock::duration delay)
{
    // Randomized, because all clients of an ensemble are disconnected at the same time.
    probe_timer_.expires_after(colock::detail::spread(delay, 0.25));
    probe_timer_.async_wait([self = owner_.keep(*this), delay, number = number_](const error_code& error) {
        if (!error && self->number_ == number)
            self->probe_history(delay);
    });
}

void session_manager::probe_history(lease_clock::duration delay)
{
    if (!session_ || session_->connected() || probe_)
        return;
    auto done = [all = std::weak_ptr(owner_.keep(*this)), delay](std::int64_t written_in) {
        if (const auto self = all.lock())
            self->on_history_probed(written_in, delay);
    };
    probe_ = history_probe::start(strand_, config_.session, std::move(done));
}

void session_manager::on_history_probed(std::int64_t written_in, lease_clock::duration delay)
{
    end_probe();
    if (!session_ || session_->connected())
        return;
    if (written_in != 0 && written_in <= session_->life().newest_transaction()) {
        on_history_refused(written_in);
        return;
    }
    // The delay is randomized by a quarter, and may not exceed the timeout.
    probe_history_in(std::min<lease_clock::duration>(2 * delay, session_->life().counted_timeout() * 3 / 4));
}

void session_manager::end_probe()
{
    probe_timer_.cancel();
    if (const auto old = std::exchange(probe_, nullptr))
        close_at_server(old->stop(), 0);
}

void session_manager::on_history_refused(std::int64_t written_in)
{
    const auto old = session_;
    const auto text = "the servers have lost their history: transaction " +
                      std::to_string(old->life().newest_transaction()) + " was seen, and a new one has the number " +
                      std::to_string(written_in) + "; the session is given up, and its locks are lost";
    reports_.warn(text);
    // Requests of the session may still arrive at a server with an older history, which contains the session.
    lost_.add(number_, {.id = old->life().id()});
    folders_ = {};
    old->abandon();
    replace_session(make_failure(errc::unavailable, text));
}

/// The server's data are older than the session's last answered beat, or another client has removed the session's node.
void session_manager::on_history_lost()
{
    const std::string text = "the servers have lost the newest writes of the session: their data were replaced by an "
                             "older copy, or a node in " +
                             config_.chroot() + "/.s was removed; the session is closed, and its locks are lost";
    reports_.warn(text);
    const auto old = session_;
    lost_.add(number_, {.id = old->life().id()});
    folders_ = {};
    // The session is closed at the server, so that its nodes of the older copy do not block others.
    close_at_server(old, number_);
    replace_session(make_failure(errc::unavailable, text));
}

bool session_manager::is_presumed_expired() const noexcept
{
    // A server may have granted a longer timeout than was requested.
    const auto granted = session_ ? session_->life().timeout() : config_.session.session_timeout;
    return unreachable_since_ &&
           lease_clock::now() - *unreachable_since_ >= std::max(granted, config_.session.session_timeout);
}

void session_manager::leave_to_expire()
{
    if (!session_ || session_->life().id() == 0)
        return;
    const auto old = session_;
    lost_.add(number_, {.id = old->life().id()});
    old->abandon();
    replace_session(problem());
}

void session_manager::on_user_denied()
{
    plan().demote();
    refuse(make_failure(
        errc::access_denied, "the server refuses the user, or does not let it write below " + config_.chroot()));
}

void session_manager::disconnect()
{
    end_probe();
    const auto old = std::exchange(session_, nullptr);
    if (!old)
        return;
    users_.clear();
    lost_.add(number_, {.id = old->life().id()});
    close_at_server(old, number_);
}

void session_manager::close_at_server(const std::shared_ptr<session>& old, remote::connection_number number)
{
    closing_.push_back(old);
    const auto timeout = plan().out_of_time(lease_clock::now()) ? late_close_timeout : close_timeout;
    old->close(timeout, [self = owner_.keep(*this), session = old.get(), number](bool proven) {
        std::erase_if(self->closing_, [session](const auto& each) { return each.get() == session; });
        if (proven)
            self->lost_.on_closed_by_server(number);
        self->owner_.arm_timer();
        self->owner_.finish_close();
    });
}

void session_manager::give_up()
{
    // These sessions have been asked to close, and their replies would come too late.
    for (const auto& each : std::vector(closing_))
        each->abandon();
    if (plan().open())
        handle(event::given_up);
}

} // namespace colock::inline v0::zookeeper::detail
