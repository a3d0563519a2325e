// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

#include <string_view>

namespace bench {

/// colock on a Redis server, beside the same commands sent raw, a bare loop over the driver, and other libraries'
/// programs: all in turn, round by round. Returns a chart of what each reaches of the raw rate.
[[nodiscard]] chart run_uncontended_race(const options& settings, report& found);

constexpr std::string_view driver_program = "driver-program";
/// The bare loop over the driver, as one of the programs: says what it measured, and ends the process.
[[noreturn]] void run_driver_program(const options& settings);

/// colock and the other libraries' programs, if any, where eight workers share each key.
void run_contended_race(const options& settings, report& found);

} // namespace bench
