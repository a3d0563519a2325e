// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/doctor/checks.hpp"

#include <string_view>

namespace command {

// Rows that the tables of several backends contain.

inline constexpr std::string_view clock_unit = " ms ahead of this machine";

/// Judges `clock_offset`. The limit is the default of `max_clock_lead`.
[[nodiscard]] judgement judge_clock(const server_values& values);
/// Judges `round_trip`.
[[nodiscard]] judgement judge_round_trip(const server_values& values);
/// Judges `answer`, whether the server answers. If it does not, `cause` is the reason.
[[nodiscard]] judgement judge_answer(const server_values& values);

} // namespace command
