// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/lost_requests.hpp"

#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>
#include <colock/spi/adapter.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::remote {

/// Where the events of one key come from (a channel, a watch, a change stream), and who waits for them.
///
/// Guarded by the mutex of its `wait_sources`, except where said.
struct wait_source
{
    explicit wait_source(std::string given) : name(std::move(given)) {}

    struct waiter
    {
        const claim* who;
        completion<woken> done;
        lease_clock::time_point since;
        connection_number looked_in;
    };
    const std::string name;
    /// Moves with every event, and whenever it is armed anew: something may have changed since it was read.
    /// Read without the mutex.
    std::atomic<std::uint64_t> changes{1};
    std::vector<waiter> waiters{};
    std::size_t interested = 0;
    lease_clock::time_point unused_since{};
    /// Among those that are looked at again for being unused.
    bool lingers = false;
    /// In which round the server was asked for its events, and in which that was confirmed.
    std::uint64_t asked = 0;
    std::uint64_t armed = 0;
    /// The last move of the changes, if it was no news to whoever had looked in that connection or session.
    std::uint64_t confirmed = 0;
    connection_number confirmed_in = 0;
    /// Revision of the key that the server reported when its events were last asked for; 0: none.
    std::uint64_t revision = 0;
    /// In the list of the idle, or of those that were asked for in this round.
    std::list<std::shared_ptr<wait_source>>::iterator place{};
    /// Among all that are known; if it is, still.
    std::map<std::string_view, std::shared_ptr<wait_source>>::iterator entry{};
    bool known = false;
};

/// Every event source that somebody is interested in, or was a moment ago: which of them the server has to be asked for
/// or need be no longer, and whose wait ends. There may be a hundred thousand: nothing here walks over all of them, and
/// what may be due for many is given out in parts.
///
/// Whoever waits looks again after the events have begun to arrive: what happened before that told nobody. Where events
/// cannot be had, a wait ends by its age.
///
/// Does no I/O and reads no clock. Thread safety: safe. No completion is called here.
class wait_sources
{
public:
    using source_ptr = std::shared_ptr<wait_source>;
    using completions = std::vector<completion<woken>>;

    /// One more is interested; with the changes that are known to it.
    [[nodiscard]] std::pair<source_ptr, std::uint64_t> watch(const std::string& name);
    void leave(wait_source& watched, lease_clock::time_point now) noexcept;
    /// Keeps `done` until the changes have moved on from `seen`; false if they have already.
    /// \param looked_in in which connection or session it was looked at; 0: in none in particular
    [[nodiscard]] bool wait(const source_ptr& watched, const claim& who, std::uint64_t seen,
        lease_clock::time_point now, connection_number looked_in, completion<woken>& done);
    /// False if there was none to be cancelled.
    bool cancel_wait(const wait_source& watched, const claim& who) noexcept;
    /// Returns whether its events arrive.
    [[nodiscard]] bool is_armed(const wait_source& watched) const noexcept;
    /// Returns what `arm_for` was told last; 0: nothing, or its events do not arrive now.
    [[nodiscard]] std::uint64_t revision(const wait_source& watched) const noexcept;

    [[nodiscard]] bool empty() const noexcept;
    /// Events of that key arrive.
    [[nodiscard]] bool armed(const std::string& name) const;

    /// Some that nobody has asked for in this round; they count as asked for now.
    [[nodiscard]] std::vector<source_ptr> take_idle(std::size_t most);
    /// Their events arrive from now on, so that whoever waits has to look once more.
    [[nodiscard]] completions arm(const std::vector<source_ptr>& asked);
    /// The same where the server has told that it still is as whoever has looked in that connection or session has seen
    /// it: only others look once more.
    [[nodiscard]] completions arm_unchanged(const source_ptr& asked, connection_number seen_in);
    /// The same where the server has told the state of the key: of the waiters that had looked in that connection or
    /// session, only those look once more for which `concerns` returns true. Waiters that come later look once more,
    /// too.
    [[nodiscard]] completions arm_for(const source_ptr& asked, connection_number seen_in, std::uint64_t revision,
        const std::function<bool(const claim&)>& concerns);
    /// Whoever waits there.
    [[nodiscard]] completions wake(const std::vector<source_ptr>& which);
    /// Whoever waits for events of those.
    [[nodiscard]] completions changed(const std::vector<std::string>& names);
    /// The same, and nothing more arrives for those until the server is asked again: its events come once.
    [[nodiscard]] completions disarmed(const std::vector<std::string>& names);
    /// The same, but waiters go on waiting for what the server tells when it is asked again. Returns whether anybody is
    /// interested in its events.
    [[nodiscard]] bool lapse(const std::string& name);
    /// The connection is another one: a new round, in which all are idle.
    void begin_round() noexcept;

    struct unused
    {
        /// Of those, the ones that were asked for in this round: their events need not arrive any more.
        std::vector<std::string> asked{};
        /// More of them are due now.
        bool more = false;
    };
    /// Forgets some of what nobody has been interested in for that long.
    [[nodiscard]] unused forget_unused(lease_clock::time_point now, lease_clock::duration linger, std::size_t most);

    /// From now on every wait is known by its age, or no longer.
    void poll(bool on);
    /// Some who have waited since `before` or longer.
    [[nodiscard]] completions take_due(lease_clock::time_point before, std::size_t most);

    /// All waits, never to be called; and nothing is known any more.
    [[nodiscard]] completions drop_all() noexcept;

private:
    struct dated
    {
        lease_clock::time_point since;
        source_ptr which;
    };
    static void take_waiters(wait_source& changed, completions& into);
    void disarm(wait_source& which);
    void forget(wait_source& which);

    mutable colock::detail::light_mutex mutex_;
    /// By name. Not hashed: a table that grows moves all of it at once.
    std::map<std::string_view, source_ptr> known_;
    std::list<source_ptr> idle_;
    std::list<source_ptr> asked_;
    std::uint64_t round_ = 1;
    /// In the order in which they are to be looked at.
    std::deque<dated> lingering_;
    bool polls_ = false;
    std::deque<dated> waits_;
};

/// Ends these waits.
inline void wake_all(wait_sources::completions ended)
{
    for (auto& each : ended)
        each(woken{});
}

/// Lasts as long as the object.
class interest
{
public:
    /// \param of kept for as long
    interest(std::shared_ptr<wait_sources> of, const std::string& name);
    interest(interest&&) noexcept = default;
    interest& operator=(interest&&) = delete;
    ~interest();

    /// Whatever has changed until now is known.
    void look() noexcept { seen_ = watched_->changes.load(std::memory_order_acquire); }
    /// False if something has changed since; then `done` is left as it is.
    [[nodiscard]] bool wait(const claim& who, completion<woken>& done, connection_number looked_in = 0);
    /// False if there was none to be cancelled: an event has ended it.
    bool cancel_wait(const claim& who) const noexcept { return of_->cancel_wait(*watched_, who); }
    [[nodiscard]] bool is_armed() const noexcept { return of_->is_armed(*watched_); }
    [[nodiscard]] std::uint64_t revision() const noexcept { return of_->revision(*watched_); }

private:
    std::shared_ptr<wait_sources> of_;
    std::shared_ptr<wait_source> watched_;
    std::uint64_t seen_ = 0;
};

} // namespace colock::remote
