// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Locks that are passed on to another claim: adoption with a ticket.
#include "served.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_commands)

BOOST_AUTO_TEST_CASE(a_lock_is_adopted_by_one_script)
{
    served f;
    const auto first = driver::exclusive("k"), second = driver::exclusive("k"), third = driver::exclusive("k");
    f.test_driver->grant(first);
    f.test_driver->take_over(f.test_driver->export_ticket(first), second);
    f.raw({"CONFIG", "RESETSTAT"});
    f.test_driver->take_over(f.test_driver->export_ticket(second), third);
    BOOST_TEST(calls_of(f, "evalsha") == 1);
    BOOST_TEST(f.raw({"GET", "{colock}:k"}).starts_with(third->token().hex()));
    BOOST_TEST(std::stoll(f.raw({"PTTL", "{colock}:k"})) > 3'500'000);
    f.test_driver->release_held(third);
}

BOOST_AUTO_TEST_CASE(adoption_after_a_lost_fence_counter_has_a_greater_fence)
{
    for (const char* lost : {"0", "5"}) {
        served f;
        const auto held = driver::exclusive("k"), next = driver::exclusive("k");
        const auto fence = f.test_driver->grant(held);
        f.raw({"SET", "{colock}#fence", lost});
        BOOST_TEST(f.test_driver->take_over(f.test_driver->export_ticket(held), next) > fence);
        f.test_driver->release_held(next);
    }
}

BOOST_AUTO_TEST_CASE(adoption_without_acceptable_fence_is_in_doubt)
{
    served f;
    const auto held = driver::exclusive("k"), next = driver::exclusive("k");
    f.test_driver->grant(held);
    const auto ticket = f.test_driver->export_ticket(held);
    f.raw({"ACL", "SETUSER", "default", "-persist"});
    f.raw({"SET", "{colock}#fence", "5"});
    const auto outcome = f.test_driver->adopt(ticket, next);
    BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
    BOOST_TEST(outcome.error->code == errc::outcome_unknown);
    f.raw({"ACL", "SETUSER", "default", "+persist"});
    f.test_driver->take_over(ticket, next);
    f.test_driver->release_held(next);
}

BOOST_AUTO_TEST_CASE(a_server_without_memory_refuses_an_adoption_and_nothing_has_changed)
{
    served f;
    const auto held = driver::exclusive("k"), next = driver::exclusive("k");
    f.test_driver->grant(held);
    const auto ticket = f.test_driver->export_ticket(held);
    f.raw({"CONFIG", "SET", "maxmemory", "1"});
    const auto outcome = f.test_driver->adopt(ticket, next);
    BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
    BOOST_TEST(outcome.error->code == errc::misconfigured_backend);
    f.raw({"CONFIG", "SET", "maxmemory", "0"});
    f.test_driver->check_held(held);
    f.test_driver->take_over(ticket, next);
    f.test_driver->release_held(next);
}

BOOST_AUTO_TEST_CASE(adoption_on_a_replica_fails_and_is_not_reported_as_busy)
{
    redis_server master, replica;
    client_side on_replica({.url = replica.url(), .operation_timeout = 2s});
    const auto held = driver::exclusive("k");
    on_replica.test_driver.grant(held);
    const auto ticket = on_replica.test_driver.export_ticket(held);
    replica({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    BOOST_TEST((on_replica.test_driver.adopt(ticket, driver::exclusive("k")).status == create_status::failed));
}

BOOST_AUTO_TEST_CASE(lock_of_the_plain_layout_is_adopted_without_a_fence)
{
    served f({.layout = redis::layout::plain});
    const auto held = driver::exclusive("k"), next = driver::exclusive("k");
    f.test_driver->grant(held);
    const auto ticket = f.test_driver->export_ticket(held);
    BOOST_TEST(f.test_driver->take_over(ticket, next) == 0U);
    BOOST_TEST(f.raw({"GET", "k"}) == next->token().hex());
    BOOST_TEST((f.test_driver->adopt(ticket, driver::exclusive("k")).status == create_status::busy));
    f.test_driver->check_held(next);
    f.test_driver->release_held(next);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
