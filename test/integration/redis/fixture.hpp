// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/redis/adapter.hpp>
#include <colock/stats.hpp>

#include "server.hpp"
#include "support/driver.hpp"
#include "support/notes.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

/// An adapter and its event loop, with an observer.
struct client_side
{
    explicit client_side(redis::options settings)
        : test_driver(io, redis::make_adapter(io.get_executor(), std::move(settings)))
    {
        test_driver.backend().attach(events);
    }
    ~client_side() { run_coro(io, test_driver.backend().close(1s)); }

    void run_for(std::chrono::milliseconds span)
    {
        asio::steady_timer passed(io, span);
        bool over = false;
        passed.async_wait([&](const error_code&) { over = true; });
        run_until(io, [&] { return over; });
    }

    asio::io_context io;
    std::shared_ptr<notes> events = std::make_shared<notes>();
    driver test_driver;
};

inline errc code_of(const create_outcome& outcome)
{
    BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
    return outcome.error->code;
}

/// Acquires a lock as the core does: an error does not end the attempts.
inline asio::awaitable<std::uint64_t> acquire(std::shared_ptr<adapter> backend, plain_claim_ptr claim)
{
    for (;;) {
        claim->set_operation_start(lease_clock::now());
        const auto outcome = co_await backend->create(claim);
        if (outcome.status == create_status::granted)
            co_return outcome.fence;
        if (outcome.status == create_status::busy)
            co_await backend->wait(claim, lease_clock::time_point::max());
    }
}

/// Checks the counters of a locker that holds nothing any more. Every grant has ended exactly once.
inline void check_balance(const locker_stats& counted)
{
    BOOST_TEST(counted.held == 0u);
    BOOST_TEST(counted.waiting == 0u);
    BOOST_TEST(counted.settling == 0u);
    BOOST_TEST(counted.unproven == 0u);
    const auto losses = std::accumulate(counted.losses.begin(), counted.losses.end(), std::uint64_t{0});
    BOOST_TEST(counted.grants == counted.releases + losses);
    BOOST_TEST(losses <= counted.settled);
    BOOST_TEST(counted.attempts >= counted.grants + counted.busy);
    BOOST_TEST(counted.retries <= counted.attempts);
}

} // namespace colock::testing
