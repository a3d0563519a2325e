// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace colock::testing {

/// The wall clock of a program that a test starts: the real clock plus an offset. The test may change the offset while
/// the program runs. Durations and timers of the program are not affected. The program has to end before this object is
/// destroyed.
class movable_clock
{
public:
    explicit movable_clock(std::chrono::milliseconds ahead = std::chrono::milliseconds(0));
    movable_clock(const movable_clock&) = delete;
    movable_clock& operator=(const movable_clock&) = delete;
    ~movable_clock();

    /// Environment variables that the program has to be started with.
    [[nodiscard]] std::vector<std::string> environment() const;

    /// Sets the offset. A negative offset sets the clock back.
    void set_ahead(std::chrono::milliseconds by) noexcept;

private:
    temporary_folder folder_;
    /// Memory that is shared with the program.
    std::int64_t* ahead_ = nullptr;
};

} // namespace colock::testing
