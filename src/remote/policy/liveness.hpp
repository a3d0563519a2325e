// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>

namespace colock::inline v0::remote {

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
        /// Maximum number of timer events in a row without received data: `before_first_data` before the first data
        /// have arrived, `silence` afterwards.
        unsigned before_first_data;
        unsigned silence;
    };
    enum class action : unsigned char
    {
        none,
        /// Send a probe, and call answered() when the answer has arrived.
        ask,
        give_up,
    };

    explicit liveness(limits thresholds) noexcept : limits_(thresholds) {}

    /// Must be called at each timer event of the owner.
    /// \param received_count number of the received items; 0 until the first has arrived
    /// \param awaits_answer whether the server owes an answer. Before the first data, only timer events with an answer
    ///     due are counted, so that the time to connect does not count as silence.
    [[nodiscard]] action check(std::uint64_t received_count, bool awaits_answer) noexcept;
    void answered() noexcept { is_probing_ = false; }

private:
    limits limits_;
    std::uint64_t last_received_count_ = 0;
    /// Number of counted timer events in a row without received data.
    unsigned silent_count_ = 0;
    bool is_probing_ = false;
};

} // namespace colock::inline v0::remote
