// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "guide.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <string>
#include <vector>

namespace {

//[ retry
colock::retry_policy quick_then_patient()
{
    return colock::retry_policy::exponential(10ms, 2.0, 5s).jitter(0.3).total_time(1min);
}

colock::retry_policy three_more_attempts()
{
    return colock::retry_policy::fixed(200ms).times(3);
}

colock::retry_policy until_noon(colock::lease_clock::time_point noon)
{
    return colock::retry_policy::custom([noon](const colock::retry_attempt& attempt) -> colock::retry_decision {
        if (colock::lease_clock::now() >= noon)
            return colock::retry_stop;
        return attempt.number < 10 ? 100ms : 1s;
    });
}
//]

} // namespace

BOOST_FIXTURE_TEST_SUITE(guide, fixture)

BOOST_AUTO_TEST_CASE(retries)
{
    colock::lock busy = run(locker.acquire("k", {.ttl = 0ms}));
    const auto attempts_of = [&](colock::retry_policy policy, colock::lease_clock::duration max_duration) {
        auto waiting = colock::testing::start(io, locker.acquire("k", {.retry = std::move(policy)}));
        colock::testing::run_ready(io);
        virtual_clock::advance(io, max_duration, max_duration / 64);
        BOOST_REQUIRE(waiting.done());
        try {
            static_cast<void>(waiting.get(io));
        } catch (const colock::retry_error& failure) {
            return failure.attempts();
        }
        return std::size_t{0};
    };
    BOOST_TEST(attempts_of(three_more_attempts(), 2s) == 4U);
    BOOST_TEST(attempts_of(quick_then_patient(), 61s) > 4U);
    BOOST_TEST(attempts_of(until_noon(colock::lease_clock::now() + 3s), 5s) > 10U);
    BOOST_TEST(attempts_of(colock::retry_policy::never(), 64ns) == 1U);
}

BOOST_AUTO_TEST_CASE(cancellation)
{
    colock::lock busy = run(locker.acquire("k"));
    for (const auto type :
        {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
    {
        asio::cancellation_signal signal;
        colock::error_code ended;
        locker.async_acquire(
            "k", asio::bind_cancellation_slot(signal.slot(), [&](colock::error_code failed, auto) { ended = failed; }));
        colock::testing::run_ready(io);
        signal.emit(type);
        colock::testing::run_ready(io);
        BOOST_TEST(ended == asio::error::operation_aborted);
    }

    // An awaitable can be cancelled only with the types that its coroutine accepts. Under co_spawn, that is `terminal`
    // by default.
    asio::cancellation_signal signal;
    bool done = false;
    asio::co_spawn(io, locker.acquire("k"),
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr, colock::lock) { done = true; }));
    colock::testing::run_ready(io);
    signal.emit(asio::cancellation_type::total);
    colock::testing::run_ready(io);
    BOOST_TEST(!done);
    signal.emit(asio::cancellation_type::terminal);
    colock::testing::run_ready(io);
    BOOST_TEST(done);

    BOOST_TEST(locker.stats().waiting == 0U);
    run(busy.release());
    BOOST_TEST(!locked("k"));
}

BOOST_AUTO_TEST_CASE(errors)
{
    using colock::errc;
    BOOST_TEST(code_of(locker.acquire("")) == errc::invalid_key);
    BOOST_TEST(code_of(locker.acquire(std::string(513, 'k'))) == errc::invalid_key);
    BOOST_TEST(code_of(locker.acquire("k", {.ttl = -1ms})) == errc::invalid_ttl);
    BOOST_TEST(code_of(locker.acquire("k", {.ttl = 99ms})) == errc::invalid_ttl);
    BOOST_TEST(code_of(locker.acquire("k", {.retry = colock::retry_policy::fixed(-1s)})) == errc::invalid_retry);
    BOOST_TEST(code_of(locker.acquire("k", {.max_holders = 2})) == errc::invalid_options);

    colock::lock held = run(locker.acquire("k", {.ttl = 1s}));
    jump(io, 2s);
    BOOST_TEST(!held.held());
    BOOST_TEST(code_of(held.extend(1s)) == errc::not_held);
    BOOST_TEST(code_of(held.release()) == colock::error_code());
    colock::lock late = run(locker.acquire("k", {.ttl = 1s}));
    jump(io, 2s);
    BOOST_TEST(code_of(late.release(colock::on_failure::raise)) == errc::not_held);
    BOOST_TEST(code_of(late.release(colock::on_failure::raise)) == colock::error_code());
    colock::lock moved = std::move(late);
    BOOST_TEST(code_of(late.extend(1s)) == errc::invalid_options); // NOLINT(bugprone-use-after-move)
}

BOOST_AUTO_TEST_SUITE_END()
