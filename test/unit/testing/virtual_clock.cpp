// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/testing/virtual_clock.hpp>

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/asio/deferred.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

struct clock_fixture
{
    virtual_clock clock;
    asio::io_context io;
    const lease_clock::time_point start = lease_clock::now();

    [[nodiscard]] lease_clock::duration passed() const { return lease_clock::now() - start; }
    asio::awaitable<int> sleep(lease_clock::duration span)
    {
        lease_timer timer(io, span);
        co_await timer.async_wait(asio::deferred);
        co_return 42;
    }
};

struct no_clock
{
};

/// Checks that the message begins with the place of this call, and contains `text`.
auto mentions(const std::string& text, std::source_location caller = std::source_location::current())
{
    // A call over several lines may have the number of any of them.
    return [text, caller](const std::runtime_error& error) {
        const std::string message = error.what();
        const std::string file = std::string(caller.file_name()) + ":";
        return message.starts_with(file) && message.find(text) != message.npos &&
               std::abs(std::stol(message.substr(file.size())) - static_cast<long>(caller.line())) <= 1;
    };
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(testing_virtual_clock, clock_fixture)

BOOST_AUTO_TEST_CASE(run_moves_the_clock_to_the_end_of_the_coroutine)
{
    BOOST_TEST(clock.run(io, sleep(10min)) == 42);
    BOOST_TEST((passed() >= 10min));
    BOOST_TEST((passed() < 10min + 10s));
}

BOOST_AUTO_TEST_CASE(run_does_not_move_the_clock_while_handlers_are_ready)
{
    const auto post_often = [&]() -> asio::awaitable<void> {
        for (int number = 0; number < 10'000; ++number)
            co_await asio::post(io, asio::deferred);
    };
    clock.run(io, post_often());
    BOOST_TEST((passed() < 1min));
}

BOOST_AUTO_TEST_CASE(run_throws_the_exception_of_the_coroutine)
{
    const auto fail = [&]() -> asio::awaitable<lock> {
        co_await sleep(1s);
        throw std::logic_error("failed");
    };
    BOOST_CHECK_THROW(static_cast<void>(clock.run(io, fail())), std::logic_error);
}

BOOST_AUTO_TEST_CASE(run_gives_up_after_its_limit)
{
    BOOST_CHECK_EXCEPTION(
        clock.run(io, sleep(10min), 5min), std::runtime_error, mentions("within the limit of virtual time"));
    // The coroutine continues, and nothing is written to the call that has ended.
    clock.advance(io, 10min, 1s);
    BOOST_TEST(clock.run(io, sleep(10min), 15min) == 42);
}

BOOST_AUTO_TEST_CASE(run_gives_up_if_nothing_is_left_to_run)
{
    BOOST_CHECK_EXCEPTION(
        clock.run_until(io, [] { return false; }), std::runtime_error, mentions("nothing is left to run"));
}

BOOST_AUTO_TEST_CASE(endless_handlers_are_reported)
{
    std::function<void()> again = [&] { asio::post(io, again); };
    again();
    BOOST_CHECK_EXCEPTION(clock.advance(io, 1s), std::runtime_error, mentions("without end"));
}

BOOST_AUTO_TEST_CASE(run_until_stops_at_the_condition)
{
    int handlers = 0;
    for (int number = 0; number < 3; ++number)
        asio::post(io, [&] { ++handlers; });
    clock.run_until(io, [&] { return handlers == 2; });
    BOOST_TEST(handlers == 2);
}

BOOST_AUTO_TEST_CASE(skip_moves_the_clock_and_timers_run_afterwards)
{
    bool has_run = false;
    lease_timer timer(io, 1h);
    timer.async_wait([&](error_code) { has_run = true; });
    clock.skip(2h);
    BOOST_TEST((passed() >= 2h));
    io.poll();
    BOOST_TEST(!has_run);
    clock.advance(io, 0s);
    BOOST_TEST(has_run);
}

BOOST_AUTO_TEST_CASE(retries_and_leases_of_a_locker_follow_the_clock)
{
    const locker holder(memory::make_adapter(io.get_executor()));
    const lock held = clock.run(io, holder.acquire("k", {.ttl = 10min}));
    const lock next = clock.run(io, holder.acquire("k", {.retry = within(20min)}));
    BOOST_TEST(!held.held());
    BOOST_TEST(next.held());
    BOOST_TEST((passed() >= 9min));
    BOOST_TEST((passed() < 11min));
}

BOOST_AUTO_TEST_CASE(repeated_timer_runs_as_often_as_in_real_time)
{
    int fired = 0;
    lease_timer timer(io);
    std::function<void()> arm = [&] {
        timer.expires_after(1min);
        timer.async_wait([&](error_code) {
            ++fired;
            arm();
        });
    };
    arm();
    clock.advance(io, 10min + 5s, 5s);
    BOOST_TEST(fired == 10);
}

BOOST_FIXTURE_TEST_CASE(clock_is_real_again_after_the_object, no_clock)
{
    const auto before = lease_clock::now();
    {
        const virtual_clock clock;
        clock.skip(1000h);
        BOOST_TEST((lease_clock::now() - before >= 1000h));
    }
    BOOST_TEST((lease_clock::now() - before < 1h));
}

BOOST_AUTO_TEST_SUITE_END()
