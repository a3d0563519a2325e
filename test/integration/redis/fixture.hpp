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

/// An adapter on some server, watched.
struct client_side
{
    explicit client_side(redis::options settings)
        : speak(io, redis::make_adapter(io.get_executor(), std::move(settings)))
    {
        speak.backend().attach(told);
    }
    ~client_side() { run_coro(io, speak.backend().close(1s)); }

    void run_for(std::chrono::milliseconds span)
    {
        asio::steady_timer passed(io, span);
        bool over = false;
        passed.async_wait([&](const error_code&) { over = true; });
        run_until(io, [&] { return over; });
    }

    asio::io_context io;
    std::shared_ptr<notes> told = std::make_shared<notes>();
    driver speak;
};

inline errc code_of(const create_outcome& outcome)
{
    BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
    return outcome.error->code;
}

/// As the core does it: an error is no end.
inline asio::awaitable<std::uint64_t> acquire(std::shared_ptr<adapter> backend, plain_claim_ptr claim)
{
    for (;;) {
        claim->set_sent(lease_clock::now());
        const auto outcome = co_await backend->create(claim);
        if (outcome.status == create_status::granted)
            co_return outcome.fence;
        if (outcome.status == create_status::busy)
            co_await backend->wait(claim, lease_clock::time_point::max());
    }
}

/// The counters of a locker that holds nothing any more: every grant has ended once, one way or the other. `given_up`:
/// acquires that ended without a lock after something had been sent.
inline void check_balance(const locker_stats& counted, std::uint64_t given_up = 0)
{
    BOOST_TEST(counted.held == 0u);
    BOOST_TEST(counted.waiting == 0u);
    BOOST_TEST(counted.settling == 0u);
    BOOST_TEST(counted.unproven == 0u);
    BOOST_TEST(counted.grants + given_up == counted.releases + counted.settled);
    BOOST_TEST(std::accumulate(counted.losses.begin(), counted.losses.end(), std::uint64_t{0}) <= counted.settled);
    BOOST_TEST(counted.attempts >= counted.grants + counted.busy);
    BOOST_TEST(counted.retries <= counted.attempts);
}

} // namespace colock::testing
