// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"
#include "command/doctor/common_checks.hpp"

#include <algorithm>
#include <string>

namespace command {

namespace {

judgement judge_zookeeper_version(const facts& known)
{
    if (version::parse(known.text("version")) >= version{3, 6})
        return {};
    return {verdict::fail, "install ZooKeeper 3.6 or later"};
}

judgement judge_mode(const facts& known)
{
    if (known.text("mode") != "standalone")
        return {};
    return {verdict::warn, "nothing takes over if this server fails, and only its disk keeps the locks; run 3 or 5 "
                           "servers"};
}

judgement judge_tick(const facts& known)
{
    if (known.number("tickTime") <= known.number("server_tick"))
        return {};
    return {verdict::fail, "leases are computed from a tick of " + known.text("server_tick") +
                               " ms and may end too late; add server_tick=" + known.text("tickTime") +
                               "ms to the URL of every program"};
}

judgement judge_session_limits(const facts& known)
{
    const auto wanted = known.number("session_timeout");
    if (known.number("minSessionTimeout") <= wanted && wanted <= known.number("maxSessionTimeout"))
        return {};
    return {verdict::warn, "the session_timeout of " + known.text("session_timeout") +
                               " ms is not granted; change it, or minSessionTimeout and maxSessionTimeout"};
}

judgement judge_members(const facts& known)
{
    const auto members = known.number("members").value_or(0);
    if (members >= 3 && members % 2 == 1)
        return {};
    if (members == 1)
        return {verdict::warn, "one server has no majority that keeps the locks; run 3 or 5"};
    return {verdict::warn, "an even number survives no more failures than one server less; run 3 or 5"};
}

judgement judge_answering(const facts& known)
{
    const auto answering = known.number("answering").value_or(0);
    const auto named = known.number("named").value_or(0);
    if (answering == named)
        return {};
    return {verdict::warn, "the URL names " + std::to_string(named) + "; start the others"};
}

judgement judge_named(const facts& known)
{
    if (known.number("named") >= known.number("members"))
        return {};
    return {verdict::warn, "the ensemble has " + known.text("members") +
                               "; add the others to the URL, so that the "
                               "failure of one server is survived"};
}

judgement judge_limits(const facts& known)
{
    if (known.text("limits") == "equal" || known.has("smallest_session_timeout"))
        return {};
    return {verdict::fail, "two holders are possible when a session moves to a server with a lower limit; give all "
                           "servers the same minSessionTimeout and maxSessionTimeout, or set "
                           "smallest_session_timeout"};
}

judgement judge_synced(const facts& known)
{
    if (known.number("zk_synced_followers").value_or(0) + 1 >= known.number("members").value_or(0))
        return {};
    return {verdict::warn, "a follower is stopped, lags behind or is an observer; look at its log"};
}

constexpr std::string_view conf_command = "echo conf | nc HOST PORT, and add conf to 4lw.commands.whitelist";

constexpr check zookeeper_server_rows[] = {
    {.name = "answer", .fact = "answer", .judge = &judge_answer},
    {.name = "version", .fact = "version", .judge = &judge_zookeeper_version},
    {.name = "mode", .fact = "mode", .judge = &judge_mode},
    {.name = "round trip", .fact = "round_trip", .unit = " ms", .judge = &judge_round_trip},
    {.name = "tickTime", .fact = "tickTime", .unit = " ms", .command = conf_command, .judge = &judge_tick},
    {.name = "session timeouts",
        .fact = "session_limits",
        .unit = " ms",
        .command = conf_command,
        .judge = &judge_session_limits},
};

constexpr check ensemble_rows[] = {
    {.name = "servers of the ensemble", .fact = "members", .judge = &judge_members},
    {.name = "servers in the URL", .fact = "named", .judge = &judge_named},
    {.name = "servers that answer", .fact = "answering", .judge = &judge_answering},
    {.name = "limits of sessions", .fact = "limits", .judge = &judge_limits},
    {.name = "followers in sync",
        .fact = "zk_synced_followers",
        .command = "echo mntr | nc HOST PORT on the leader, and add mntr to 4lw.commands.whitelist",
        .judge = &judge_synced,
        .applies = [](const facts& known) { return known.number("members").value_or(0) > 1; }},
    {.name = "session in ticks", .fact = "ticks", .warning = "less than four of the server's ticks"},
    {.name = "granted sessions", .fact = "granted", .warning = "a server grants sessions of"},
};

} // namespace

std::span<const check> zookeeper_checks()
{
    return zookeeper_server_rows;
}

std::span<const check> ensemble_checks()
{
    return ensemble_rows;
}

} // namespace command
