// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/lost_reason.hpp>

#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

namespace colock::inline v0 {

using boost::system::error_code;

/// The errors of colock. Every message of the category begins with the name of the code, and names the cause and the
/// remedy.
enum class errc
{
    /// The retry policy ended. The last attempt found the lock held by another holder, or another caller of the same
    /// locker was ahead in the queue.
    retry_exhausted = 1,
    /// The caller does not hold the lock, or no longer holds it: the lock was released, has expired, or was taken by
    /// another holder.
    not_held,
    /// The lease ended while the work that it protects was still running.
    lost,
    /// The request was sent, but no answer arrived. The request may or may not have taken effect; colock resolves this
    /// in the background.
    outcome_unknown,
    /// The backend could not be reached, or temporarily refused the request. Nothing was changed.
    unavailable,
    /// The key is empty, too long, or contains a NUL.
    invalid_key,
    /// The ttl (time to live) is negative, too short for the backend or its `max_clock_lead`, or longer than ten years.
    invalid_ttl,
    /// The retry policy contradicts itself.
    invalid_retry,
    /// The options contradict each other, or the lock object is empty or moved-from.
    invalid_options,
    /// The backend does not support the operation.
    unsupported,
    /// The backend rejected the credentials, or does not permit the operation to this user.
    access_denied,
    /// The configuration of the backend does not allow correct locking.
    misconfigured_backend,
    /// The locker is shutting down, or its execution context has been destroyed.
    shutting_down,
};

/// Returns the name of the enumerator: "retry_exhausted", "not_held", ...
COLOCK_EXPORT [[nodiscard]] const char* to_string(errc value) noexcept;

/// The category of errc, named "colock".
COLOCK_EXPORT [[nodiscard]] const boost::system::error_category& colock_category() noexcept;

/// Makes an error code of colock_category(). `errc` converts to `error_code` by this function.
[[nodiscard]] inline error_code make_error_code(errc value) noexcept
{
    return {static_cast<int>(value), colock_category()};
}

/// Prints the word of to_string().
inline std::ostream& operator<<(std::ostream& out, errc value)
{
    return out << to_string(value);
}

/// The details that an exception of colock contains in addition to its error code.
struct error_context
{
    /// The key of the lock; empty if the operation has no key.
    std::string key{};
    /// The name of the backend: "memory", "redis", ...
    std::string backend{};
    /// Number of requests so far, whether or not the retry policy counts them; 0 if nothing was sent.
    std::size_t attempts = 0;
    /// Time since the call began.
    std::chrono::nanoseconds elapsed{0};
    /// The error code of the driver, if there is one.
    error_code cause{};
    /// Description of the error. Contains neither credentials nor tokens.
    std::string detail{};
    /// Number of attempts that the retry policy has counted, if the policy ended the call; otherwise 0.
    std::size_t counted_attempts = 0;
    /// Owner of the conflicting lock; empty if it is unknown. Set only for a retry_error.
    std::string holder{};
    /// Remaining ttl of the conflicting lock, if it is known. Set only for a retry_error.
    std::optional<std::chrono::nanoseconds> retry_after{};
    /// Why the lease ended. Set only for a lost_error.
    lost_reason reason = lost_reason::released;
};

/// Base class of all exceptions of colock. Copying an exception does not throw.
class COLOCK_EXPORT error : public boost::system::system_error
{
public:
    /// Makes an exception, for tests. colock makes the exceptions that it throws.
    error(error_code code, error_context context);

    /// Returns one line of text: the backend, the key, the error, the remedy, and the code with its name, such as
    /// `[colock:1 retry_exhausted]`. A key is cut to 80 bytes, and control characters are escaped.
    [[nodiscard]] const char* what() const noexcept override;
    /// Returns the key of the lock; empty if the operation has no key.
    [[nodiscard]] const std::string& key() const noexcept { return context().key; }
    /// Returns the name of the backend: "memory", "redis", ...
    [[nodiscard]] const std::string& backend() const noexcept { return context().backend; }
    /// Returns the number of requests so far, whether or not the retry policy counts them; 0 if nothing was sent.
    [[nodiscard]] std::size_t attempts() const noexcept { return context().attempts; }
    /// Returns the time from the start of the call to the error.
    [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept { return context().elapsed; }
    /// Returns the error code of the driver. Empty if the error was detected by colock itself.
    [[nodiscard]] const error_code& cause() const noexcept { return context().cause; }
    /// Returns a description of the error. Contains neither credentials nor tokens.
    [[nodiscard]] const std::string& detail() const noexcept { return context().detail; }
    /// Returns the number of attempts that the retry policy has counted, if it ended the call; otherwise 0.
    [[nodiscard]] std::size_t counted_attempts() const noexcept { return context().counted_attempts; }

protected:
    /// Returns the details of this exception.
    [[nodiscard]] const error_context& context() const noexcept;

private:
    struct description;

    std::shared_ptr<const description> description_;
};

/// An acquire failed with an error of the backend.
class COLOCK_EXPORT create_error : public error
{
public:
    using error::error;
};

/// The retry policy of an acquire ended: `errc::retry_exhausted`.
class COLOCK_EXPORT retry_error : public error
{
public:
    using error::error;

    /// Returns the owner (`acquire_options::owner`) of the lock that excluded this acquire at the last attempt. Empty
    /// if the backend has not named the owner, or if another caller of this locker is ahead and has no answer yet.
    /// ZooKeeper does not name it. The message also contains the owner's host.
    [[nodiscard]] const std::string& holder() const noexcept { return context().holder; }
    /// Returns the remaining ttl of the conflicting lock at the end of the acquire; a renewal extends it. Empty if it
    /// is unknown, as on ZooKeeper, or the lock has no ttl; zero if the lock should have expired.
    ///
    /// The holder may release the lock much earlier, or renew it. A server that sends a time to its client, for example
    /// as `Retry-After`, should send the usual duration of the work if that is less.
    [[nodiscard]] const std::optional<std::chrono::nanoseconds>& retry_after() const noexcept
    {
        return context().retry_after;
    }
};

/// A release with `on_failure::raise` failed: the lock had expired or was taken, or it is unknown whether it was
/// released.
class COLOCK_EXPORT release_error : public error
{
public:
    using error::error;
};

/// An extend failed. With `errc::not_held` the caller no longer holds the lock.
class COLOCK_EXPORT extend_error : public error
{
public:
    using error::error;
};

/// The lock of a `with_lock` was lost before its body ended. An exception of the body is nested
/// (std::nested_exception). If the lease ended because it could not be renewed, `cause()` contains the error of the
/// renewal, if it is known.
class COLOCK_EXPORT lost_error : public error
{
public:
    using error::error;

    /// Returns why the lease ended. `shutting_down` is no failure: the shutdown of the locker has cancelled the body.
    [[nodiscard]] lost_reason reason() const noexcept { return context().reason; }
};

/// The input of the caller was rejected before anything was sent to the backend.
class COLOCK_EXPORT validation_error : public error
{
public:
    using error::error;
};

/// Returns whether the operation ended because its locker shuts down, or its execution context has been destroyed: the
/// code is `errc::shutting_down`, or the error is a lost_error whose reason is `lost_reason::shutting_down`. A loop
/// that repeats a failed operation ends then, because no later operation of this locker can succeed.
COLOCK_EXPORT [[nodiscard]] bool is_shutting_down(const error& failure) noexcept;
/// The same for the exception of an `async_` function. Returns false if `failure` is null. A `system_error` with the
/// code `errc::shutting_down`, which `asio::use_awaitable` and `asio::use_future` throw, counts, too.
COLOCK_EXPORT [[nodiscard]] bool is_shutting_down(const std::exception_ptr& failure) noexcept;

} // namespace colock::inline v0

template <>
struct boost::system::is_error_code_enum<colock::errc> : std::true_type
{
};
