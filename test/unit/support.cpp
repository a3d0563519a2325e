// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/jump.hpp"
#include "support/run.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

struct clock_fixture
{
    virtual_clock clock;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(test_support_jump, clock_fixture)

BOOST_AUTO_TEST_CASE(timers_fire_when_the_clock_is_moved_past_them)
{
    asio::io_context io;
    std::vector<int> fired;
    lease_timer late(io, 3h), early(io, 1h), never(io, 100h);
    late.async_wait([&](error_code) { fired.push_back(3); });
    early.async_wait([&](error_code ec) {
        if (!ec)
            fired.push_back(1);
    });
    never.async_wait([&](error_code) { fired.push_back(100); });
    run_ready(io);
    BOOST_TEST(fired.empty());
    jump(io, 59min);
    BOOST_TEST(fired.empty());
    jump(io, 2min);
    BOOST_TEST(fired == std::vector{1}, boost::test_tools::per_element());
    jump(io, 9h);
    const std::vector both{1, 3};
    BOOST_TEST(fired == both, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_context_that_has_run_out_of_work_can_be_advanced)
{
    asio::io_context io;
    io.run();
    bool fired = false;
    lease_timer timer(io, 1h);
    timer.async_wait([&](error_code) { fired = true; });
    jump(io, 2h);
    BOOST_TEST(fired);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(test_support_run, clock_fixture)

BOOST_AUTO_TEST_CASE(result_or_exception_is_returned)
{
    asio::io_context io;
    BOOST_TEST(run_coro(io, []() -> asio::awaitable<int> { co_return 42; }()) == 42);
    BOOST_CHECK_THROW(run_coro(io,
                          []() -> asio::awaitable<void> {
                              throw std::logic_error("thrown");
                              co_return;
                          }()),
        std::logic_error);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_nobody_can_wake_is_reported_with_the_callers_line)
{
    asio::io_context io;
    const auto wait_for_an_hour = []() -> asio::awaitable<void> {
        // The virtual clock does not move, so the timer never fires. It keeps the context running.
        lease_timer timer(co_await asio::this_coro::executor, 1h);
        co_await timer.async_wait(asio::use_awaitable);
    };
    const int line = __LINE__ + 2;
    try {
        run_coro(io, wait_for_an_hour(), std::source_location::current(), {.time = 10ms});
        BOOST_ERROR("returned");
    } catch (const stuck& failure) {
        const std::string what = failure.what();
        BOOST_TEST(what.find("support.cpp:" + std::to_string(line)) != what.npos, what);
    }
    BOOST_CHECK_THROW(run_until(io, [] { return false; }, std::source_location::current(), {.handlers = 0}), stuck);
    asio::io_context idle;
    BOOST_CHECK_THROW(run_until(idle, [] { return false; }), stuck);
}

BOOST_AUTO_TEST_SUITE_END()
