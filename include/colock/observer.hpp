// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <string_view>

namespace colock {

/// Told what happens to locks and to connections. Derive from it and override what is of interest.
///
/// Calls are made inline, from whatever thread the event happens on, never while a mutex of colock is held. An
/// implementation must be thread-safe and quick, must not throw (it is noexcept), and must not block. Strings are valid
/// only during the call; they never hold a token or a credential.
///
/// A locker tells the events of its locks in the order in which they happen, one at a time. An event that happens while
/// another one is told, on another thread or inside the observer, is told after it by the same thread. Of one lock:
/// `granted`, then `released`, or `lost` and after that `settled`. `released` comes before the next `granted` of an
/// exclusive key, as far as the backend's answers arrive in the order in which it has made them.
class observer
{
public:
    virtual ~observer() = default;

    /// The backend is usable: its first connection stands. Each observer hears it once: one whose locker is made later
    /// hears it while that is made, and so does every one of a backend that needs no connection.
    virtual void ready(std::string_view backend) noexcept { static_cast<void>(backend); }
    /// A connection could not be made, or was made to a server that cannot be used for now; operations wait or fail
    /// until `ready` or `reconnected`. Told at the first failure, and then once per cause and address until the backend
    /// can be reached again. `address` is what was connected to: host and port, or the path of a socket.
    virtual void unreachable(std::string_view backend, const error_code& why, std::string_view address) noexcept
    {
        static_cast<void>(backend), static_cast<void>(why), static_cast<void>(address);
    }
    /// The connection was lost; operations wait or fail until `reconnected`.
    virtual void suspended(std::string_view backend, const error_code& why) noexcept
    {
        static_cast<void>(backend), static_cast<void>(why);
    }
    /// It can be reached again, after `suspended`, or after `unreachable` of a backend that had been `ready` before.
    virtual void reconnected(std::string_view backend) noexcept { static_cast<void>(backend); }
    /// Something that an operator should know, said once per cause.
    virtual void warning(std::string_view backend, std::string_view message) noexcept
    {
        static_cast<void>(backend), static_cast<void>(message);
    }

    /// An acquire found the lock busy, or others waiting before it, and begins to wait. Not told of one that waits for
    /// a backend that does not answer.
    virtual void waiting(std::string_view key) noexcept { static_cast<void>(key); }
    /// `waited` is the time from the call to the grant.
    virtual void granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept
    {
        static_cast<void>(key), static_cast<void>(fence), static_cast<void>(waited);
    }
    virtual void renewed(std::string_view key, std::chrono::nanoseconds valid_for) noexcept
    {
        static_cast<void>(key), static_cast<void>(valid_for);
    }
    /// A held lock may be lost soon: a renewal has failed, or contact with the backend was lost. The latter is told
    /// once for each held lock, after `suspended` or `unreachable`.
    virtual void at_risk(std::string_view key, const error_code& why) noexcept
    {
        static_cast<void>(key), static_cast<void>(why);
    }
    virtual void lost(std::string_view key, lost_reason reason) noexcept
    {
        static_cast<void>(key), static_cast<void>(reason);
    }
    /// It was given back. A backend that answers at once, as memory does, is asked after that.
    virtual void released(std::string_view key) noexcept { static_cast<void>(key); }
    /// An acquisition whose caller had left, or whose outcome was unknown, holds nothing any more. `proven` is false
    /// where the backend could not prove that; then its ttl has passed.
    virtual void settled(std::string_view key, bool proven) noexcept
    {
        static_cast<void>(key), static_cast<void>(proven);
    }
};

} // namespace colock
