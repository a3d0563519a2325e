// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>

namespace colock::remote {

/// When a silent connection is given up.
///
/// Counted in turns of its owner's timer, never in time that has passed: while the event loop stands still nothing is
/// read, and no turn is missed.
///
/// Thread safety: none.
class liveness
{
public:
    struct limits
    {
        /// Turns without a sign of life until the first one, and after it.
        unsigned greeting;
        unsigned silence;
    };
    enum class action : unsigned char
    {
        go_on,
        /// Ask for a sign of life; tell answered() when it has come.
        ask,
        give_up,
    };

    explicit liveness(limits given) noexcept : limits_(given) {}

    /// \param heard counts what was read
    /// \param owed the other side has something to answer; until then, how long it may take to connect is not counted
    [[nodiscard]] action turn(std::uint64_t heard, bool owed) noexcept;
    void answered() noexcept { asked_ = false; }

private:
    limits limits_;
    std::uint64_t heard_before_ = 0;
    /// Turns.
    unsigned silent_ = 0;
    bool asked_ = false;
};

} // namespace colock::remote
