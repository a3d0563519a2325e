// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"

namespace command {

namespace {

judgement judge_locking(const facts& known)
{
    const auto failure = known.text("failure");
    return failure.empty() ? judgement() : judgement{verdict::fail, failure};
}

judgement judge_lock_time(const facts& known)
{
    if (known.number("lock_time") < 500)
        return {};
    return {verdict::warn, "use a ttl of at least 30 s, or a server that is nearer"};
}

constexpr check lock_rows[] = {
    {.name = "locking", .fact = "locking", .judge = &judge_locking},
    {.name = "connection", .fact = "connect_time", .unit = " ms until the first lock"},
    {.name = "acquire", .fact = "lock_time", .unit = " ms", .judge = &judge_lock_time},
    {.name = "wake-up", .fact = "wake_up", .unit = " ms after the release"},
    {.name = "list",
        .fact = "list",
        .command = "colock ls",
        .applies = [](const facts& known) { return !known.has("failure"); }},
};

} // namespace

std::span<const check> lock_checks()
{
    return lock_rows;
}

} // namespace command
