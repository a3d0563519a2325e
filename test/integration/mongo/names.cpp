// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/name_service.hpp"
#include "support/shutdown_during_lookup.hpp"
#include "two_members.hpp"

#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(mongo_names, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(late_name_does_not_delay_the_use_of_the_other_hosts)
{
    const late_names late;
    two_members set;
    const auto reachable = "127.0.0.1:" + std::to_string(set.first.port());
    const locker locks(mongo::make_adapter(
        set.io.get_executor(), {.url = "mongodb://late.test:27017," + reachable + "/?replicaSet=rs0"}));
    auto held = run_coro(set.io, locks.acquire("k", {.ttl = 1min}));
    BOOST_TEST(held.held());
    run_coro(set.io, held.release());
    run_coro(set.io, locks.shutdown(5s));
}

BOOST_AUTO_TEST_CASE(run_returns_after_a_shutdown_while_a_name_is_looked_up)
{
    check_shutdown_during_lookup([](const asio::any_io_executor& executor) {
        return mongo::make_adapter(executor, {.url = "mongodb://late.test:27017/"});
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
