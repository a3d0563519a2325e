// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/sessions.hpp"

#include "util/jitter.hpp"
#include "util/option_errors.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// What a server that is well needs for the end of a session is a write.
constexpr lease_clock::duration close_patience = 5s;
/// Once the time is over that whoever closes has given.
constexpr lease_clock::duration last_patience = 250ms;
/// Of nodes, in one turn.
constexpr int most_removed = 256;
/// Most outages are shorter than this, and need no probe. A shorter session is probed within its time, too.
constexpr lease_clock::duration longest_first_probe_delay = 5s;

lease_clock::duration first_probe_delay(const session_life& life)
{
    return std::min<lease_clock::duration>(life.counted_timeout() / 3, longest_first_probe_delay);
}

} // namespace

/// Of one session; deaf once that is another's turn.
class sessions::listener final : public session_events
{
public:
    listener(std::shared_ptr<sessions> all, remote::connection_number of) : all_(all), number_(of) {}

    void on_connected() noexcept override
    {
        hear([](sessions& all) {
            all.silent_since_.reset();
            all.end_probe();
            all.note_timeout();
            all.warn_of_short();
            all.remove_lost();
            // An event may have passed meanwhile.
            all.watches_.begin_round();
            all.opened();
        });
    }
    void on_suspended() noexcept override
    {
        hear([](sessions& all) {
            all.set_problem(make_failure(errc::unavailable, "the connection was lost", asio::error::connection_reset));
            all.silent_since_ = lease_clock::now();
            all.on(event::lost, asio::error::connection_reset);
            if (all.client_)
                all.probe_history_in(first_probe_delay(all.client_->life()));
        });
    }
    void on_unreachable(const trouble& why) noexcept override
    {
        hear([&why](sessions& all) { all.fail_to_connect(make_failure(errc::unavailable, why.text, why.cause)); });
    }
    void on_outlived() noexcept override
    {
        hear([](sessions& all) {
            all.inside_.lose();
            all.remove_lost();
            // Whoever was first while nothing was certain waits for news of the session.
            static_cast<void>(all.watches_.changed({}));
        });
    }
    void on_expired() noexcept override
    {
        hear([](sessions& all) { all.expired(); });
    }
    void on_denied() noexcept override
    {
        hear([](sessions& all) { all.denied(); });
    }
    void on_changed(std::string_view path) noexcept override
    {
        hear([path](sessions& all) {
            auto* const by = all.watches_.changed(path) ? all.ask() : nullptr;
            // The remaining watches are set when a waiter comes, or in the next turn of the timer.
            if (by)
                static_cast<void>(all.watches_.ask_some(*by, all.number_));
        });
    }
    void on_log(std::string_view) noexcept override {}

private:
    template <class Then>
    void hear(Then then) noexcept
    {
        if (const auto all = all_.lock(); all && all->client_ && all->number_ == number_)
            then(*all);
    }

    const std::weak_ptr<sessions> all_;
    const remote::connection_number number_;
};

sessions::sessions(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
    remote::event_reporter& told, watches& watched)
    : connection_loop(strand, owner, told, saturating_cast(config.idle_timeout)), strand_(strand), config_(config),
      watches_(watched), probe_timer_(strand), smallest_timeout_(config.session.smallest_timeout)
{
}

requests* sessions::ask() noexcept
{
    return client_ && client_->connected() && plan().takes_requests() ? &client_->ask() : nullptr;
}

void sessions::begin_asking() noexcept
{
    note_use();
    client_->begin_asking();
}

void sessions::send()
{
    if (client_)
        client_->send();
}

std::int64_t sessions::id() const noexcept
{
    return client_ ? client_->life().id() : 0;
}

std::shared_ptr<session_bound> sessions::bound() const noexcept
{
    return client_ ? client_->life().bound() : nullptr;
}

bool sessions::in_use() const noexcept
{
    if (!inside_.any() || plan().retired())
        return false;
    // Handles of locks that are lost may outlive a shutdown, after which nobody gives anything back.
    const auto lives_in = bound();
    return !plan().closes() || !lives_in || !lives_in->has_ended(lease_clock::now());
}

void sessions::connect()
{
    if (client_)
        return;
    if (!silent_since_)
        silent_since_ = lease_clock::now();
    ++number_;
    inside_.clear();
    listener_ = std::make_shared<listener>(owner_.keep(*this), number_);
    auto session_config = config_.session;
    session_config.smallest_timeout = smallest_timeout_;
    client_ = session::make(strand_, std::move(session_config), listener_);
    client_->start();
}

/// Whoever held those has been told that they are lost; and yet they stand in the way of everybody, those first who ask
/// us now.
void sessions::remove_lost()
{
    for (int room = most_removed; inside_.any_lost() && client_->connected(); --room) {
        if (room > 1) {
            client_->ask().remove(inside_.take_lost(), replied());
            continue;
        }
        // The more are unanswered, the longer it takes to tell all of them that the connection has ended.
        client_->ask().remove(inside_.take_lost(), [self = owner_.keep(*this), of = number_](const reply&) {
            if (self->client_ && self->number_ == of)
                self->remove_lost();
        });
        return;
    }
}

void sessions::note_timeout()
{
    const auto counted = client_->life().counted_timeout();
    if (smallest_timeout_ && counted < *smallest_timeout_)
        reports_.warn_once("a server grants sessions of " + colock::detail::in_words(counted) + ", less than the " +
                           colock::detail::in_words(*smallest_timeout_) +
                           " that leases counted on: locks of a session that is shortened are lost, and leases count "
                           "on the smaller timeout from now on; give all servers the same maxSessionTimeout, or the "
                           "smallest of them as smallest_session_timeout");
    smallest_timeout_ = counted;
}

void sessions::warn_of_short()
{
    if (client_->life().is_short())
        reports_.warn_once("leases count on sessions of " +
                           colock::detail::in_words(client_->life().counted_timeout()) +
                           ", less than four of its ticks: leases last for a part of that only; give a longer "
                           "session_timeout, or the servers' tickTime as server_tick if it is shorter than assumed");
}

void sessions::expired()
{
    go_on_in_another(make_failure(errc::unavailable, "the session has expired"));
}

void sessions::go_on_in_another(failure_ptr why)
{
    end_probe();
    client_ = nullptr;
    inside_.clear();
    set_problem(std::move(why));
    switch (plan().current()) {
    case plan_type::phase::connecting:
        connect();
        return;
    case plan_type::phase::waiting:
        // A server has just answered.
        end_back_off();
        return;
    case plan_type::phase::open:
        on(event::lost, asio::error::connection_reset);
        return;
    case plan_type::phase::idle:
    case plan_type::phase::ending:
        return;
    }
}

// A server refuses a session that has seen later transactions than the server has. If the ensemble was restored from a
// backup, or has lost its data, all of its servers do, and the session would never end: not even its expiry is told.

void sessions::probe_history_in(lease_clock::duration delay)
{
    // All clients of an ensemble are cut off at the same time.
    probe_timer_.expires_after(colock::detail::spread(delay, 0.25));
    probe_timer_.async_wait([self = owner_.keep(*this), delay, of = number_](const error_code& code) {
        if (!code && self->number_ == of)
            self->probe_history(delay);
    });
}

void sessions::probe_history(lease_clock::duration delay)
{
    if (!client_ || client_->connected() || probe_)
        return;
    auto done = [all = std::weak_ptr(owner_.keep(*this)), delay](std::int64_t written_in) {
        if (const auto self = all.lock())
            self->history_probed(written_in, delay);
    };
    probe_ = history_probe::start(strand_, config_.session, std::move(done));
}

void sessions::history_probed(std::int64_t written_in, lease_clock::duration delay)
{
    end_probe();
    if (!client_ || client_->connected())
        return;
    if (written_in != 0 && written_in <= client_->life().newest_transaction()) {
        history_lost(written_in);
        return;
    }
    // The delay is spread by a quarter, and may not exceed the timeout.
    probe_history_in(std::min<lease_clock::duration>(2 * delay, client_->life().counted_timeout() * 3 / 4));
}

void sessions::end_probe()
{
    probe_timer_.cancel();
    if (const auto old = std::exchange(probe_, nullptr))
        close_at_server(old->stop(), 0);
}

void sessions::history_lost(std::int64_t written_in)
{
    const auto old = client_;
    const auto why = "the servers have lost their history: transaction " +
                     std::to_string(old->life().newest_transaction()) + " was seen, and a new one has the number " +
                     std::to_string(written_in) + "; the session is given up, and its locks are lost";
    reports_.warn_once(why);
    // What was sent in the session may still arrive where an older history has it.
    lost_.add(number_, {.id = old->life().id()});
    folders_ = {};
    old->abandon();
    go_on_in_another(make_failure(errc::unavailable, why));
}

bool sessions::is_out_of_reach() const noexcept
{
    // A server may have granted more than was asked for.
    const auto granted = client_ ? client_->life().timeout() : config_.session.session_timeout;
    return silent_since_ && lease_clock::now() - *silent_since_ >= std::max(granted, config_.session.session_timeout);
}

void sessions::leave_to_expire()
{
    if (!client_ || client_->life().id() == 0)
        return;
    const auto old = client_;
    lost_.add(number_, {.id = old->life().id()});
    old->abandon();
    go_on_in_another(problem());
}

void sessions::denied()
{
    plan().demote();
    refuse(make_failure(
        errc::access_denied, "the server refuses the user, or does not let it write below " + config_.chroot()));
}

void sessions::disconnect()
{
    end_probe();
    const auto old = std::exchange(client_, nullptr);
    if (!old)
        return;
    inside_.clear();
    lost_.add(number_, {.id = old->life().id()});
    close_at_server(old, number_);
}

void sessions::close_at_server(const std::shared_ptr<session>& old, remote::connection_number number)
{
    closing_.push_back(old);
    const auto patience = plan().out_of_time(lease_clock::now()) ? last_patience : close_patience;
    old->close(patience, [self = owner_.keep(*this), which = old.get(), number](bool proven) {
        std::erase_if(self->closing_, [which](const auto& each) { return each.get() == which; });
        if (proven)
            self->lost_.closed_by_server(number);
        self->owner_.arm_turn();
        self->owner_.finish_close();
    });
}

void sessions::give_up()
{
    // They have been asked, and what answers them can only be late.
    for (const auto& each : std::vector(closing_))
        each->abandon();
    if (plan().open())
        on(event::given_up);
}

void sessions::forked()
{
    lost_.inherit(number_);
    client_ = nullptr;
    probe_ = nullptr;
    probe_timer_.cancel();
    inside_.clear();
    on(event::forked);
}

} // namespace colock::zookeeper::detail
