// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "simulation/plan.hpp"
#include "simulation/world.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::simulation {

using namespace std::chrono_literals;

/// The time after which the traces of the storm are cleaned up, and waiters are served within their bounds.
inline constexpr auto settling_time = 14s;
/// Slack of each deadline: delays of timers and of several hops.
inline constexpr lease_clock::duration slack = 300ms;
inline constexpr milliseconds stop_margin{300};

struct locker_state;

/// One call of a function of the library.
struct call
{
    std::uint64_t id;
    std::shared_ptr<locker_state> state;
    const char* name;
    process* on;
    unsigned locker_number;
    time_point started;
    lease_clock::duration blocked_before;
    /// When the call has to be completed; max for an acquire without a limit.
    time_point bound = time_point::max();
    asio::cancellation_signal signal{};
    bool accepts_all = false;
    std::optional<time_point> cancelled_at{};
    bool has_ended = false;
    /// Whether the call acquires one lock or several.
    bool acquires = false;
    bool is_finite = false;
    bool is_group = false;
    bool runs_body = false;
    /// For an acquire of several locks: how often a later call of the same locker was granted the first key before it.
    unsigned overtaken = 0;
    std::string key{};
    lock_mode mode = lock_mode::exclusive;
};

/// When a body last observed a cancellation, and since when there were reasons for one. A reason that applies to
/// several locks cancels the body once.
struct body_state
{
    time_point cancelled{};
    std::optional<time_point> margin_reached{};
    std::optional<time_point> was_lost{};
    std::optional<time_point> caller_cancelled{};
};

/// A lock that the program believes to hold, until this object is destroyed.
struct tracked_lock
{
    /// Id of the call that acquired the lock.
    std::uint64_t by;
    const lock* handle;
    process* on;
    std::shared_ptr<locker_state> state;
    std::string key;
    lock_mode mode;
    std::size_t max_holders;
    colock::token token;
    std::uint64_t fence;
    time_point received;
    lease_clock::duration blocked_before;
    /// Another program may have broken the lock.
    bool is_exempt = false;
    /// The body that this lock protects; null if there is none.
    std::shared_ptr<body_state> body{};
};

/// A handle of the program, with the locks that it contains.
struct owned
{
    lock single;
    lock_group group;
    std::list<std::shared_ptr<tracked_lock>> tracked{};
    process* on;
    unsigned locker_number;
    /// An operation on a group is in progress, so the group must not be touched.
    bool is_busy = false;
    /// A coroutine waits for the loss of the locks, and refers to the handle.
    bool is_awaited = false;
};

/// Counts the events of one locker.
struct event_counter final : observer
{
    std::uint64_t granted_count = 0, not_granted_count = 0, released_count = 0, lost_count = 0, settled_count = 0;
    /// Called with the key of a lost lock, or with an empty string.
    std::function<void(std::string_view)> on_event;

    void count(std::uint64_t& counter)
    {
        ++counter;
        on_event({});
    }
    void waiting(std::string_view) noexcept override { on_event({}); }
    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override { count(granted_count); }
    void not_granted(std::string_view, const error_code&, std::chrono::nanoseconds) noexcept override
    {
        count(not_granted_count);
    }
    void renewed(std::string_view, std::chrono::nanoseconds) noexcept override { on_event({}); }
    void lost(std::string_view key, lost_reason, std::chrono::nanoseconds) noexcept override
    {
        ++lost_count;
        on_event(key);
    }
    void released(std::string_view, std::chrono::nanoseconds) noexcept override { count(released_count); }
    void settled(std::string_view, bool) noexcept override { count(settled_count); }
};

struct locker_state
{
    std::shared_ptr<event_counter> events;
    /// Whether the locker was shut down or dropped, so that its calls end.
    bool is_closed = false;
    /// The locks that this locker has broken, and when its call ended.
    std::vector<std::pair<lock_status, time_point>> breaks;
};

class execution
{
public:
    execution(const plan& planned, std::ostream* timeline);
    ~execution();
    [[nodiscard]] run_result run();

private:
    using call_ptr = std::shared_ptr<call>;
    template <class T>
    using awaitable = asio::awaitable<T>;

    void make_processes(bool has_timeline);
    void restore_link(model_adapter& link) const
    {
        link.quality = {setting_.min_delay, setting_.max_delay, setting_.overtakes};
    }
    void make_locker(process& on, unsigned number);
    void do_step(const step& what);
    void do_fault(const step& what, random_source& random);
    void do_acquire(const step& what, random_source& random, process& on, unsigned number);
    void do_with_handle(const step& what, random_source& random);
    void do_administration(const step& what, random_source& random, process& on, unsigned number);
    [[nodiscard]] acquire_options draw_options(random_source& random, call& of) const;
    [[nodiscard]] std::string draw_key(random_source& random) const
    {
        return std::string(1, static_cast<char>('a' + random.below(setting_.key_count)));
    }

    [[nodiscard]] call_ptr make_call(const char* name, process& on, unsigned number);
    /// Starts a coroutine that makes a call, and its cancellations.
    void start(const call_ptr& made, random_source& random, awaitable<void> coroutine, bool may_cancel = true);
    static awaitable<void> accept_all(bool accepts, awaitable<void> coroutine);
    void cancel_later(const call_ptr& made, random_source& random);
    void finish(call& ended, const std::exception_ptr& failure);
    void check_error(const call& ended, const error_code& code);

    awaitable<void> run_acquire(call_ptr made, std::string key, acquire_options options, bool is_async,
        std::optional<lease_clock::duration> within, random_source random);
    awaitable<void> run_acquire_all(call_ptr made, std::vector<group_member> keys, acquire_options options,
        bool is_async, std::optional<lease_clock::duration> within, random_source random);
    awaitable<void> run_with_lock(call_ptr made, std::vector<group_member> keys, acquire_options options, bool is_async,
        bool is_limited, random_source random);
    awaitable<void> run_body(call_ptr made, std::vector<const lock*> held, random_source random);
    awaitable<void> run_transfer(std::shared_ptr<owned> from, random_source random, std::shared_ptr<void> busy);

    std::shared_ptr<tracked_lock> track(const call& by, const lock& held, std::size_t max_holders);
    void own(const call& by, lock single, random_source& random, std::size_t max_holders);
    void own(const call& by, lock_group group, random_source& random, std::size_t max_holders);
    void keep(const std::shared_ptr<owned>& added, random_source& random);
    void give_up(const std::shared_ptr<owned>& handle, random_source& random);

    void check();
    void check_exclusion(const tracked_lock& received);
    void check_order(const call& granted);
    void check_body(tracked_lock& each);
    void check_broken(const tracked_lock& each);
    void check_waiters();
    void check_end();
    [[nodiscard]] bool is_storm() const { return world_.true_time() < calm_begins; }
    [[nodiscard]] bool all_ended() const { return calls_.empty() && owned_.empty(); }

    const plan& plan_;
    const setting setting_;
    world world_;
    std::vector<std::shared_ptr<model_store>> stores_;
    std::map<std::pair<const process*, unsigned>, std::shared_ptr<locker_state>> states_;
    std::map<std::uint64_t, call_ptr> calls_;
    std::map<std::uint64_t, std::shared_ptr<owned>> owned_;
    std::list<std::weak_ptr<tracked_lock>> tracked_;
    std::map<std::string, std::uint64_t> greatest_fence_;
    std::map<std::string, time_point> occupied_;
    /// Until when a lock of a key may be broken without the knowledge of its holder.
    std::map<std::string, time_point> broken_until_;
    std::uint64_t last_id_ = 0;
    std::uint64_t grants_ = 0;
    bool is_ending_ = false;
};

} // namespace colock::simulation
