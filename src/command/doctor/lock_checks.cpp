// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"

namespace command {

namespace {

judgement judge_locking(const server_values& values)
{
    const auto failure = values.text("failure");
    return failure.empty() ? judgement() : judgement{verdict::fail, failure};
}

judgement judge_lock_time(const server_values& values)
{
    if (values.number("lock_time") < 500)
        return {};
    return {verdict::warn, "use a ttl of at least 30 s, or a server that is nearer"};
}

constexpr check lock_rows[] = {
    {.name = "locking", .value_name = "locking", .judge = &judge_locking},
    {.name = "connection", .value_name = "connect_time", .unit = " ms until the first lock"},
    {.name = "acquire", .value_name = "lock_time", .unit = " ms", .judge = &judge_lock_time},
    {.name = "wake-up", .value_name = "wake_up", .unit = " ms after the release"},
    {.name = "list",
        .value_name = "list",
        .command = "colock ls",
        .applies = [](const server_values& values) { return !values.has("failure"); }},
};

} // namespace

std::span<const check> lock_checks()
{
    return lock_rows;
}

} // namespace command
