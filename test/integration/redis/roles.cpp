// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A master that becomes a replica: its answers, and the server that is used afterwards.

#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

/// Makes the server a replica of an unreachable master. It keeps its data and answers reads.
void demote(redis_server& server)
{
    server({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});
}

using asked = std::function<failure_ptr(const driver&, const plain_claim_ptr&)>;

struct question
{
    std::string_view what;
    asked ask;
};

const question questions[] = {
    {"is_valid", [](const driver& test_driver, const plain_claim_ptr& of) { return test_driver.valid(of).error; }},
    {"extend", [](const driver& test_driver, const plain_claim_ptr& of) { return test_driver.extend(of, 10s).error; }},
    {"release", [](const driver& test_driver, const plain_claim_ptr& of) { return test_driver.release(of).error; }},
    {"abandon", [](const driver& test_driver, const plain_claim_ptr& of) { return test_driver.abandon(of).error; }},
    {"create", [](const driver& test_driver, const plain_claim_ptr& of) { return test_driver.create(of).error; }},
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_roles)

BOOST_AUTO_TEST_CASE(replica_is_not_trusted_by_any_operation)
{
    for (const auto& [what, ask] : questions) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            BOOST_TEST_CONTEXT(what << ", shared: " << (mode == lock_mode::shared))
            {
                redis_server server;
                client_side client({.url = server.url(), .operation_timeout = 2s});
                const plain_claim_ptr claim = new plain_claim({.key = "k", .mode = mode, .ttl = driver::long_ttl});
                client.test_driver.grant(claim);
                // Simulates a replica that has replaced its data with that of another master.
                server({"DEL", "{colock}:k"});
                demote(server);
                const auto refused = ask(client.test_driver, claim);
                BOOST_TEST_REQUIRE(refused);
                BOOST_TEST(refused->code == errc::unavailable, refused->detail);
            }
        }
    }
}

namespace {

struct demotion
{
    /// Deletes keys and demotes the server, as if its data were that of another master.
    void demote_without(std::initializer_list<std::string_view> keys)
    {
        for (const auto key : keys)
            server({"DEL", key});
        demote(server);
    }
    static void check_refused(const failure_ptr& why)
    {
        BOOST_TEST_REQUIRE(why);
        BOOST_TEST(why->code == errc::unavailable, why->detail);
    }

    redis_server server;
    client_side client{{.url = server.url(), .operation_timeout = 2s}};
};

} // namespace

BOOST_FIXTURE_TEST_CASE(busy_answer_of_a_replica_is_not_trusted, demotion)
{
    const auto writer = driver::exclusive("k");
    const auto reader = driver::shared("k");
    client.test_driver.grant(writer);
    client.test_driver.check_refused(reader);
    demote_without({});
    check_refused(client.test_driver.create(reader).error);
}

BOOST_FIXTURE_TEST_CASE(a_replica_is_not_believed_about_an_intent, demotion)
{
    const auto reader = driver::shared("k");
    const auto writer = driver::exclusive("k");
    client.test_driver.grant(reader);
    client.test_driver.check_refused(writer);
    demote_without({"{colock}:k"});
    check_refused(client.test_driver.abandon(writer).error);
}

BOOST_AUTO_TEST_CASE(replica_with_old_data_is_not_trusted_by_any_script)
{
    struct script_case
    {
        const char* name;
        /// Starts the operation, and returns what the adapter says about the replica.
        std::function<failure_ptr(const driver&, const plain_claim_ptr& held)> ask;
    };
    const auto group = [](std::string_view id, group_action action) {
        return [id, action](const driver& test_driver, const plain_claim_ptr&) {
            return test_driver.group(std::string(id), action, 1min).error;
        };
    };
    const script_case cases[] = {
        {"valid", [](const driver& d, const plain_claim_ptr& held) { return d.valid(held).error; }},
        {"acquire of a busy lock",
            [](const driver& d, const plain_claim_ptr&) { return d.create(driver::exclusive("k")).error; }},
        {"acquire_shared of a busy lock",
            [](const driver& d, const plain_claim_ptr&) { return d.create(driver::shared("k", 1)).error; }},
        {"acquire_all of a busy lock",
            [](const driver& d, const plain_claim_ptr&) {
                return d.create_all({driver::exclusive("l"), driver::exclusive("k")}).refusal.error;
            }},
        {"adopt of a lost lock",
            [](const driver& d, const plain_claim_ptr& held) {
                const auto mode = held->mode();
                const auto other = mode == lock_mode::shared ? driver::shared("k") : driver::exclusive("k");
                return d.adopt(d.export_ticket(other), other).error;
            }},
        {"hand_over of a lost lock",
            [](const driver& d, const plain_claim_ptr&) {
                return d.hand_over(driver::exclusive("k"), driver::exclusive("k")).created.error;
            }},
        {"extend of a lost lock",
            [](const driver& d, const plain_claim_ptr& held) {
                return d.extend(held->mode() == lock_mode::shared ? driver::shared("k") : driver::exclusive("k"), 1min)
                    .error;
            }},
        {"group that is empty", group("none", group_action::release)},
        {"group whose locks are gone", group("g", group_action::extend)},
    };
    for (const auto& [name, ask] : cases) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            BOOST_TEST_CONTEXT(name << ", shared: " << (mode == lock_mode::shared))
            {
                demotion f;
                const plain_claim_ptr held = new plain_claim({.key = "k",
                    .mode = mode,
                    .ttl = driver::long_ttl,
                    .owner = std::make_shared<const owner_data>(owner_data{.group = "g"})});
                f.client.test_driver.grant(held);
                f.demote_without({});
                demotion::check_refused(ask(f.client.test_driver, held));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(replica_is_not_trusted_about_an_intent_or_a_limit)
{
    for (const bool has_intent : {false, true}) {
        demotion f;
        f.client.test_driver.grant(driver::shared("k", 1));
        if (has_intent)
            f.client.test_driver.check_refused(driver::exclusive("k"));
        f.demote_without({});
        demotion::check_refused(f.client.test_driver.create(driver::shared("k", 1)).error);
    }
}

BOOST_FIXTURE_TEST_CASE(a_replica_is_not_believed_about_many_releases, demotion)
{
    std::vector<plain_claim_ptr> claims;
    for (int i = 0; i < 20; ++i) {
        claims.push_back(driver::exclusive(std::to_string(i)));
        client.test_driver.grant(claims.back());
    }
    for (const auto& each : claims)
        server({"DEL", "{colock}:" + each->key()});
    demote_without({});
    std::vector<release_outcome> outcomes;
    for (const auto& each : claims)
        client.test_driver.backend().start_release(sent_now(each), release_guarantee::released,
            completion<release_outcome>([&](release_outcome outcome) { outcomes.push_back(std::move(outcome)); }));
    run_until(client.io, [&] { return outcomes.size() == claims.size(); });
    for (const auto& each : outcomes)
        check_refused(each.error);
}

BOOST_AUTO_TEST_CASE(list_of_a_replica_is_not_trusted)
{
    using query = std::function<asio::awaitable<list_outcome>(adapter&)>;
    const query queries[] = {
        [](adapter& backend) { return backend.listing({.filter = {.key = "k"}}); },
        [](adapter& backend) { return backend.listing({}); },
        [](adapter& backend) { return backend.listing({.action = listing_action::purge}); },
        [](adapter& backend) { return backend.listing({.action = listing_action::break_key, .filter = {.key = "k"}}); },
    };
    for (const auto& ask : queries) {
        demotion f;
        // Two concurrent readers are stored as a set, which a purge examines.
        for (int i = 0; i < 2; ++i)
            f.client.test_driver.grant(driver::shared("k"));
        f.demote_without({});
        demotion::check_refused(run_coro(f.client.io, ask(f.client.test_driver.backend())).error);
    }
}

BOOST_AUTO_TEST_CASE(empty_list_of_a_replica_is_not_trusted)
{
    using query = std::function<asio::awaitable<list_outcome>(adapter&)>;
    const query queries[] = {
        [](adapter& backend) { return backend.listing({}); },
        [](adapter& backend) { return backend.listing({.filter = {.key_prefix = "k"}}); },
        [](adapter& backend) { return backend.listing({.action = listing_action::purge}); },
    };
    for (const auto& ask : queries) {
        demotion f;
        f.client.test_driver.grant(driver::shared("other"));
        f.demote_without({"{colock}:other"});
        demotion::check_refused(run_coro(f.client.io, ask(f.client.test_driver.backend())).error);
    }
}

BOOST_AUTO_TEST_CASE(demoted_master_is_left_for_the_master_of_the_sentinel)
{
    redis_server first;
    redis_server second;
    sentinel names(first.port());
    client_side client({.url = names.url(), .operation_timeout = 20s});
    client.test_driver.grant(driver::exclusive("before"));
    BOOST_TEST(first({"EXISTS", "{colock}:before"}) == "1");
    demote(first);
    names.master = second.port();
    // Only the refusal of a request tells the adapter that its server was demoted. The adapter then closes the
    // connection and asks the Sentinel again.
    const auto refused = client.test_driver.create(driver::exclusive("between"));
    BOOST_TEST(code_of(refused) == errc::unavailable);
    client.test_driver.grant(driver::exclusive("after"));
    BOOST_TEST(second({"EXISTS", "{colock}:after"}) == "1");
    BOOST_TEST(client.events->suspensions == 1);
    BOOST_TEST(client.events->reconnections == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
