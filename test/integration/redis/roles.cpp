// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A master that becomes a replica: what it says, and who is asked from then on.

#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace colock::testing {
namespace {

/// A replica of nobody who could be reached: it keeps its data, and answers what only reads.
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
    {"is_valid", [](const driver& speak, const plain_claim_ptr& of) { return speak.valid(of).error; }},
    {"extend", [](const driver& speak, const plain_claim_ptr& of) { return speak.extend(of, 10s).error; }},
    {"release", [](const driver& speak, const plain_claim_ptr& of) { return speak.release(of).error; }},
    {"abandon", [](const driver& speak, const plain_claim_ptr& of) { return speak.abandon(of).error; }},
    {"create", [](const driver& speak, const plain_claim_ptr& of) { return speak.create(of).error; }},
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_roles)

BOOST_AUTO_TEST_CASE(a_replica_is_believed_in_nothing_whatever_it_is_asked_first)
{
    for (const auto& [what, ask] : questions) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            BOOST_TEST_CONTEXT(what << ", shared: " << (mode == lock_mode::shared))
            {
                redis_server server;
                client_side some({.url = server.url(), .operation_timeout = 2s});
                const plain_claim_ptr claim = new plain_claim({.key = "k", .mode = mode, .ttl = driver::long_ttl});
                some.speak.grant(claim);
                // Its data is that of another by now.
                server({"DEL", "{colock}:k"});
                demote(server);
                const auto refused = ask(some.speak, claim);
                BOOST_TEST_REQUIRE(refused);
                BOOST_TEST(refused->code == errc::unavailable, refused->detail);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_demoted_master_is_left_for_the_one_that_a_sentinel_names)
{
    redis_server first;
    redis_server second;
    sentinel names(first.port());
    client_side some({.url = names.url(), .operation_timeout = 20s});
    some.speak.grant(driver::exclusive("before"));
    BOOST_TEST(first({"EXISTS", "{colock}:before"}) == "1");
    demote(first);
    names.master = second.port();
    // It closes no connection by itself.
    const auto refused = some.speak.create(driver::exclusive("between"));
    BOOST_TEST(code_of(refused) == errc::unavailable);
    some.speak.grant(driver::exclusive("after"));
    BOOST_TEST(second({"EXISTS", "{colock}:after"}) == "1");
    BOOST_TEST(some.told->suspensions == 1);
    BOOST_TEST(some.told->reconnections == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
