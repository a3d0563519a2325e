// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"
#include "command/doctor/common_checks.hpp"

namespace command {

namespace {

judgement judge_redis_version(const server_values& values)
{
    if (version::parse(values.text("redis_version")) >= version{6, 2})
        return {};
    return {verdict::fail, "install Redis 6.2 or later"};
}

judgement judge_role(const server_values& values)
{
    if (values.text("role") == "master")
        return {};
    return {verdict::fail, "locks need the master: give its address, or those of the Sentinels (redis+sentinel://)"};
}

judgement judge_append_status(const server_values& values)
{
    if (values.text("aof_last_write_status") == "ok")
        return {};
    return {verdict::fail, "the append-only file cannot be written; look for a full disk in the server's log"};
}

judgement judge_append_sync(const server_values& values)
{
    if (values.text("appendfsync") == "always")
        return {};
    return {verdict::warn, "a crash gives the latest locks to a second holder; set appendfsync always"};
}

judgement judge_max_lag(const server_values& values)
{
    if (values.number("min-replicas-max-lag") <= 10)
        return {};
    return {
        verdict::warn, "a master that is cut off grants locks for so long; set min-replicas-max-lag to a few seconds"};
}

judgement judge_link(const server_values& values)
{
    if (values.text("master_link_status") == "up")
        return {};
    return {
        verdict::warn, "this replica does not receive the locks, which are lost if it is promoted; look at its log"};
}

judgement judge_cluster_state(const server_values& values)
{
    if (values.text("cluster_state") == "ok")
        return {};
    return {verdict::fail, "the cluster serves no locks now; look at redis-cli --cluster check"};
}

judgement judge_slots(const server_values& values)
{
    if (values.number("cluster_slots_ok") == 16384)
        return {};
    return {verdict::fail, "some slots have no master that can be reached, so their locks cannot be acquired"};
}

judgement judge_full_coverage(const server_values& values)
{
    if (values.text("cluster-require-full-coverage") == "no")
        return {};
    return {verdict::warn, "a master that fails stops the locks of all masters until it is replaced; set "
                           "cluster-require-full-coverage no"};
}

judgement judge_node_timeout(const server_values& values)
{
    if (values.number("cluster-node-timeout") > 1000)
        return {};
    return {verdict::warn, "a master that was stopped and replaced may be believed once more; set it above 1000, twice "
                           "the health_interval"};
}

bool has_append_file(const server_values& values)
{
    return values.text("aof_enabled") == "1";
}

bool has_replicas(const server_values& values)
{
    return values.number("connected_slaves").value_or(0) > 0;
}

judgement judge_sentinel_count(const server_values& values)
{
    if (values.number("sentinels") >= 3)
        return {};
    return {
        verdict::warn, "if one of them fails, there is no failover; run at least 3 Sentinels on different machines"};
}

judgement judge_quorum(const server_values& values)
{
    if (values.number("quorum") <= values.number("sentinels"))
        return {};
    return {verdict::fail, "fewer Sentinels are known, so there is no failover; start more, or lower the quorum"};
}

judgement judge_usable(const server_values& values)
{
    if (values.text("usable").starts_with("OK"))
        return {};
    return {verdict::fail, "too few Sentinels can be reached, so there is no failover; start the others"};
}

judgement judge_flags(const server_values& values)
{
    if (values.text("flags") == "master")
        return {};
    return {verdict::fail, "the Sentinel cannot reach the master, or a failover is in progress"};
}

judgement judge_replicas(const server_values& values)
{
    if (values.number("num-slaves") > 0)
        return {};
    return {verdict::warn, "no replica can take over if the master fails; add one"};
}

constexpr check redis_server_rows[] = {
    {.name = "answer", .value_name = "answer", .judge = &judge_answer},
    {.name = "version",
        .value_name = "redis_version",
        .command = "redis-cli INFO server",
        .judge = &judge_redis_version},
    {.name = "role", .value_name = "role", .command = "redis-cli INFO replication", .judge = &judge_role},
    {.name = "mode",
        .value_name = "redis_mode",
        .command = "redis-cli INFO server",
        .warning = "a node of a Redis Cluster"},
    {.name = "maxmemory-policy",
        .value_name = "maxmemory_policy",
        .command = "redis-cli CONFIG GET maxmemory-policy",
        .warning = "may evict locks",
        .if_warned = verdict::fail},
    {.name = "appendonly",
        .value_name = "appendonly",
        .command = "redis-cli CONFIG GET appendonly",
        .warning = "no append-only file"},
    {.name = "append-only file",
        .value_name = "aof_last_write_status",
        .judge = &judge_append_status,
        .applies = &has_append_file},
    {.name = "appendfsync",
        .value_name = "appendfsync",
        .command = "redis-cli CONFIG GET appendfsync",
        .judge = &judge_append_sync,
        .applies = &has_append_file},
    {.name = "replicas",
        .value_name = "connected_slaves",
        .command = "redis-cli INFO replication",
        .warning = "the server has replicas"},
    {.name = "min-replicas-to-write",
        .value_name = "min-replicas-to-write",
        .command = "redis-cli CONFIG GET min-replicas-to-write",
        .warning = "min-replicas-to-write is not set",
        .applies = &has_replicas},
    {.name = "min-replicas-max-lag",
        .value_name = "min-replicas-max-lag",
        .unit = " s",
        .command = "redis-cli CONFIG GET min-replicas-max-lag",
        .judge = &judge_max_lag,
        .applies = &has_replicas},
    {.name = "clock",
        .value_name = "clock_offset",
        .unit = clock_unit,
        .command = "redis-cli TIME",
        .judge = &judge_clock},
    {.name = "round trip", .value_name = "round_trip", .unit = " ms", .judge = &judge_round_trip},
    {.name = "right INFO", .warning = "INFO is not allowed"},
    {.name = "right SUBSCRIBE", .warning = "messages of releases"},
    {.name = "right PUBLISH", .warning = "PUBLISH is refused"},
    {.name = "right CLIENT KILL", .warning = "CLIENT KILL is not allowed"},
    {.name = "rights of shared locks", .warning = "shared locks and locks of groups are refused"},
};

constexpr check replica_rows[] = {
    {.name = "answer", .value_name = "answer", .judge = &judge_answer},
    {.name = "version",
        .value_name = "redis_version",
        .command = "redis-cli INFO server",
        .judge = &judge_redis_version},
    {.name = "link to the master",
        .value_name = "master_link_status",
        .command = "redis-cli INFO replication",
        .judge = &judge_link},
    {.name = "clock",
        .value_name = "clock_offset",
        .unit = clock_unit,
        .command = "redis-cli TIME",
        .judge = &judge_clock},
};

constexpr check sentinel_rows[] = {
    {.name = "answer", .value_name = "answer", .judge = &judge_answer},
    {.name = "master", .value_name = "flags", .judge = &judge_flags},
    {.name = "Sentinels", .value_name = "sentinels", .judge = &judge_sentinel_count},
    {.name = "quorum", .value_name = "quorum", .judge = &judge_quorum},
    {.name = "usable", .value_name = "usable", .judge = &judge_usable},
    {.name = "replicas of the master", .value_name = "num-slaves", .judge = &judge_replicas},
};

constexpr check unreachable_node_rows[] = {
    {.name = "answer", .value_name = "answer", .judge = &judge_answer},
};

constexpr check cluster_rows[] = {
    {.name = "answer", .value_name = "answer", .judge = &judge_answer},
    {.name = "state",
        .value_name = "cluster_state",
        .command = "redis-cli CLUSTER INFO",
        .judge = &judge_cluster_state},
    {.name = "served slots",
        .value_name = "cluster_slots_ok",
        .command = "redis-cli CLUSTER INFO",
        .judge = &judge_slots},
    {.name = "full coverage",
        .value_name = "cluster-require-full-coverage",
        .command = "redis-cli CONFIG GET cluster-require-full-coverage",
        .judge = &judge_full_coverage},
    {.name = "node timeout",
        .value_name = "cluster-node-timeout",
        .unit = " ms",
        .command = "redis-cli CONFIG GET cluster-node-timeout",
        .judge = &judge_node_timeout},
};

} // namespace

std::span<const check> unreachable_node_checks()
{
    return unreachable_node_rows;
}

std::span<const check> cluster_checks()
{
    return cluster_rows;
}

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
