// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/greeting.hpp"
#include "redis/connection/server_settings.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

namespace colock::inline v0::redis::detail {

BOOST_AUTO_TEST_SUITE(redis_greeting)

namespace {

reply text(std::string value)
{
    return {.type = reply::kind::text, .text = std::move(value)};
}

reply error(std::string value)
{
    return {.type = reply::kind::error, .text = std::move(value)};
}

reply hello(std::string role)
{
    return {.type = reply::kind::array,
        .items = {text("id"), {.type = reply::kind::number, .number = 71}, text("role"), text(std::move(role))}};
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
    BOOST_TEST_REQUIRE(result.failure);
    return result.failure->code;
}

} // namespace

BOOST_AUTO_TEST_CASE(standalone_master_is_accepted)
{
    const auto result = read({hello("master"), text(safe_server())});
    BOOST_TEST(!result.failure);
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
    const auto old = read({hello("master"), text(safe_server("6.0.20"))});
    BOOST_TEST((code_of(old) == errc::misconfigured_backend));
    BOOST_TEST(old.failure->detail.starts_with("the server is older than Redis 6.2"));
    BOOST_TEST(!read({hello("master"), text(safe_server("6.2.0"))}).failure);
}

BOOST_AUTO_TEST_CASE(refused_database_is_not_used)
{
    const location second{.database = 2};
    const auto result = read_greeting(second, {hello("master"), error("ERR DB index is out of range"), text({})});
    BOOST_TEST((code_of(result) == errc::misconfigured_backend));
    BOOST_TEST(result.failure->detail.find("DB index is out of range") != std::string::npos, result.failure->detail);
    BOOST_TEST(!read_greeting(second, {hello("master"), text("OK"), text(safe_server())}).failure);
}

BOOST_AUTO_TEST_CASE(server_without_info_is_used_with_a_warning)
{
    const auto result = read({hello({}), error("NOPERM")});
    BOOST_TEST(!result.failure);
    BOOST_TEST(result.identity.process.empty());
    BOOST_TEST_REQUIRE(result.warnings.size() == 1U);
    BOOST_TEST(result.warnings[0].starts_with("INFO is not allowed"));
}

BOOST_AUTO_TEST_CASE(settings_that_may_lose_locks_are_warned_of)
{
    const auto warnings = [](const std::string& info) { return read({hello("master"), text(info)}).warnings; };
    const auto all = warnings("maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\nconnected_slaves:2\r\n");
    BOOST_TEST_REQUIRE(all.size() == 4U);
    BOOST_TEST(all[0].starts_with("the server may evict locks (maxmemory-policy allkeys-lru)"));
    BOOST_TEST(all[1].starts_with("the server keeps no append-only file"));
    BOOST_TEST(all[2].starts_with("the server has replicas: a failover can lose a lock"));
    BOOST_TEST(all[3].starts_with("min-replicas-to-write is not set"));
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
    BOOST_TEST(!result.failure);
    BOOST_TEST(result.in_cluster);
    BOOST_TEST_REQUIRE(result.warnings.size() == 1U);
    BOOST_TEST(result.warnings[0].starts_with("the server is a node of a Redis Cluster"));
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
