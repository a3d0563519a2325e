// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"
#include "command/doctor/common_checks.hpp"

#include <algorithm>
#include <string>

namespace command {

namespace {

judgement judge_zookeeper_version(const server_values& values)
{
    if (version::parse(values.text("version")) >= version{3, 6})
        return {};
    return {verdict::fail, "install ZooKeeper 3.6 or later"};
}

judgement judge_mode(const server_values& values)
{
    if (values.text("mode") != "standalone")
        return {};
    return {verdict::warn, "nothing takes over if this server fails, and only its disk keeps the locks; run 3 or 5 "
                           "servers"};
}

judgement judge_tick(const server_values& values)
{
    if (values.number("tickTime") <= values.number("server_tick"))
        return {};
    return {verdict::fail, "leases are computed from a tick of " + values.text("server_tick") +
                               " ms and may end too late; add server_tick=" + values.text("tickTime") +
                               "ms to the URL of every program"};
}

judgement judge_session_limits(const server_values& values)
{
    const auto requested = values.number("session_timeout");
    if (values.number("minSessionTimeout") <= requested && requested <= values.number("maxSessionTimeout"))
        return {};
    return {verdict::warn, "the session_timeout of " + values.text("session_timeout") +
                               " ms is not granted; change it, or minSessionTimeout and maxSessionTimeout"};
}

judgement judge_members(const server_values& values)
{
    const auto members = values.number("members").value_or(0);
    if (members >= 3 && members % 2 == 1)
        return {};
    if (members == 1)
        return {verdict::warn, "one server has no majority that keeps the locks; run 3 or 5"};
    return {verdict::warn, "an even number survives no more failures than one server less; run 3 or 5"};
}

judgement judge_answering(const server_values& values)
{
    const auto answering = values.number("answering").value_or(0);
    const auto named = values.number("named").value_or(0);
    if (answering == named)
        return {};
    return {verdict::warn, "the URL names " + std::to_string(named) + "; start the others"};
}

judgement judge_named(const server_values& values)
{
    if (values.number("named") >= values.number("members"))
        return {};
    return {verdict::warn, "the ensemble has " + values.text("members") +
                               "; add the others to the URL, so that the "
                               "failure of one server is survived"};
}

judgement judge_limits(const server_values& values)
{
    if (values.text("limits") == "equal" || values.has("smallest_session_timeout"))
        return {};
    return {verdict::fail, "two holders are possible when a session moves to a server with a lower limit; give all "
                           "servers the same minSessionTimeout and maxSessionTimeout, or set "
                           "smallest_session_timeout"};
}

judgement judge_synced(const server_values& values)
{
    if (values.number("zk_synced_followers").value_or(0) + 1 >= values.number("members").value_or(0))
        return {};
    return {verdict::warn, "a follower is stopped, lags behind or is an observer; look at its log"};
}

constexpr std::string_view conf_command = "echo conf | nc HOST PORT, and add conf to 4lw.commands.whitelist";

constexpr check zookeeper_server_rows[] = {
    {.name = "answer", .value_name = "answer", .judge = &judge_answer},
    {.name = "version", .value_name = "version", .judge = &judge_zookeeper_version},
    {.name = "mode", .value_name = "mode", .judge = &judge_mode},
    {.name = "round trip", .value_name = "round_trip", .unit = " ms", .judge = &judge_round_trip},
    {.name = "tickTime", .value_name = "tickTime", .unit = " ms", .command = conf_command, .judge = &judge_tick},
    {.name = "session timeouts",
        .value_name = "session_limits",
        .unit = " ms",
        .command = conf_command,
        .judge = &judge_session_limits},
};

constexpr check ensemble_rows[] = {
    {.name = "servers of the ensemble", .value_name = "members", .judge = &judge_members},
    {.name = "servers in the URL", .value_name = "named", .judge = &judge_named},
    {.name = "servers that answer", .value_name = "answering", .judge = &judge_answering},
    {.name = "limits of sessions", .value_name = "limits", .judge = &judge_limits},
    {.name = "followers in sync",
        .value_name = "zk_synced_followers",
        .command = "echo mntr | nc HOST PORT on the leader, and add mntr to 4lw.commands.whitelist",
        .judge = &judge_synced,
        .applies = [](const server_values& values) { return values.number("members").value_or(0) > 1; }},
    {.name = "session in ticks", .value_name = "ticks", .warning = "less than four of the server's ticks"},
    {.name = "granted sessions", .value_name = "granted", .warning = "a server grants sessions of"},
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
