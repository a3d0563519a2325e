// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::inline v0::remote {

/// Decides which events of a backend's connections are reported. Each change is reported once, whether the backend has
/// one connection or several. The functions must be called when the named change occurs, and return the event to
/// report.
///
/// Thread safety: none.
class connection_events
{
public:
    enum class event : unsigned char
    {
        none,
        /// A connection is being established while no other connection is open.
        connecting,
        /// A `connecting` has ended without another event: the connection is open, or is not needed any more. Observers
        /// are not notified, because no loss was reported to them.
        connecting_ended,
        ready,
        suspended,
        reconnected,
        unreachable,
    };

    /// An attempt to connect begins.
    [[nodiscard]] event began() const noexcept;
    /// A connection was established.
    [[nodiscard]] event opened() noexcept;
    /// An attempt to connect failed. Reported if no other connection is open. The next connection is then reported as
    /// `reconnected`, or as `ready` if it is the first.
    [[nodiscard]] event failed() noexcept;
    /// An attempt to connect was given up, because the connection is not needed any more.
    [[nodiscard]] event gave_up() const noexcept;
    /// An established connection was lost. Reported if no other connection is open.
    [[nodiscard]] event lost() noexcept;
    /// The client has closed an established connection. Not reported.
    void closed() noexcept { --open_; }

private:
    unsigned open_ = 0;
    bool was_ready_ = false;
    bool is_lost_ = false;
};

} // namespace colock::inline v0::remote
