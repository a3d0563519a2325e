// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"
#include "command/doctor/common_checks.hpp"

namespace command {

namespace {

judgement judge_mongo_version(const server_values& values)
{
    if (version::parse(values.text("version")) >= version{5, 0})
        return {};
    return {verdict::fail, "install MongoDB 5.0 or later"};
}

bool is_in_set(const server_values& values)
{
    return values.has("setName");
}

judgement judge_set(const server_values& values)
{
    if (is_in_set(values))
        return {};
    return {verdict::warn, "a crash loses writes that have no other copy, nothing takes over, and waiters poll; run a "
                           "replica set of 3 members"};
}

judgement judge_member_count(const server_values& values)
{
    if (values.number("members") >= 3)
        return {};
    return {
        verdict::warn, "if one member fails, no majority confirms writes, and locks are unavailable; run 3 members"};
}

judgement judge_arbiters(const server_values& values)
{
    if (values.number("arbiters") == 0)
        return {};
    return {verdict::warn, "arbiters keep no data: if one other member fails, no majority may confirm writes; replace "
                           "them by members with data"};
}

judgement judge_journal(const server_values& values)
{
    if (values.text("writeConcernMajorityJournalDefault") == "true")
        return {};
    return {verdict::fail, "a write that a majority has confirmed may be lost in a crash; set "
                           "writeConcernMajorityJournalDefault to true"};
}

judgement judge_storage(const server_values& values)
{
    if (values.text("persistent") != "false")
        return {};
    return {verdict::warn, "this storage engine keeps nothing on disk: a restart of the members loses the locks"};
}

judgement judge_spread(const server_values& values)
{
    if (values.number("clock_spread").value_or(0) <= 250)
        return {};
    return {verdict::warn, "an election may end leases early by so much; synchronize the members by NTP, or set "
                           "max_clock_lead to more"};
}

judgement judge_state(const server_values& values)
{
    if (values.text("state") == "primary" || values.text("state") == "secondary")
        return {};
    return {verdict::warn, "this member confirms no writes; look at rs.status()"};
}

constexpr check primary_rows[] = {
    {.name = "replica set", .value_name = "set", .judge = &judge_set},
    {.name = "members", .value_name = "members", .judge = &judge_member_count, .applies = &is_in_set},
    {.name = "arbiters", .value_name = "arbiters", .judge = &judge_arbiters, .applies = &is_in_set},
    {.name = "majority on disk",
        .value_name = "writeConcernMajorityJournalDefault",
        .command = "mongosh --eval 'rs.conf().writeConcernMajorityJournalDefault'",
        .judge = &judge_journal,
        .applies = &is_in_set},
    {.name = "storage engine",
        .value_name = "storage_engine",
        .command = "mongosh --eval 'db.serverStatus().storageEngine'",
        .judge = &judge_storage},
    {.name = "change streams", .value_name = "waiting", .warning = "change streams"},
    {.name = "right listCollections",
        .value_name = "listCollections",
        .command = "mongosh --eval 'db.getCollectionInfos()'"},
    {.name = "clocks of the members", .value_name = "clock_spread", .unit = " ms apart", .judge = &judge_spread},
    {.name = "clock of updates", .value_name = "update_clock", .warning = "the clock of its updates"},
};

constexpr check member_rows[] = {
    {.name = "answer", .value_name = "answer", .judge = &judge_answer},
    {.name = "state", .value_name = "state", .judge = &judge_state},
    {.name = "version",
        .value_name = "version",
        .command = "mongosh --eval 'db.version()'",
        .judge = &judge_mongo_version,
        .applies = [](const server_values& values) { return values.text("answer") == "yes"; }},
    {.name = "clock", .value_name = "clock_offset", .unit = clock_unit, .judge = &judge_clock},
    {.name = "round trip", .value_name = "round_trip", .unit = " ms", .judge = &judge_round_trip},
};

} // namespace

std::span<const check> mongo_checks()
{
    return primary_rows;
}

std::span<const check> mongo_member_checks()
{
    return member_rows;
}

} // namespace command
