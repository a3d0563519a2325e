// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Several locks that are acquired in one step.
#include "served.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace colock::testing {

namespace {

std::vector<plain_claim_ptr> eight()
{
    std::vector<plain_claim_ptr> claims;
    for (int i = 0; i < 8; ++i)
        claims.push_back(driver::exclusive("k" + std::to_string(i)));
    return claims;
}

void check_none_stored(served& f, const std::vector<plain_claim_ptr>& claims)
{
    for (const auto& each : claims)
        BOOST_TEST(f.raw({"EXISTS", "{colock}:" + each->key()}) == "0");
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_commands)

BOOST_AUTO_TEST_CASE(several_are_taken_by_one_script)
{
    served f;
    f.test_driver->grant(driver::exclusive("first"));
    f.raw({"CONFIG", "RESETSTAT"});
    const auto all = eight();
    f.test_driver->grant_all(all);
    // The script is sent by its digest, which the server does not know yet, and then as a whole.
    BOOST_TEST(calls_of(f, "eval") == 1);
    for (const auto& each : all)
        f.test_driver->release_held(each);
    f.raw({"CONFIG", "RESETSTAT"});
    f.test_driver->grant_all(all);
    BOOST_TEST(calls_of(f, "evalsha") == 1);
    BOOST_TEST(calls_of(f, "set") == 8);
    for (const auto& each : all) {
        BOOST_TEST(f.raw({"GET", "{colock}:" + each->key()}).starts_with(each->token().hex()));
        BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:" + each->key()})) > 3'500'000);
    }
    f.raw({"SCRIPT", "FLUSH"});
    f.test_driver->grant_all(all);
}

BOOST_AUTO_TEST_CASE(fences_of_several_are_above_the_clock_again_after_the_counter_was_lost)
{
    served f;
    const auto old_fence = f.test_driver->grant(driver::exclusive("before"));
    for (const char* lost : {"0", "5"}) {
        f.raw({"SET", "{colock}#fence", lost});
        const auto all = eight();
        auto last = old_fence;
        for (const auto fence : f.test_driver->grant_all(all)) {
            BOOST_TEST(fence > last);
            last = fence;
        }
        for (const auto& each : all)
            f.test_driver->release_held(each);
    }
}

BOOST_AUTO_TEST_CASE(several_without_acceptable_fences_are_released)
{
    served f;
    f.test_driver->grant(driver::exclusive("before"));
    f.raw({"ACL", "SETUSER", "default", "-persist"});
    f.raw({"SET", "{colock}#fence", "5"});
    const auto all = eight();
    const auto outcome = f.test_driver->create_all(all);
    BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
    BOOST_TEST(outcome.refusal.error->code != errc::outcome_unknown);
    check_none_stored(f, all);
    f.raw({"ACL", "SETUSER", "default", "+persist"});
    f.test_driver->grant_all(all);
}

BOOST_AUTO_TEST_CASE(a_server_without_memory_refuses_several_and_nothing_is_taken)
{
    served f;
    f.test_driver->grant(driver::exclusive("before"));
    f.raw({"CONFIG", "SET", "maxmemory", "1"});
    const auto all = eight();
    const auto outcome = f.test_driver->create_all(all);
    BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
    BOOST_TEST(outcome.refusal.error->code == errc::misconfigured_backend);
    f.raw({"CONFIG", "SET", "maxmemory", "0"});
    check_none_stored(f, all);
    f.test_driver->grant_all(all);
}

BOOST_AUTO_TEST_CASE(replica_cannot_report_several_as_busy)
{
    redis_server master, replica;
    client_side client({.url = replica.url(), .operation_timeout = 2s});
    const auto holder = driver::exclusive("k1");
    client.test_driver.grant(holder);
    replica({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    const auto outcome = client.test_driver.create_all(eight());
    BOOST_TEST((outcome.status == create_status::failed));
}

BOOST_AUTO_TEST_CASE(the_plain_layout_takes_several_one_after_the_other)
{
    served f({.layout = redis::layout::plain});
    BOOST_TEST(!f.test_driver->backend().traits().capabilities.create_all);
    const auto outcome = f.test_driver->create_all(eight());
    BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
    BOOST_TEST(outcome.refusal.error->code == errc::unsupported);
    locker locks(f.test_driver->shared_backend());
    auto group = run_coro(f.io, locks.acquire_all({"b", "a"}));
    BOOST_TEST(group.held());
    run_coro(f.io, group.release());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
