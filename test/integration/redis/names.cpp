// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/localhost.hpp"
#include "support/name_service.hpp"
#include "support/shutdown_during_lookup.hpp"

#include <colock/locker.hpp>

#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_names)

BOOST_AUTO_TEST_CASE(late_name_does_not_delay_the_majority, *boost::unit_test::precondition(knows_localhost))
{
    const late_names late;
    redis_server first;
    redis_server second;
    const auto url_of = [](const redis_server& server) { return "redis://localhost:" + std::to_string(server.port()); };
    asio::io_context io;
    const locker locks(redis::make_quorum(
        io.get_executor(), {"redis://late.test:6379", url_of(first), url_of(second)}, {.operation_timeout = 10s}));
    auto held = run_coro(io, locks.acquire("k"));
    BOOST_TEST(held.held());
    run_coro(io, held.release());
    run_coro(io, locks.shutdown(1s));
}

BOOST_AUTO_TEST_CASE(run_returns_after_a_shutdown_while_a_name_is_looked_up)
{
    check_shutdown_during_lookup([](const asio::any_io_executor& executor) {
        return redis::make_adapter(executor, {.url = "redis://late.test:6379"});
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
