// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/observer.hpp>
#include <colock/retry.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace colock {

/// Who keeps a lease alive.
enum class renewal : unsigned char
{
    /// The locker extends the lease every third of its ttl, until it is released or lost. Default of `with_lock`.
    automatic,
    /// The lease ends after its ttl unless `extend` is called. Default of `acquire`.
    manual,
};

/// What a quiet release hides and a raising one throws.
enum class on_failure : unsigned char
{
    /// A lock that had expired, was taken, or could not be reached is left to the clean-up in the background.
    quiet,
    /// Those are thrown as release_error.
    raise,
};

/// Options of one acquire. Fields that are not set are taken from the locker. The order of the fields is part of the
/// interface (designated initializers).
struct acquire_options
{
    /// Time to live of the grant. Default: the locker's. 0: until released, where the backend can. Range: what the
    /// backend resolves (at least 100 ms, and four times a `max_clock_lead` that is set), up to ten years.
    std::optional<std::chrono::milliseconds> ttl{};
    lock_mode mode = lock_mode::exclusive;
    /// With `lock_mode::shared`: a counting semaphore, granted if fewer than this many shared holders live. 0: any
    /// number. The limit belongs to the claim and is not stored. A claim may pass waiters whose limits are reached.
    std::size_t max_holders = 0;
    /// Default: the locker's.
    std::optional<retry_policy> retry{};
    /// Default: automatic for `with_lock`, manual for all else. A lock with ttl 0 is never renewed.
    std::optional<colock::renewal> renewal{};
    /// Who asks, for people and tools. Default: the locker's. At most 256 bytes, no NUL.
    std::string owner{};
    /// Why, for people and tools. At most 256 bytes, no NUL.
    std::string comment{};
    /// The longest time that a lock with a ttl is held, however often it is renewed or extended; it is lost (expired)
    /// then, and given back. Range: 100 ms to ten years. Default: the locker's.
    std::optional<std::chrono::milliseconds> max_hold{};
    /// Where it is asked for, for people and tools. Default: the locker's. At most 256 bytes, no NUL.
    std::string host{};
};

/// A sweep that a locker makes from time to time, so that what has expired does not stay in the backend until somebody
/// asks for it again.
struct background_purge
{
    /// From the end of one sweep to the next; each is moved by up to a tenth, so that processes do not sweep in step.
    /// Range: 100 ms to 30 days.
    std::chrono::milliseconds interval{std::chrono::minutes(5)};
    /// How many are removed at a time, at most. Range: 1 to 100,000.
    std::size_t limit = 100;
};

/// Defaults and limits of a locker, checked by its constructor (validation_error).
struct locker_options
{
    std::chrono::milliseconds ttl{std::chrono::seconds(30)};
    retry_policy retry = retry_policy::forever();
    /// Default: the process id.
    std::string owner{};
    /// Default: the machine's host name.
    std::string host{};
    /// How long `release`, `extend` and the queries wait for an answer. Range: 10 ms to 1 h.
    std::chrono::milliseconds operation_timeout{std::chrono::seconds(5)};
    /// A grant that arrives with less than this left is given back and counts as a failed attempt. Default: a tenth of
    /// the ttl, at least 10 ms.
    std::optional<std::chrono::milliseconds> minimum_validity{};
    /// `with_lock` cancels its body this long before its lease ends. Default: a tenth of the ttl, at most 1 s.
    std::optional<std::chrono::milliseconds> stop_margin{};
    /// Default: none.
    std::optional<std::chrono::milliseconds> max_hold{};
    /// Told of every event of every lock.
    std::shared_ptr<colock::observer> observer{};
    /// Purge in the background, by one locker of all processes at a time. Default: none.
    std::optional<background_purge> purge{};
};

} // namespace colock
