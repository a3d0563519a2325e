// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/server_check.hpp"
#include "redis/failures.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {
namespace {

reply text(std::string value)
{
    return {.what = reply::kind::text, .text = std::move(value)};
}

reply error(std::string value)
{
    return {.what = reply::kind::error, .text = std::move(value)};
}

reply hello(std::string role)
{
    return {.what = reply::kind::array,
        .items = {text("id"), {.what = reply::kind::number, .number = 71}, text("role"), text(std::move(role))}};
}

std::string safe_server(std::string version = "7.2.4")
{
    return "# Server\r\nredis_version:" + version +
           "\r\nrun_id:abc\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\nconnected_slaves:0\r\n";
}

greeting_result read(reply_list replies)
{
    return read_greeting({}, replies);
}

errc code_of(const greeting_result& result)
{
    BOOST_TEST_REQUIRE(result.refused);
    return result.refused->code;
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_server_check)

BOOST_AUTO_TEST_CASE(standalone_master_is_accepted)
{
    const auto result = read({hello("master"), text(safe_server())});
    BOOST_TEST(!result.refused);
    BOOST_TEST(result.identity.id == 71);
    BOOST_TEST(result.identity.process == "abc");
    BOOST_TEST(result.warnings.empty());
}

BOOST_AUTO_TEST_CASE(temporary_and_permanent_errors_are_distinguished)
{
    BOOST_TEST((code_of(read({error("LOADING"), text({})})) == errc::unavailable));
    BOOST_TEST((code_of(read({error("WRONGPASS"), text({})})) == errc::access_denied));
    BOOST_TEST((code_of(read({text("hello"), text({})})) == errc::misconfigured_backend));
    BOOST_TEST((code_of(read({hello("slave"), text(safe_server())})) == errc::unavailable));
    BOOST_TEST((code_of(read({hello("master"), error("LOADING")})) == errc::unavailable));
    BOOST_TEST((code_of(read({hello("master"), text(safe_server("6.0.20"))})) == errc::misconfigured_backend));
    BOOST_TEST(!read({hello("master"), text(safe_server("6.2.0"))}).refused);
}

BOOST_AUTO_TEST_CASE(refused_database_is_not_used)
{
    const location second{.database = 2};
    const auto result = read_greeting(second, {hello("master"), error("ERR DB index is out of range"), text({})});
    BOOST_TEST((code_of(result) == errc::misconfigured_backend));
    BOOST_TEST(!read_greeting(second, {hello("master"), text("OK"), text(safe_server())}).refused);
}

BOOST_AUTO_TEST_CASE(server_without_info_is_used_with_a_warning)
{
    const auto result = read({hello({}), error("NOPERM")});
    BOOST_TEST(!result.refused);
    BOOST_TEST(result.identity.process.empty());
    BOOST_TEST_REQUIRE(result.warnings.size() == 1U);
    BOOST_TEST(result.warnings[0].starts_with("INFO is not allowed"));
}

BOOST_AUTO_TEST_CASE(settings_that_may_lose_locks_are_warned_of)
{
    const auto warnings = [](const std::string& info) { return read({hello("master"), text(info)}).warnings; };
    BOOST_TEST(warnings("maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\nconnected_slaves:2\r\n").size() == 4U);
    BOOST_TEST(warnings("connected_slaves:2\r\nmin_slaves_good_slaves:2\r\n").size() == 1U);
}

BOOST_AUTO_TEST_CASE(server_may_have_replicas_if_reported_or_unknown)
{
    const auto may_have = [](reply info) { return read({hello("master"), std::move(info)}).may_have_replicas; };
    BOOST_TEST(!may_have(text(safe_server())));
    BOOST_TEST(may_have(text("connected_slaves:1\r\n")));
    BOOST_TEST(!may_have(text({})));
    BOOST_TEST(may_have(error("NOPERM")));
}

BOOST_AUTO_TEST_CASE(a_node_of_a_cluster_is_warned_of)
{
    auto greeting = hello("master");
    greeting.items.push_back(text("mode"));
    greeting.items.push_back(text("standalone"));
    BOOST_TEST(read({greeting, text(safe_server())}).warnings.empty());
    greeting.items.back() = text("cluster");
    const auto result = read({greeting, text(safe_server())});
    BOOST_TEST(!result.refused);
    BOOST_TEST(result.in_cluster);
    BOOST_TEST_REQUIRE(result.warnings.size() == 1U);
    BOOST_TEST(result.warnings[0].find("Cluster") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(refused_commands_of_each_server_version_are_recognized)
{
    for (const char* const refused : {
             // Redis 6.2, in a script and outside.
             "@user_script: 4: The user executing the script can't run this command or subcommand",
             "@user_script: 4: Unknown Redis command called from Lua script",
             "NOPERM this user has no permissions to run the 'evalsha' command or its subcommand",
             "ERR unknown command `EVALSHA`, with args beginning with: `x`, ",
             // Redis 7.0.
             "ERR The user executing the script can't run this command or subcommand",
             "ERR Unknown Redis command called from script",
             "NOPERM this user has no permissions to run the 'evalsha' command",
             "ERR unknown command 'EVALSHA', with args beginning with: 'x' ",
             // Redis 7.2, Valkey 8.
             "ERR ACL failure in script: User app has no permissions to run the 'del' command",
             "NOPERM User app has no permissions to run the 'evalsha' command",
             "ERR Unknown command called from script",
         })
        BOOST_TEST(is_command_refused(refused), refused);
    for (const char* const other : {
             "@user_script: 4: The user executing the script can't access at least one of the keys mentioned in the "
             "command arguments",
             "ERR The user executing the script can't publish to the channel mentioned in the command",
             "ERR ACL failure in script: User app has no permissions to access one of the keys used as arguments",
             "NOPERM this user has no permissions to access one of the channels used as arguments",
             "OOM command not allowed when used memory > 'maxmemory'.",
             "READONLY You can't write against a read only replica.",
             "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk.",
             "WRONGTYPE Operation against a key holding the wrong kind of value",
             "NOSCRIPT No matching script. Please use EVAL.",
         })
        BOOST_TEST(!is_command_refused(other), other);
}

BOOST_AUTO_TEST_CASE(rights_check_ignores_errors_other_than_refusals)
{
    const auto row = [](std::string command, std::string why) {
        return reply{.what = reply::kind::array, .items = {text(std::move(command)), text(std::move(why))}};
    };
    const auto rows = [](std::vector<reply> all) { return reply{.what = reply::kind::array, .items = std::move(all)}; };
    const std::string denied = "ERR The user executing the script can't run this command or subcommand";
    const auto none = rows({});

    BOOST_TEST(!read_rights(none, none).refused);
    BOOST_TEST(!read_rights(none, error("NOSCRIPT No matching script.")).refused);
    BOOST_TEST(
        !read_rights(rows({row("DEL", "READONLY You can't"), row("SET", "OOM command not allowed")}), none).refused);

    const auto needed = read_rights(rows({row("DEL", denied), row("PEXPIRE", denied), row("ZADD", denied)}), none);
    BOOST_TEST_REQUIRE(needed.refused);
    BOOST_TEST((needed.refused->code == errc::access_denied));
    BOOST_TEST(needed.refused->detail.find("DEL, PEXPIRE,") != std::string::npos);

    const auto less = read_rights(rows({row("PUBLISH", denied), row("ZADD", denied), row("PEXPIREAT", denied)}), none);
    BOOST_TEST(!less.refused);
    BOOST_TEST(less.warnings.size() == 2U);

    for (const char* const word : {"EVAL", "EVALSHA"}) {
        const auto unknown = error("ERR unknown command '" + std::string(word) + "', with args beginning with: 'x' ");
        const auto result = word == std::string("EVAL") ? read_rights(unknown, unknown) : read_rights(none, unknown);
        BOOST_TEST_REQUIRE(result.refused);
        BOOST_TEST((result.refused->code == errc::access_denied));
        BOOST_TEST(result.refused->detail.find(std::string(word) + ",") != std::string::npos);
        BOOST_TEST(result.refused->detail.find("with args") == std::string::npos);
    }
    BOOST_TEST((read_rights(error("BUSY Redis is busy"), none).refused->code == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(a_field_is_found_by_its_whole_name_at_the_start_of_a_line)
{
    BOOST_TEST(info_field("old_run_id:x\r\nrun_id:y\r\n", "run_id") == "y");
    BOOST_TEST(info_field("run_identity:x\r\nrun_id:y", "run_id") == "y");
    BOOST_TEST(info_field("a:run_id", "run_id").empty());
    BOOST_TEST(info_field("run_id", "run_id").empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
