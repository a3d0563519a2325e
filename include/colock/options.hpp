// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/observer.hpp>
#include <colock/retry_policy.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <string>

namespace colock::inline v0 {

/// Selects who renews a lease.
enum class renewal : unsigned char
{
    /// The locker extends the lease every third of its ttl, until the lock is released or lost. Default of `with_lock`.
    automatic,
    /// The lease ends after its ttl unless `extend` is called. Default of `acquire`.
    manual,
};

/// Selects whether a failed release throws.
enum class on_failure : unsigned char
{
    /// A release does not throw if the lock had expired, was taken, or the backend did not answer. The lock is cleaned
    /// up in the background.
    quiet,
    /// These failures are thrown as release_error.
    raise,
};

/// An optional time. Does not compile with a number without a unit, or with a time that may have a part of a
/// millisecond.
struct optional_milliseconds : std::optional<std::chrono::milliseconds>
{
    /// Makes an empty optional.
    optional_milliseconds() = default;
    /// Accepts what std::optional does.
    template <std::convertible_to<std::optional<std::chrono::milliseconds>> Time>
    optional_milliseconds(const Time& time) : std::optional<std::chrono::milliseconds>(time)
    {
    }
    /// Does not compile.
    template <class Other>
    COLOCK_REFUSED("write a time with a unit, in whole milliseconds: 500ms, not 500, 0.5s or 500us")
    optional_milliseconds(const Other&);
};

/// Options of one acquire. Fields that are not set are taken from the locker. The order of the fields is part of the
/// interface (designated initializers).
struct acquire_options
{
    /// Time to live of the grant. Default: that of the locker. 0: the lock is held until it is released, if the backend
    /// supports this. Range: from the smallest ttl of the backend (at least 100 ms, and at least four times the
    /// `max_clock_lead` of the adapter's options, if it is set there) to ten years.
    optional_milliseconds ttl{};
    /// Exclusive or shared.
    lock_mode mode = lock_mode::exclusive;
    /// With `lock_mode::shared`: the lock is a counting semaphore, and is granted only if fewer than this many shared
    /// holders exist. 0: no limit. The limit belongs to this acquire and is not stored in the backend. An acquire may
    /// overtake waiters whose limits are reached.
    std::size_t max_holders = 0;
    /// How long and how often to try again. Default: the retry policy of the locker, of which `retry.total_time(5s)`
    /// overrides a single limit. `within(5s)` waits for at most 5 s, whatever the policy of the locker is.
    retry_policy retry{};
    /// Default: automatic for `with_lock`, manual otherwise. A lock with ttl 0 is never renewed.
    std::optional<colock::renewal> renewal{};
    /// Name of the requester, for people and tools. Default: that of the locker. At most 256 bytes, no NUL.
    std::string owner{};
    /// Reason for the lock, for people and tools. At most 256 bytes, no NUL.
    std::string comment{};
    /// Maximum time for which a lock with a ttl is held, including all renewals and extensions. After this time the
    /// lock is lost (expired) and released. Range: from the smallest to the largest ttl of the backend (100 ms to ten
    /// years, unless its adapter has other limits). Needs a ttl. Default: that of the locker, which has no effect on a
    /// lock without a ttl.
    optional_milliseconds max_hold{};
    /// Name of the requester's host, for people and tools. Default: that of the locker. At most 256 bytes, no NUL.
    std::string host{};
    /// Source location that observer::possible_deadlock reports. Default: where the acquire_options are made. Functions
    /// without options have a parameter of this name instead, whose default is the line of the call.
    std::source_location location = std::source_location::current();
};

/// Options of the background purge, in which a locker periodically removes expired locks. Without it, an expired lock
/// stays in the backend until its key is requested again.
struct background_purge
{
    /// Time from the end of one purge to the start of the next. Each interval is changed randomly by up to a tenth, so
    /// that processes do not purge at the same time. Range: 100 ms to 30 days.
    std::chrono::milliseconds interval{std::chrono::minutes(5)};
    /// Maximum number of locks that one purge removes. Range: 1 to 100,000.
    std::size_t limit = 100;
};

/// Defaults and limits of a locker. The constructor of the locker checks them and throws validation_error.
struct locker_options
{
    /// Default of acquire_options::ttl, with the same range.
    std::chrono::milliseconds ttl{std::chrono::seconds(30)};
    /// Default of acquire_options::retry.
    retry_policy retry = retry_policy::forever();
    /// Default: the process id.
    std::string owner{};
    /// Default: the machine's host name.
    std::string host{};
    /// How long `release`, `extend` and the queries wait for an answer of the backend. Range: 10 ms to 1 h.
    std::chrono::milliseconds operation_timeout{std::chrono::seconds(5)};
    /// A grant that arrives with less remaining validity is released and counts as a failed attempt. Default: a tenth
    /// of the ttl, at least 10 ms.
    std::optional<std::chrono::milliseconds> minimum_validity{};
    /// Time before the end of the lease at which `with_lock` cancels its body. Default: a tenth of the ttl, at most 1
    /// s.
    std::optional<std::chrono::milliseconds> stop_margin{};
    /// Default of acquire_options::max_hold, with the same range; empty: no limit.
    std::optional<std::chrono::milliseconds> max_hold{};
    /// Receives the events of all locks of this locker. Default: none.
    std::shared_ptr<colock::observer> observer{};
    /// Options of the background purge. At any time, only one locker of all processes runs it. Default: no purge.
    std::optional<background_purge> purge{};
    /// Reports acquires that wait for a lock of this locker, see observer::possible_deadlock. Each acquire then
    /// allocates memory for its source location, and each waiter is woken once per second and compared with the held
    /// locks. Needs an observer. Default: off, which costs nothing.
    bool debug = false;
};

} // namespace colock::inline v0
