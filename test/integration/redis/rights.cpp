// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

namespace colock::testing {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(redis_faults)

BOOST_AUTO_TEST_CASE(wrong_credentials_are_denied_at_once)
{
    redis_server server({"--requirepass", "right"});
    const auto begin = std::chrono::steady_clock::now();
    for (const auto* password : {"", "wrong-and-secret"}) {
        client_side some({.url = server.url(), .password = password, .operation_timeout = 20s});
        const auto outcome = some.speak.create(driver::exclusive("k"));
        BOOST_TEST(code_of(outcome) == errc::access_denied);
        BOOST_TEST(outcome.error->detail.find("secret") == std::string::npos);
    }
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 10s));
    client_side some({.url = "redis://:right@127.0.0.1:" + std::to_string(server.port()) + "/3"});
    some.speak.grant(driver::exclusive("k"));
    BOOST_TEST(server({"AUTH", "right"}) == "OK");
    BOOST_TEST(server({"SELECT", "3"}) == "OK");
    BOOST_TEST(server({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(the_smallest_set_of_rights_suffices)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "resetkeys", "~{colock}:*", "~{colock}#*", "resetchannels",
        "&{colock}:*", "-@all", "+ping", "+info", "+select", "+client|kill", "+eval", "+evalsha", "+set", "+get",
        "+mget", "+del", "+incr", "+incrby", "+persist", "+pexpire", "+pexpireat", "+pttl", "+type", "+time",
        "+publish", "+subscribe", "+unsubscribe", "+scan", "+zadd", "+zcard", "+zrange", "+zrangebyscore", "+zrem",
        "+zscan", "+zscore"});
    client_side some({.url = server.url(), .user = "app", .password = "pw"});
    const auto holder = driver::exclusive("k");
    const auto waiter = driver::exclusive("k");
    some.speak.grant(holder);
    auto waiting = some.speak.start_acquire(waiter);
    run_until(some.io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    some.speak.check_held(holder);
    BOOST_TEST((some.speak.extend(holder, 10s).status == extend_status::extended));
    some.speak.give_back(holder);
    waiting.get(some.io);
    const auto next = driver::exclusive("k");
    BOOST_TEST((some.speak.hand_over(waiter, next).created.status == create_status::granted));
    some.speak.give_back(next);
    // Together, by the scripts for many.
    std::vector<plain_claim_ptr> held;
    std::vector<plain_claim_ptr> after;
    std::vector<running<hand_over_outcome>> handed_over;
    std::vector<running<release_outcome>> released;
    for (const auto* key : {"a", "b", "c", "d"}) {
        some.speak.grant(held.emplace_back(driver::exclusive(key)));
        after.push_back(driver::exclusive(key));
    }
    for (std::size_t i = 0; i < held.size(); ++i)
        handed_over.push_back(start(some.io, some.speak.backend().hand_over(sent_now(held[i]), sent_now(after[i]))));
    for (auto& each : handed_over)
        BOOST_TEST((each.get(some.io).created.status == create_status::granted));
    for (const auto& each : after)
        released.push_back(start(some.io, some.speak.backend().release(sent_now(each))));
    for (auto& each : released)
        BOOST_TEST((each.get(some.io).status == release_status::released));

    const auto reader = driver::shared("s", 2);
    some.speak.grant(reader);
    BOOST_TEST((some.speak.extend(reader, 10s).status == extend_status::extended));
    some.speak.check_held(reader);
    const auto writer = driver::exclusive("s");
    some.speak.refuse(writer);
    some.speak.abandon(writer);
    BOOST_TEST(some.speak.list().size() == 1u);
    BOOST_TEST(some.speak.purge().empty());
    some.speak.give_back(reader);
    some.speak.grant(driver::exclusive("k"));
    BOOST_TEST(some.speak.break_key("k").size() == 1u);
    const auto member = [](std::string key, lock_mode mode) {
        return plain_claim_ptr(new plain_claim({.key = std::move(key),
            .mode = mode,
            .owner = std::make_shared<const owner_data>(owner_data{.group = "g"})}));
    };
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        const auto first = member("g1", mode), second = member("g2", mode), third = member("g2", mode);
        some.speak.grant(first);
        some.speak.grant(second);
        if (mode == lock_mode::shared)
            some.speak.grant(third);
        BOOST_TEST((some.speak.extend(first, 10s).status == extend_status::extended));
        some.speak.give_back(first);
        BOOST_TEST(some.speak.extend_group("g", 1h).size() == (mode == lock_mode::shared ? 2u : 1u));
        BOOST_TEST(some.speak.release_group("g").size() == (mode == lock_mode::shared ? 2u : 1u));
    }
    BOOST_TEST(!some.told->warned_of("not allowed"));
    BOOST_TEST(!some.told->warned_of("poll"));
    BOOST_TEST(server({"ACL", "LOG"}).empty());
}

BOOST_AUTO_TEST_CASE(a_user_without_scripts_is_denied)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-@scripting"});
    client_side some({.url = server.url(), .user = "app", .password = "pw"});
    BOOST_TEST(code_of(some.speak.create(driver::exclusive("k"))) == errc::access_denied);
}

BOOST_AUTO_TEST_CASE(a_right_that_a_script_lacks_is_denied)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-zadd", "-pexpire", "-del"});
    client_side some({.url = server.url(), .user = "app", .password = "pw"});
    const auto reader = driver::shared("k");
    some.speak.grant(reader);
    const auto second = some.speak.create(driver::shared("k"));
    BOOST_TEST(code_of(second) == errc::access_denied);
    BOOST_TEST(second.error->detail.find("rights") != std::string::npos);
    const auto extended = some.speak.extend(reader, 10s);
    BOOST_TEST_REQUIRE((extended.status == extend_status::failed));
    BOOST_TEST(extended.error->code == errc::access_denied);
    const auto released = some.speak.release(reader);
    BOOST_TEST_REQUIRE((released.status == release_status::failed));
    BOOST_TEST(released.error->code == errc::access_denied);
}

BOOST_AUTO_TEST_CASE(a_release_goes_through_where_its_message_may_not)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "resetchannels", "+@all"});
    client_side some({.url = server.url(), .user = "app", .password = "pw"});
    const auto exclusive = driver::exclusive("k");
    some.speak.grant(exclusive);
    some.speak.give_back(exclusive);
    const auto reader = driver::shared("k");
    some.speak.grant(reader);
    some.speak.give_back(reader);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
