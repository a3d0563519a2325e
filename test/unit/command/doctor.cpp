// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"
#include "command/doctor/report.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(doctor)

namespace {

using command::adapter_warnings;
using command::finding;
using command::server_values;
using command::verdict;

server_values values_of(std::initializer_list<std::pair<std::string_view, std::string>> values)
{
    server_values result;
    for (const auto& [name, value] : values)
        result.set(name, value);
    return result;
}

finding line_of(const std::vector<finding>& lines, std::string_view check)
{
    const auto found = std::ranges::find(lines, check, &finding::check);
    BOOST_REQUIRE_MESSAGE(found != lines.end(), "there is no line '" << check << "'");
    return *found;
}

std::string word(verdict result)
{
    return result == verdict::ok ? "ok" : result == verdict::warn ? "warn" : "fail";
}

/// Result of one line of a table for the given values.
std::string result_of(std::span<const command::check> rows, std::string_view check,
    std::initializer_list<std::pair<std::string_view, std::string>> values)
{
    return word(line_of(command::examine("server", rows, values_of(values)), check).result);
}

bool has_line(const std::vector<finding>& lines, std::string_view check)
{
    return std::ranges::find(lines, check, &finding::check) != lines.end();
}

} // namespace

BOOST_AUTO_TEST_CASE(warning_of_the_adapter_is_reported_in_the_line_of_its_setting)
{
    const auto lines =
        command::examine("server", command::redis_checks(), values_of({{"maxmemory_policy", "allkeys-lru"}}),
            {.texts = {"the server may evict locks (maxmemory-policy allkeys-lru); set it to noeviction"}});
    const auto line = line_of(lines, "maxmemory-policy");
    BOOST_TEST(word(line.result) == "fail");
    BOOST_TEST(line.value == "allkeys-lru");
    BOOST_TEST(line.remedy.find("set it to noeviction") != std::string::npos);
    BOOST_TEST(!has_line(lines, "warning"));
}

BOOST_AUTO_TEST_CASE(warning_without_a_line_gets_its_own)
{
    const auto lines = command::examine("server", command::redis_checks(), {}, {.texts = {"something else"}});
    const auto line = line_of(lines, "warning");
    BOOST_TEST(word(line.result) == "warn");
    BOOST_TEST(line.remedy == "something else");
}

BOOST_AUTO_TEST_CASE(missing_warning_proves_nothing_without_a_connection)
{
    const auto lines = command::examine(
        "server", command::redis_checks(), values_of({{"maxmemory_policy", "noeviction"}}), {.are_complete = false});
    BOOST_TEST(word(line_of(lines, "maxmemory-policy").result) == "warn");
    BOOST_TEST(line_of(lines, "right PUBLISH").remedy.find("not checked") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(value_that_may_not_be_read_names_the_error_and_the_command)
{
    server_values values = values_of({{"aof_enabled", "1"}});
    values.set_unknown("appendfsync", "NOPERM");
    const auto line = line_of(command::examine("server", command::redis_checks(), values), "appendfsync");
    BOOST_TEST(word(line.result) == "warn");
    BOOST_TEST(line.remedy == "not checked (NOPERM); run redis-cli CONFIG GET appendfsync");
}

BOOST_AUTO_TEST_CASE(server_that_does_not_answer_has_one_line)
{
    const auto lines =
        command::examine("server", command::zookeeper_checks(), values_of({{"answer", "no"}, {"cause", "refused"}}));
    BOOST_TEST_REQUIRE(lines.size() == 1U);
    BOOST_TEST(word(lines[0].result) == "warn");
    BOOST_TEST(lines[0].remedy.find("refused") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(lock_that_fails_is_a_failure)
{
    const auto rows = command::lock_checks();
    BOOST_TEST(result_of(rows, "locking", {{"locking", "works"}}) == "ok");
    BOOST_TEST(result_of(rows, "locking", {{"locking", "fails"}, {"failure", "why"}}) == "fail");
    BOOST_TEST(result_of(rows, "acquire", {{"lock_time", "499.99"}}) == "ok");
    BOOST_TEST(result_of(rows, "acquire", {{"lock_time", "500.00"}}) == "warn");
}

BOOST_AUTO_TEST_CASE(redis_settings)
{
    const auto rows = command::redis_checks();
    BOOST_TEST(result_of(rows, "version", {{"redis_version", "6.2.0"}}) == "ok");
    BOOST_TEST(result_of(rows, "version", {{"redis_version", "10.0"}}) == "ok");
    BOOST_TEST(result_of(rows, "version", {{"redis_version", "6.0.9"}}) == "fail");
    BOOST_TEST(result_of(rows, "role", {{"role", "slave"}}) == "fail");
    BOOST_TEST(result_of(rows, "appendfsync", {{"aof_enabled", "1"}, {"appendfsync", "everysec"}}) == "warn");
    BOOST_TEST(result_of(rows, "appendfsync", {{"aof_enabled", "1"}, {"appendfsync", "always"}}) == "ok");
    BOOST_TEST(result_of(rows, "append-only file", {{"aof_enabled", "1"}, {"aof_last_write_status", "err"}}) == "fail");
    BOOST_TEST(
        !has_line(command::examine("server", rows, values_of({{"aof_enabled", "0"}, {"appendfsync", "everysec"}})),
            "appendfsync"));
    BOOST_TEST(
        result_of(rows, "min-replicas-max-lag", {{"connected_slaves", "1"}, {"min-replicas-max-lag", "60"}}) == "warn");
    BOOST_TEST(result_of(rows, "clock", {{"clock_offset", "-250"}}) == "ok");
    BOOST_TEST(result_of(rows, "clock", {{"clock_offset", "-251"}}) == "warn");
    BOOST_TEST(result_of(rows, "clock", {{"clock_offset", "251"}}) == "warn");
    BOOST_TEST(result_of(rows, "round trip", {{"round_trip", "101.00"}}) == "warn");
    BOOST_TEST(
        result_of(command::redis_replica_checks(), "link to the master", {{"master_link_status", "down"}}) == "warn");
}

BOOST_AUTO_TEST_CASE(sentinels)
{
    const auto rows = command::sentinel_checks();
    BOOST_TEST(result_of(rows, "Sentinels", {{"sentinels", "2"}}) == "warn");
    BOOST_TEST(result_of(rows, "Sentinels", {{"sentinels", "3"}}) == "ok");
    BOOST_TEST(result_of(rows, "quorum", {{"quorum", "4"}, {"sentinels", "3"}}) == "fail");
    BOOST_TEST(result_of(rows, "usable", {{"usable", "NOQUORUM 1 usable Sentinels."}}) == "fail");
    BOOST_TEST(result_of(rows, "usable", {{"usable", "OK 3 usable Sentinels."}}) == "ok");
    BOOST_TEST(result_of(rows, "master", {{"flags", "master,s_down"}}) == "fail");
    BOOST_TEST(result_of(rows, "replicas of the master", {{"num-slaves", "0"}}) == "warn");
}

BOOST_AUTO_TEST_CASE(zookeeper_servers)
{
    const auto rows = command::zookeeper_checks();
    BOOST_TEST(result_of(rows, "version", {{"version", "3.5.9"}}) == "fail");
    BOOST_TEST(result_of(rows, "mode", {{"mode", "standalone"}}) == "warn");
    BOOST_TEST(result_of(rows, "mode", {{"mode", "follower"}}) == "ok");
    BOOST_TEST(result_of(rows, "tickTime", {{"tickTime", "3000"}, {"server_tick", "2000"}}) == "fail");
    BOOST_TEST(result_of(rows, "tickTime", {{"tickTime", "2000"}, {"server_tick", "2000"}}) == "ok");
    const auto session = [&rows](std::string timeout) {
        return result_of(rows, "session timeouts",
            {{"session_limits", "4000 to 40000"}, {"minSessionTimeout", "4000"}, {"maxSessionTimeout", "40000"},
                {"session_timeout", std::move(timeout)}});
    };
    BOOST_TEST(session("3999") == "warn");
    BOOST_TEST(session("4000") == "ok");
    BOOST_TEST(session("40001") == "warn");
}

BOOST_AUTO_TEST_CASE(zookeeper_ensembles)
{
    const auto rows = command::ensemble_checks();
    for (const auto& [members, expected] :
        {std::pair("1", "warn"), std::pair("2", "warn"), std::pair("3", "ok"), std::pair("4", "warn")})
        BOOST_TEST(result_of(rows, "servers of the ensemble", {{"members", members}}) == expected);
    BOOST_TEST(result_of(rows, "servers in the URL", {{"named", "1"}, {"members", "3"}}) == "warn");
    BOOST_TEST(result_of(rows, "servers that answer", {{"named", "3"}, {"answering", "2"}}) == "warn");
    BOOST_TEST(result_of(rows, "limits of sessions", {{"limits", "different"}}) == "fail");
    BOOST_TEST(
        result_of(rows, "limits of sessions", {{"limits", "different"}, {"smallest_session_timeout", "4000"}}) == "ok");
    BOOST_TEST(result_of(rows, "followers in sync", {{"members", "3"}, {"zk_synced_followers", "1"}}) == "warn");
    BOOST_TEST(result_of(rows, "followers in sync", {{"members", "3"}, {"zk_synced_followers", "2"}}) == "ok");
}

BOOST_AUTO_TEST_CASE(mongo_replica_sets)
{
    const auto rows = command::mongo_checks();
    BOOST_TEST(result_of(rows, "replica set", {{"set", "none"}}) == "warn");
    BOOST_TEST(result_of(rows, "members", {{"setName", "rs0"}, {"members", "2"}}) == "warn");
    BOOST_TEST(result_of(rows, "arbiters", {{"setName", "rs0"}, {"arbiters", "1"}}) == "warn");
    BOOST_TEST(result_of(rows, "majority on disk",
                   {{"setName", "rs0"}, {"writeConcernMajorityJournalDefault", "false"}}) == "fail");
    BOOST_TEST(result_of(rows, "storage engine", {{"storage_engine", "inMemory"}, {"persistent", "false"}}) == "warn");
    BOOST_TEST(result_of(rows, "clocks of the members", {{"clock_spread", "251"}}) == "warn");
    const auto members = command::mongo_member_checks();
    BOOST_TEST(result_of(members, "version", {{"answer", "yes"}, {"version", "4.4.1"}}) == "fail");
    BOOST_TEST(result_of(members, "state", {{"state", "arbiter"}}) == "warn");
    BOOST_TEST(result_of(members, "state", {{"state", "secondary"}}) == "ok");
    const auto denied = command::examine("server", rows, values_of({{"waiting", "not used: waiters poll"}}),
        {.texts = {"this user may not have change streams (code 13), so waiters poll; grant find and changeStream"}});
    BOOST_TEST(word(line_of(denied, "change streams").result) == "warn");
}

BOOST_AUTO_TEST_CASE(report)
{
    const std::vector<finding> lines{{.server = "a:1", .check = "role", .value = "master"},
        {.result = verdict::fail, .server = "a:1", .check = "appendonly", .value = "no", .remedy = "\"why\""}};
    std::ostringstream table;
    command::print_table(table, lines, false);
    BOOST_TEST(table.str() == "OK    role        master\nFAIL  appendonly  no: \"why\"\n");
    std::ostringstream coloured;
    command::print_table(coloured, lines, true);
    BOOST_TEST(coloured.str().find("\033[31mFAIL\033[0m") != std::string::npos);
    std::ostringstream json;
    command::print_json(json, lines);
    BOOST_TEST(json.str() == R"({"result":"ok","server":"a:1","check":"role","value":"master","remedy":""})"
                             "\n"
                             R"({"result":"fail","server":"a:1","check":"appendonly","value":"no","remedy":"\"why\""})"
                             "\n");
}

BOOST_AUTO_TEST_SUITE_END()
