// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::remote {

/// Decides which events of a backend's connections are reported. Each change is reported once, whether the backend has
/// one connection or several.
///
/// Thread safety: none.
class connection_events
{
public:
    enum class item : unsigned char
    {
        none,
        /// The first connection is being established, or the first connection after all were closed.
        connecting,
        /// The connection exists, or is not needed any more. Observers are not notified, because no loss was reported
        /// to them.
        connecting_ended,
        ready,
        suspended,
        reconnected,
        unreachable,
    };

    /// An attempt to connect begins.
    [[nodiscard]] item began() const noexcept;
    /// A connection was established.
    [[nodiscard]] item opened() noexcept;
    /// An attempt to connect failed. Reported if no other connection is open. The next connection is then reported as
    /// `reconnected`, or as `ready` if it is the first.
    [[nodiscard]] item failed() noexcept;
    /// An attempt to connect was given up, because the connection is not needed any more.
    [[nodiscard]] item gave_up() const noexcept;
    /// An established connection was lost. Reported if no other connection is open.
    [[nodiscard]] item lost() noexcept;
    /// The client has closed an established connection. Not reported.
    void closed() noexcept { --open_; }
    /// Must be called in the child of a fork.
    void forked() noexcept { *this = {}; }

private:
    unsigned open_ = 0;
    bool was_ready_ = false;
    bool is_lost_ = false;
};

} // namespace colock::remote
