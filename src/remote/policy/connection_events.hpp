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
        /// No connection is open, because none is needed.
        idle,
        /// The first connection of several is open.
        up,
        /// The last connection was lost.
        lost,
        /// An attempt to connect has failed while no other connection is open.
        failed,
    };

    /// An attempt to connect begins.
    [[nodiscard]] event began() const noexcept;
    /// A connection was established.
    [[nodiscard]] event opened() noexcept;
    /// An attempt to connect failed.
    [[nodiscard]] event failed() const noexcept;
    /// An attempt to connect was given up, because the connection is not needed any more.
    [[nodiscard]] event gave_up() const noexcept;
    /// An established connection was lost.
    [[nodiscard]] event lost() noexcept;
    /// The client has closed an established connection.
    [[nodiscard]] event closed() noexcept;
    [[nodiscard]] bool is_any_open() const noexcept { return open_ > 0; }

private:
    unsigned open_ = 0;
};

} // namespace colock::inline v0::remote
