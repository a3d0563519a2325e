// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/error.hpp>
#include <colock/lost_reason.hpp>

#include <chrono>
#include <source_location>
#include <string_view>

namespace colock::inline v0 {

/// Receives the events of locks and of connections. Derive from this class and override the functions of interest.
///
/// The functions are called from any thread that uses the locker, never while a mutex of colock is held. An
/// implementation must be thread-safe and fast. It must not throw (the functions are noexcept), block, or destroy an
/// execution context. Strings are valid only during the call. They never contain a token or a credential.
///
/// A locker reports the events of its locks one at a time, in the order in which they happen. There is no order between
/// the events of two lockers that share an observer. Requests to the backend are sent, and waiting callers are resumed,
/// before events are reported.
///
/// An event is reported by the thread on which it happens, unless the locker is reporting another event, on another
/// thread or further up in the call stack. A thread reports at most 64 events, also those of other threads, before it
/// continues. The others are reported by the next thread on which an event happens, or on the locker's executor. If a
/// locker has more than 1,000 events to report, a thread that uses it waits until it can report some of them. A thread
/// that is inside a function of an observer never waits.
///
/// Each acquire ends with `granted` or `not_granted`. After `granted` follow `released`; or `settled`, if a release is
/// finished in the background; or `lost` and then `settled`. For an exclusive key of one locker, `released` precedes
/// the next `granted`, provided that the backend's answers arrive in the order in which it made them.
///
/// The lock of an election has these events, too. Its `granted` is followed by `elected`, and each `elected` by either
/// `resigned` or `deposed`.
class COLOCK_EXPORT observer
{
public:
    virtual ~observer() = default;

    /// The backend can be used, because its first connection exists. Reported once to each observer. If the backend is
    /// ready before a locker is made, or needs no connection, the observer of that locker receives the call while the
    /// locker is made.
    virtual void ready(std::string_view backend) noexcept { static_cast<void>(backend); }
    /// A connection could not be established, or the server cannot be used at present. Operations wait or fail until
    /// `ready` or `reconnected`. Reported at the first failure, and then once per cause and address until the backend
    /// can be reached again. `address` is the host and port, or the path of the socket. `error` is the cause, or
    /// `errc::unavailable` if the cause has no code. `detail` describes the failure, such as a wrong name of a master;
    /// it may be empty. With a quorum or a Redis Cluster, also reported for one server that cannot be reached although
    /// others can; `reconnected` does not follow then.
    virtual void unreachable(
        std::string_view backend, const error_code& error, std::string_view address, std::string_view detail) noexcept
    {
        static_cast<void>(backend), static_cast<void>(error), static_cast<void>(address), static_cast<void>(detail);
    }
    /// The connection was lost. Operations wait or fail until `reconnected`.
    virtual void suspended(std::string_view backend, const error_code& error) noexcept
    {
        static_cast<void>(backend), static_cast<void>(error);
    }
    /// The backend can be reached again, after `suspended`, or after `unreachable` if it had been `ready` before.
    virtual void reconnected(std::string_view backend) noexcept { static_cast<void>(backend); }
    /// A message for the operator. Reported once per cause: a dangerous setting of the server, a connection that the
    /// server refuses, or an operation that it refuses (`errc::access_denied` or `errc::misconfigured_backend`).
    /// Reported each time: the text of an exception that the body of an `election::lead` has thrown.
    virtual void warning(std::string_view backend, std::string_view message) noexcept
    {
        static_cast<void>(backend), static_cast<void>(message);
    }

    /// An acquire starts to wait because the lock is busy or other callers are ahead in the queue. Not reported if the
    /// acquire waits for a backend that does not answer.
    virtual void waiting(std::string_view key) noexcept { static_cast<void>(key); }
    /// With `locker_options::debug`: an acquire has waited at least one second for a key that this locker has held for
    /// at least one second. Possible causes: the caller holds the key itself (locks are not reentrant), two callers
    /// wait for each other, or the holder is slow. Reported once per acquire. `held_for` is the time since the grant.
    /// `acquired_at` and `waiting_at` are the source locations of the granted and of the waiting acquire, see
    /// acquire_options::where.
    virtual void possible_deadlock(std::string_view key, std::chrono::nanoseconds held_for,
        const std::source_location& acquired_at, const std::source_location& waiting_at) noexcept
    {
        static_cast<void>(key), static_cast<void>(held_for), static_cast<void>(acquired_at);
        static_cast<void>(waiting_at);
    }
    /// The lock was granted. `waited` is the time from the call to the grant.
    virtual void granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept
    {
        static_cast<void>(key), static_cast<void>(fence), static_cast<void>(waited);
    }
    /// An acquire ended without a lock, after `waited`. An `acquire_all` reports this for each of its keys. `error`:
    /// - `errc::retry_exhausted`: the retry policy ended, or a `try_acquire` found the lock busy.
    /// - `boost::asio::error::operation_aborted`: the acquire was cancelled.
    /// - `errc::shutting_down`: the locker was shut down, or the execution context of its adapter was destroyed.
    /// - any other code: the error of the acquire. For rejected input, `waited` is zero.
    virtual void not_granted(std::string_view key, const error_code& error, std::chrono::nanoseconds waited) noexcept
    {
        static_cast<void>(key), static_cast<void>(error), static_cast<void>(waited);
    }
    /// The lease was renewed. `valid_for` is the time until its local deadline.
    virtual void renewed(std::string_view key, std::chrono::nanoseconds valid_for) noexcept
    {
        static_cast<void>(key), static_cast<void>(valid_for);
    }
    /// A held lock may be lost soon, because a renewal has failed or contact with the backend was lost. A lost contact
    /// is reported once for each held lock, after `suspended` or `unreachable`.
    virtual void at_risk(std::string_view key, const error_code& error) noexcept
    {
        static_cast<void>(key), static_cast<void>(error);
    }
    /// A held lock was lost for this reason, `held_for` after its grant. `settled` follows after the cleanup.
    virtual void lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds held_for) noexcept
    {
        static_cast<void>(key), static_cast<void>(reason), static_cast<void>(held_for);
    }
    /// The lock was released or detached by its holder. `held_for` is the time from the grant to the call that released
    /// it. The backend may already have granted the lock to another locker.
    virtual void released(std::string_view key, std::chrono::nanoseconds held_for) noexcept
    {
        static_cast<void>(key), static_cast<void>(held_for);
    }
    /// This process leads the election of the key from now on, see `election`. `term` is the fence of its lock. Follows
    /// `granted`.
    virtual void elected(std::string_view key, std::uint64_t term) noexcept
    {
        static_cast<void>(key), static_cast<void>(term);
    }
    /// This process has given up the leadership: its lock is being released or detached, by its holder or by a
    /// shutdown. Reported when the release begins, so before `released`.
    virtual void resigned(std::string_view key, std::uint64_t term) noexcept
    {
        static_cast<void>(key), static_cast<void>(term);
    }
    /// This process has lost the leadership for this reason, which is not `shutting_down`. Follows `lost`.
    virtual void deposed(std::string_view key, std::uint64_t term, lost_reason reason) noexcept
    {
        static_cast<void>(key), static_cast<void>(term), static_cast<void>(reason);
    }
    /// A lost lock, a release that was not answered, or an acquire that was abandoned or whose outcome was unknown, no
    /// longer holds anything. `proven` is false if the backend could not prove this; in that case the ttl has passed.
    virtual void settled(std::string_view key, bool proven) noexcept
    {
        static_cast<void>(key), static_cast<void>(proven);
    }
};

} // namespace colock::inline v0
