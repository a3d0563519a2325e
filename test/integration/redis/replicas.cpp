// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Grants and extensions that replicas have to confirm.
#include "fixture.hpp"
#include "served.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_replicas)

namespace {

/// A server with one replica, and a client that needs its confirmations.
struct replicated
{
    explicit replicated(redis::options settings = {})
    {
        replica({"REPLICAOF", "127.0.0.1", std::to_string(server.port())});
        while (replica({"INFO", "replication"}).find("master_link_status:up") == std::string::npos)
            std::this_thread::sleep_for(10ms);
        // A replica may receive nothing in the first second after its first synchronization.
        do
            server({"SET", "first", ""});
        while (server({"WAIT", "1", "1000"}) != "1");
        server({"DEL", "first"});
        settings.url = server.url();
        settings.replicas = 1;
        settings.replica_timeout = 400ms;
        client.emplace(std::move(settings));
    }

    void check_unconfirmed(const create_outcome& outcome, errc code = errc::unavailable)
    {
        BOOST_TEST(code_of(outcome) == code);
        BOOST_TEST(
            outcome.error->detail.find("0 of 1 replicas have confirmed the request in time") != std::string::npos,
            outcome.error->detail);
    }
    void check_nothing_is_held() { BOOST_TEST(server({"KEYS", "{colock}:*"}) == ""); }

    redis_server server{{"--repl-diskless-sync-delay", "0"}};
    redis_server replica;
    std::optional<client_side> client;
};

} // namespace

BOOST_AUTO_TEST_CASE(confirmed_locks_are_granted_extended_and_passed_on)
{
    replicated f;
    const auto& by = f.client->test_driver;
    for (const auto& claim : {driver::exclusive("x"), driver::shared("s"), driver::shared("n", 2)}) {
        by.grant(claim);
        BOOST_TEST((by.extend(claim, 10s).status == extend_status::extended));
        by.release_held(claim);
    }
    by.grant_all({driver::exclusive("a"), driver::exclusive("b")});
    const auto held = driver::exclusive("k"), next = driver::exclusive("k");
    by.grant(held);
    BOOST_TEST((by.hand_over(held, next).created.status == create_status::granted));
    BOOST_TEST(f.replica({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(unconfirmed_lock_is_released)
{
    replicated f;
    const auto& by = f.client->test_driver;
    f.replica.pause();
    f.check_unconfirmed(by.create(driver::exclusive("x")));
    f.check_nothing_is_held();
    f.check_unconfirmed(by.create(driver::shared("s")));
    f.check_nothing_is_held();
    const auto all = by.create_all({driver::exclusive("a"), driver::exclusive("b")});
    BOOST_TEST((all.status == create_status::failed));
    f.check_unconfirmed(all.refusal);
    f.check_nothing_is_held();
    f.replica.resume();
    by.grant(driver::exclusive("x"));
}

BOOST_AUTO_TEST_CASE(unconfirmed_extension_has_an_unknown_outcome)
{
    replicated f;
    const auto& by = f.client->test_driver;
    const auto held = driver::exclusive("k");
    by.grant(held);
    f.replica.pause();
    const auto extended = by.extend(held, 10s);
    BOOST_TEST((extended.status == extend_status::failed));
    BOOST_TEST(extended.error->code == errc::outcome_unknown);
    // The core limits the lease, until an answer shows that no extension can arrive late.
    held->lower_late_ttl(10s);
    f.replica.resume();
    BOOST_TEST((by.extend(held, 10s).status == extend_status::extended));
    BOOST_TEST((held->late_ttl() == held->late_ttl().max()));
    by.release_held(held);
}

/// The next holder must not have a lock that only the master knows.
BOOST_AUTO_TEST_CASE(unconfirmed_hand_over_releases_the_lock)
{
    replicated f;
    const auto& by = f.client->test_driver;
    const auto held = driver::exclusive("k"), next = driver::exclusive("k");
    by.grant(held);
    f.replica.pause();
    const auto outcome = by.hand_over(held, next);
    BOOST_TEST((outcome.released.status == release_status::released));
    f.check_unconfirmed(outcome.created);
    f.check_nothing_is_held();
    f.replica.resume();
}

BOOST_AUTO_TEST_CASE(requests_that_are_sent_together_wait_once)
{
    replicated f;
    f.server({"CONFIG", "RESETSTAT"});
    std::vector<running<create_outcome>> pending;
    for (int i = 0; i < 20; ++i)
        pending.push_back(start(
            f.client->io, f.client->test_driver.backend().create(sent_now(driver::exclusive(std::to_string(i))))));
    for (auto& each : pending)
        BOOST_TEST((each.get(f.client->io).status == create_status::granted));
    const auto commands = f.server({"INFO", "commandstats"});
    const auto at = commands.find("cmdstat_wait:calls=");
    BOOST_TEST_REQUIRE(at != std::string::npos);
    BOOST_TEST(std::stoi(commands.substr(at + 19)) < 10);
}

BOOST_AUTO_TEST_CASE(missing_right_is_named)
{
    replicated f({.user = "app", .password = "pw"});
    f.server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-wait"});
    const auto refused = f.client->test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(refused) == errc::access_denied);
    BOOST_TEST(refused.error->detail.find("wait") != std::string::npos);
    f.check_nothing_is_held();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
