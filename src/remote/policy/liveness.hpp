// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>

namespace colock::remote {

/// Decides when a silent connection is given up.
///
/// Silence is measured in timer events of the owner, not in time. If the event loop does not run, nothing is read, and
/// the timer does not fire either.
///
/// Thread safety: none.
class liveness
{
public:
    struct limits
    {
        /// Maximum number of timer events in a row without received data: `greeting` before the first data have
        /// arrived, `silence` afterwards.
        unsigned greeting;
        unsigned silence;
    };
    enum class action : unsigned char
    {
        go_on,
        /// Send a probe, and call answered() when the answer has arrived.
        ask,
        give_up,
    };

    explicit liveness(limits given) noexcept : limits_(given) {}

    /// \param heard counter of the received items; 0 until the first has arrived
    /// \param owed whether the server owes an answer. Before the first data, only timer events with an owed answer are
    ///     counted, so that the time to connect does not count as silence.
    [[nodiscard]] action turn(std::uint64_t heard, bool owed) noexcept;
    void answered() noexcept { asked_ = false; }

private:
    limits limits_;
    std::uint64_t heard_before_ = 0;
    /// Number of timer events without received data.
    unsigned silent_ = 0;
    bool asked_ = false;
};

} // namespace colock::remote
