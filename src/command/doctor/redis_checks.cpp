// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"
#include "command/doctor/common_checks.hpp"

namespace command {

namespace {

judgement judge_redis_version(const facts& known)
{
    if (version::parse(known.text("redis_version")) >= version{6, 2})
        return {};
    return {verdict::fail, "install Redis 6.2 or later"};
}

judgement judge_role(const facts& known)
{
    if (known.text("role") == "master")
        return {};
    return {verdict::fail, "locks need the master: give its address, or those of the Sentinels (redis+sentinel://)"};
}

judgement judge_append_status(const facts& known)
{
    if (known.text("aof_last_write_status") == "ok")
        return {};
    return {verdict::fail, "the append-only file cannot be written; look for a full disk in the server's log"};
}

judgement judge_append_sync(const facts& known)
{
    if (known.text("appendfsync") == "always")
        return {};
    return {verdict::warn, "a crash gives the latest locks to a second holder; set appendfsync always"};
}

judgement judge_max_lag(const facts& known)
{
    if (known.number("min-replicas-max-lag") <= 10)
        return {};
    return {
        verdict::warn, "a master that is cut off grants locks for so long; set min-replicas-max-lag to a few seconds"};
}

judgement judge_link(const facts& known)
{
    if (known.text("master_link_status") == "up")
        return {};
    return {
        verdict::warn, "this replica does not receive the locks, which are lost if it is promoted; look at its log"};
}

bool has_append_file(const facts& known)
{
    return known.text("aof_enabled") == "1";
}

bool has_replicas(const facts& known)
{
    return known.number("connected_slaves").value_or(0) > 0;
}

judgement judge_sentinel_count(const facts& known)
{
    if (known.number("sentinels") >= 3)
        return {};
    return {
        verdict::warn, "if one of them fails, there is no failover; run at least 3 Sentinels on different machines"};
}

judgement judge_quorum(const facts& known)
{
    if (known.number("quorum") <= known.number("sentinels"))
        return {};
    return {verdict::fail, "fewer Sentinels are known, so there is no failover; start more, or lower the quorum"};
}

judgement judge_usable(const facts& known)
{
    if (known.text("usable").starts_with("OK"))
        return {};
    return {verdict::fail, "too few Sentinels can be reached, so there is no failover; start the others"};
}

judgement judge_flags(const facts& known)
{
    if (known.text("flags") == "master")
        return {};
    return {verdict::fail, "the Sentinel cannot reach the master, or a failover is in progress"};
}

judgement judge_replicas(const facts& known)
{
    if (known.number("num-slaves") > 0)
        return {};
    return {verdict::warn, "no replica can take over if the master fails; add one"};
}

constexpr check redis_server_rows[] = {
    {.name = "answer", .fact = "answer", .judge = &judge_answer},
    {.name = "version", .fact = "redis_version", .command = "redis-cli INFO server", .judge = &judge_redis_version},
    {.name = "role", .fact = "role", .command = "redis-cli INFO replication", .judge = &judge_role},
    {.name = "mode", .fact = "redis_mode", .command = "redis-cli INFO server", .warning = "a node of a Redis Cluster"},
    {.name = "maxmemory-policy",
        .fact = "maxmemory_policy",
        .command = "redis-cli CONFIG GET maxmemory-policy",
        .warning = "may evict locks",
        .if_warned = verdict::fail},
    {.name = "appendonly",
        .fact = "appendonly",
        .command = "redis-cli CONFIG GET appendonly",
        .warning = "no append-only file"},
    {.name = "append-only file",
        .fact = "aof_last_write_status",
        .judge = &judge_append_status,
        .applies = &has_append_file},
    {.name = "appendfsync",
        .fact = "appendfsync",
        .command = "redis-cli CONFIG GET appendfsync",
        .judge = &judge_append_sync,
        .applies = &has_append_file},
    {.name = "replicas",
        .fact = "connected_slaves",
        .command = "redis-cli INFO replication",
        .warning = "the server has replicas"},
    {.name = "min-replicas-to-write",
        .fact = "min-replicas-to-write",
        .command = "redis-cli CONFIG GET min-replicas-to-write",
        .warning = "min-replicas-to-write is not set",
        .applies = &has_replicas},
    {.name = "min-replicas-max-lag",
        .fact = "min-replicas-max-lag",
        .unit = " s",
        .command = "redis-cli CONFIG GET min-replicas-max-lag",
        .judge = &judge_max_lag,
        .applies = &has_replicas},
    {.name = "clock", .fact = "clock_offset", .unit = clock_unit, .command = "redis-cli TIME", .judge = &judge_clock},
    {.name = "round trip", .fact = "round_trip", .unit = " ms", .judge = &judge_round_trip},
    {.name = "right INFO", .warning = "INFO is not allowed"},
    {.name = "right SUBSCRIBE", .warning = "messages of releases"},
    {.name = "right PUBLISH", .warning = "PUBLISH is refused"},
    {.name = "right CLIENT KILL", .warning = "CLIENT KILL is not allowed"},
    {.name = "rights of shared locks", .warning = "shared locks and locks of groups are refused"},
};

constexpr check replica_rows[] = {
    {.name = "answer", .fact = "answer", .judge = &judge_answer},
    {.name = "version", .fact = "redis_version", .command = "redis-cli INFO server", .judge = &judge_redis_version},
    {.name = "link to the master",
        .fact = "master_link_status",
        .command = "redis-cli INFO replication",
        .judge = &judge_link},
    {.name = "clock", .fact = "clock_offset", .unit = clock_unit, .command = "redis-cli TIME", .judge = &judge_clock},
};

constexpr check sentinel_rows[] = {
    {.name = "answer", .fact = "answer", .judge = &judge_answer},
    {.name = "master", .fact = "flags", .judge = &judge_flags},
    {.name = "Sentinels", .fact = "sentinels", .judge = &judge_sentinel_count},
    {.name = "quorum", .fact = "quorum", .judge = &judge_quorum},
    {.name = "usable", .fact = "usable", .judge = &judge_usable},
    {.name = "replicas", .fact = "num-slaves", .judge = &judge_replicas},
};

} // namespace

std::span<const check> redis_checks()
{
    return redis_server_rows;
}

std::span<const check> redis_replica_checks()
{
    return replica_rows;
}

std::span<const check> sentinel_checks()
{
    return sentinel_rows;
}

} // namespace command
