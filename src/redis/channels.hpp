// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/adapter.hpp>
#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::redis::detail {

/// The event source of one key: a channel, and who waits on it.
///
/// Guarded by the mutex of its `channels`, except where said.
struct channel
{
    explicit channel(std::string given) : name(std::move(given)) {}

    struct waiter
    {
        const claim* who;
        completion<woken> done;
        lease_clock::time_point since;
    };
    const std::string name;
    /// Moves with every message, and with every new subscription: something may have changed since it was read.
    /// Read without the mutex.
    std::atomic<std::uint64_t> changes{1};
    std::vector<waiter> waiters{};
    std::size_t interested = 0;
    lease_clock::time_point unused_since{};
    /// Among those that are looked at again for being unused.
    bool lingers = false;
    /// In which round it was asked for, and in which that was confirmed.
    std::uint64_t asked = 0;
    std::uint64_t armed = 0;
    /// In the list of the idle, or of those that were asked for in this round.
    std::list<std::shared_ptr<channel>>::iterator place{};
};

/// Every channel that somebody is interested in, or was a moment ago. There may be a hundred thousand: nothing here
/// walks over all of them, and what may be due for many is given out in parts.
///
/// Thread safety: safe. No completion is called here.
class channels
{
public:
    using channel_ptr = std::shared_ptr<channel>;
    using completions = std::vector<completion<woken>>;

    /// One more is interested; with the changes that are known to it.
    [[nodiscard]] std::pair<channel_ptr, std::uint64_t> watch(const std::string& name);
    void leave(channel& watched, lease_clock::time_point now) noexcept;
    /// Keeps `done` until the changes have moved on from `seen`; false if they have already.
    [[nodiscard]] bool wait(const channel_ptr& watched, const claim& who, std::uint64_t seen, completion<woken>& done);
    void cancel_wait(const channel& watched, const claim& who) noexcept;

    [[nodiscard]] bool empty() const noexcept;
    /// Messages of that channel arrive.
    [[nodiscard]] bool armed(const std::string& name) const;

    /// Some that nobody has asked for in this round; they count as asked for now.
    [[nodiscard]] std::vector<channel_ptr> take_idle(std::size_t most);
    /// They are subscribed to, so that whoever waits has to look once more.
    [[nodiscard]] completions arm(const std::vector<channel_ptr>& asked);
    /// Whoever waits there.
    [[nodiscard]] completions wake(const std::vector<channel_ptr>& which);
    /// Of messages.
    [[nodiscard]] completions changed(const std::vector<std::string>& names);
    /// The connection is another one: a new round, in which all are idle.
    void begin_round() noexcept;

    struct unused
    {
        /// Of those, the ones that were asked for in this round.
        std::vector<std::string> subscribed{};
        /// More of them are due now.
        bool more = false;
    };
    /// Forgets some of what nobody has been interested in since `before`.
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
        channel_ptr which;
    };
    static void take_waiters(channel& changed, completions& into);
    void forget(channel& which);

    mutable colock::detail::light_mutex mutex_;
    /// By name. Not hashed: a table that grows moves all of it at once.
    std::map<std::string_view, channel_ptr> known_;
    std::list<channel_ptr> idle_;
    std::list<channel_ptr> asked_;
    std::uint64_t round_ = 1;
    /// In the order in which they are to be looked at.
    std::deque<dated> lingering_;
    bool polls_ = false;
    std::deque<dated> waits_;
};

} // namespace colock::redis::detail
