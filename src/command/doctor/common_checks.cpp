// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/common_checks.hpp"

#include <cstdint>
#include <cstdlib>

namespace command {

namespace {

constexpr std::int64_t max_clock_offset = 250;
constexpr std::int64_t max_round_trip = 100;

} // namespace

judgement judge_clock(const server_values& values)
{
    if (std::abs(values.number("clock_offset").value_or(0)) <= max_clock_offset)
        return {};
    return {verdict::warn,
        "the two clocks disagree; a step of the server's clock ends leases early: synchronize both by NTP, which "
        "slews them, while no lock is held"};
}

judgement judge_round_trip(const server_values& values)
{
    if (values.number("round_trip").value_or(0) <= max_round_trip)
        return {};
    return {verdict::warn, "each operation takes at least so long; use a server that is nearer"};
}

judgement judge_answer(const server_values& values)
{
    if (values.text("answer") == "yes")
        return {};
    return {verdict::warn, "start this server, or correct the URL (" + values.text("cause") + ")"};
}

} // namespace command
