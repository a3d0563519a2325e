// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace colock {

using boost::system::error_code;

/// What can go wrong. Every message of the category names the cause and the remedy.
enum class errc
{
    /// The retry policy ended, and the last answer was that the lock is held by somebody else, or another caller of the
    /// same locker was first.
    retry_exhausted = 1,
    /// The lock is not, or no longer, ours: released, expired, or taken by another holder.
    not_held,
    /// The lease ended while the work that it guarded was still running.
    lost,
    /// The request was sent, but no answer arrived: it may or may not have taken effect. It is being settled.
    outcome_unknown,
    /// The backend could not be reached, or refused work for now; nothing was changed.
    unavailable,
    /// The key is empty, too long, or contains a NUL.
    invalid_key,
    /// The ttl (time to live) is negative, too short for the backend or its `max_clock_lead`, or over ten years.
    invalid_ttl,
    /// The retry policy contradicts itself.
    invalid_retry,
    /// The options contradict each other, or a lock was used that is empty or was moved from.
    invalid_options,
    /// The backend cannot do this.
    unsupported,
    /// The backend knows us, but does not allow it; or it refused our credentials.
    access_denied,
    /// The backend is set up in a way in which locks cannot work there.
    misconfigured_backend,
    /// The locker is shutting down, or its execution context is gone.
    shutting_down,
    /// It was asked for before a fork, and this process is the child.
    forked,
};

/// The category of errc, named "colock".
[[nodiscard]] const boost::system::error_category& colock_category() noexcept;

[[nodiscard]] inline error_code make_error_code(errc value) noexcept
{
    return {static_cast<int>(value), colock_category()};
}

/// What an exception of colock knows beside its code.
struct error_context
{
    std::string key{};
    std::string backend{};
    /// Requests that were made so far, counted by the retry policy or not; 0 if nothing was sent.
    std::size_t attempts = 0;
    /// Time since the call began.
    std::chrono::nanoseconds elapsed{0};
    /// The driver's own code, if there was one.
    error_code cause{};
    /// What exactly was wrong, in words; never a credential, never a token.
    std::string detail{};
    /// Attempts that the retry policy has counted, where it ended the call; 0 elsewhere.
    std::size_t counted_attempts = 0;
};

/// Base of all exceptions that colock throws. Copying one does not throw.
class error : public boost::system::system_error
{
public:
    error(error_code code, error_context context);

    /// One line: backend, key, what is wrong and what to do about it. A key is cut to 80 bytes; control characters are
    /// escaped.
    [[nodiscard]] const char* what() const noexcept override;
    [[nodiscard]] const std::string& key() const noexcept { return context().key; }
    [[nodiscard]] const std::string& backend() const noexcept { return context().backend; }
    [[nodiscard]] std::size_t attempts() const noexcept { return context().attempts; }
    [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept { return context().elapsed; }
    /// The driver's own code; empty where the error was colock's.
    [[nodiscard]] const error_code& cause() const noexcept { return context().cause; }
    [[nodiscard]] const std::string& detail() const noexcept { return context().detail; }
    [[nodiscard]] std::size_t counted_attempts() const noexcept { return context().counted_attempts; }

private:
    struct told;

    [[nodiscard]] const error_context& context() const noexcept;

    std::shared_ptr<const told> told_;
};

/// An acquire failed with an error of the backend.
class create_error : public error
{
public:
    using error::error;
};

/// An acquire gave up: `errc::retry_exhausted`.
class retry_error : public error
{
public:
    using error::error;
};

/// A release with `on_failure::raise` found the lock expired or taken, or could not learn whether it was released.
class release_error : public error
{
public:
    using error::error;
};

/// An extend failed; with `errc::not_held` the lock is no longer ours.
class extend_error : public error
{
public:
    using error::error;
};

/// The lock of a `with_lock` was lost before its body ended. An exception of the body is nested
/// (std::nested_exception). If the lease ended because it could not be renewed, `cause()` says why, as far as is known.
class lost_error : public error
{
public:
    using error::error;
};

/// The caller's input was refused before anything was sent.
class validation_error : public error
{
public:
    using error::error;
};

} // namespace colock

template <>
struct boost::system::is_error_code_enum<colock::errc> : std::true_type
{
};
