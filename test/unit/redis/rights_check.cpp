// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/rights_check.hpp"
#include "redis/failures.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

BOOST_AUTO_TEST_SUITE(redis_rights_check)

namespace {

reply text(std::string value)
{
    return {.type = reply::kind::text, .text = std::move(value)};
}

reply error(std::string value)
{
    return {.type = reply::kind::error, .text = std::move(value)};
}

} // namespace

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
    const auto row = [](std::string command, std::string error_text) {
        return reply{.type = reply::kind::array, .items = {text(std::move(command)), text(std::move(error_text))}};
    };
    const auto rows = [](std::vector<reply> all) { return reply{.type = reply::kind::array, .items = std::move(all)}; };
    const std::string denied = "ERR The user executing the script can't run this command or subcommand";
    const auto none = rows({});
    const reply killed{.type = reply::kind::number};

    BOOST_TEST(!read_rights(none, none, killed).failure);
    BOOST_TEST(!read_rights(none, error("NOSCRIPT No matching script."), killed).failure);
    BOOST_TEST(
        !read_rights(rows({row("DEL", "READONLY You can't"), row("SET", "OOM command not allowed")}), none, killed)
            .failure);

    const auto needed =
        read_rights(rows({row("DEL", denied), row("PEXPIRE", denied), row("ZADD", denied)}), none, killed);
    BOOST_TEST_REQUIRE(needed.failure);
    BOOST_TEST((needed.failure->code == errc::access_denied));
    BOOST_TEST(needed.failure->detail.find("DEL, PEXPIRE, without which locks cannot be renewed and released") !=
               std::string::npos);

    const auto less =
        read_rights(rows({row("PUBLISH", denied), row("ZADD", denied), row("PEXPIREAT", denied)}), none, killed);
    BOOST_TEST(!less.failure);
    BOOST_TEST(less.warnings.size() == 2U);
    BOOST_TEST_REQUIRE(less.sorted_sets_refused);
    BOOST_TEST((less.sorted_sets_refused->code == errc::access_denied));
    BOOST_TEST(less.sorted_sets_refused->detail.find("ZADD, PEXPIREAT,") != std::string::npos);

    // An unknown SPUBLISH decides for ordinary channels. A missing right does not.
    BOOST_TEST(read_rights(none, none, killed).has_sharded_channels);
    const auto ordinary =
        read_rights(rows({row("SPUBLISH", "ERR Unknown Redis command called from script")}), none, killed);
    BOOST_TEST(!ordinary.has_sharded_channels);
    BOOST_TEST(ordinary.warnings.empty());
    const auto elsewhere = read_rights(
        rows({row("SPUBLISH", "ERR Script attempted to access a non local key in a cluster node")}), none, killed);
    BOOST_TEST(elsewhere.has_sharded_channels);
    BOOST_TEST(elsewhere.warnings.empty());
    const auto silent = read_rights(rows({row("SPUBLISH", denied)}), none, killed);
    BOOST_TEST(silent.has_sharded_channels);
    BOOST_TEST_REQUIRE(silent.warnings.size() == 1U);
    BOOST_TEST(silent.warnings[0].starts_with("SPUBLISH is refused"));
    const auto wordy = read_rights(rows({row("PUBSUB", denied)}), none, killed);
    BOOST_TEST(!wordy.failure);
    BOOST_TEST_REQUIRE(wordy.warnings.size() == 1U);
    BOOST_TEST(wordy.warnings[0].starts_with("PUBSUB SHARDNUMSUB is refused"));

    const auto without_kill =
        read_rights(none, none, error("NOPERM User app has no permissions to run the 'client|kill' command"));
    BOOST_TEST(!without_kill.failure);
    BOOST_TEST(!without_kill.sorted_sets_refused);
    BOOST_TEST(without_kill.warnings.size() == 1U);

    for (const char* const word : {"EVAL", "EVALSHA"}) {
        const auto unknown = error("ERR unknown command '" + std::string(word) + "', with args beginning with: 'x' ");
        const auto result =
            word == std::string("EVAL") ? read_rights(unknown, unknown, killed) : read_rights(none, unknown, killed);
        BOOST_TEST_REQUIRE(result.failure);
        BOOST_TEST((result.failure->code == errc::access_denied));
        BOOST_TEST(result.failure->detail.find(std::string(word) + ",") != std::string::npos);
        BOOST_TEST(result.failure->detail.find("with args") == std::string::npos);
    }
    BOOST_TEST((read_rights(error("BUSY Redis is busy"), none, killed).failure->code == errc::unavailable));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
