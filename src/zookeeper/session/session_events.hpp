// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/connection_failure.hpp"

#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Events that a session reports to its owner, on the strand of the session.
class session_events
{
public:
    /// A server has accepted the session: the first one, or another one after a suspension. A resumed session was
    /// verified.
    virtual void on_connected() noexcept = 0;
    /// The connection was lost. The session continues, and tries to connect again.
    virtual void on_suspended() noexcept = 0;
    /// All servers were tried without success.
    virtual void on_unreachable(const connection_failure& failure) noexcept = 0;
    /// The session was disconnected for so long that all of its locks count as lost, but the server still knows the
    /// session. Later grants are tied to another session_lease.
    virtual void on_lease_ended() noexcept = 0;
    /// The server reports that the session has ended.
    virtual void on_expired() noexcept = 0;
    /// The servers have lost the history of the session: their data were replaced by an older copy. All locks of the
    /// session are lost, and its owner has to close it. Found after a resumption, or by the answer to a beat.
    virtual void on_history_lost() noexcept = 0;
    /// The server does not accept the user's password, or does not let the user write below the chroot. In the second
    /// case the session continues until its owner closes it.
    virtual void on_denied() noexcept = 0;
    /// A watched node has changed; an empty path means any node.
    virtual void on_changed(std::string_view path) noexcept = 0;
    /// The driver has logged a line.
    virtual void on_log(std::string_view text) noexcept = 0;

protected:
    ~session_events() = default;
};

} // namespace colock::inline v0::zookeeper::detail
