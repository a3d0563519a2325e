// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <map>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(queues)

namespace {

/// Records the order in which waiters get the lock.
struct grant_order
{
    virtual_fixture& env;
    std::vector<int> order;
    std::map<int, lock> held;

    void join(int number, acquire_options options = {})
    {
        env.locker->async_acquire("k", std::move(options), [this, number](error_code code, lock granted) {
            BOOST_TEST(!code, code.message());
            order.push_back(number);
            held[number] = std::move(granted);
        });
        env.ready();
    }
    void leave(int number)
    {
        held.erase(number);
        env.ready();
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(local_waiters_are_served_in_arrival_order)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        grant_order waiters{env, {}, {}};
        auto held = env.acquire("k");
        for (int n = 0; n < 5; ++n)
            waiters.join(n);
        BOOST_TEST(waiters.order.empty());
        held = {};
        env.ready();
        for (int n = 0; n < 5; ++n) {
            BOOST_TEST_REQUIRE(waiters.order.size() == static_cast<std::size_t>(n) + 1);
            BOOST_TEST(waiters.order.back() == n);
            waiters.leave(n);
        }
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(only_heads_send_requests_to_the_backend)
{
    virtual_fixture env(backend_kind::scripted);
    grant_order waiters{env, {}, {}};
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", endless));
    for (int n = 0; n < 10; ++n)
        waiters.join(n);
    BOOST_TEST(env.script->count(operation::create) == 1U);
    BOOST_TEST(env.script->count(operation::wait) == 1U);
    BOOST_TEST(env.locker->stats().waiting == 10U);
    held = {};
    for (int n = 0; n < 10; ++n) {
        env.ready();
        waiters.leave(n);
    }
    BOOST_TEST(waiters.order.size() == 10U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(consecutive_shared_claims_at_the_front_are_heads_together)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        grant_order waiters{env, {}, {}};
        colock::locker other_locker(env.memory);
        auto held = env.run(other_locker.acquire("k", endless));
        waiters.join(1, shared);
        waiters.join(2, shared);
        waiters.join(3);
        waiters.join(4, shared);
        if (env.script)
            BOOST_TEST(env.script->count(operation::create) == 2U);
        held = {};
        env.ready();
        BOOST_TEST((waiters.order == std::vector{1, 2}));
        waiters.leave(1);
        BOOST_TEST((waiters.order == std::vector{1, 2}));
        waiters.leave(2);
        BOOST_TEST((waiters.order == std::vector{1, 2, 3}));
        waiters.leave(3);
        BOOST_TEST((waiters.order == std::vector{1, 2, 3, 4}));
        waiters.leave(4);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(shared_heads_increase_when_the_exclusive_claim_behind_them_leaves)
{
    virtual_fixture env(backend_kind::scripted);
    grant_order waiters{env, {}, {}};
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", endless));
    waiters.join(1, shared);
    asio::cancellation_signal cancel;
    env.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
    env.ready();
    waiters.join(3, shared);
    BOOST_TEST(env.script->count(operation::create) == 1U);
    cancel.emit(asio::cancellation_type::terminal);
    env.ready();
    BOOST_TEST(env.script->count(operation::create) == 2U);
    held = {};
    env.ready();
    BOOST_TEST((waiters.order == std::vector{1, 3}));
    waiters.held.clear();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(cancelling_readers_and_writers_takes_no_longer_than_cancelling_writers)
{
    constexpr std::size_t count = 10'000;
    const auto cancel_all = [](std::size_t readers, bool newest_first) {
        virtual_fixture env;
        colock::locker other_locker(env.memory);
        const auto held = env.run(other_locker.acquire("k", endless));
        std::vector<asio::cancellation_signal> stop(2 * count);
        std::size_t ended = 0;
        for (std::size_t n = 0; n < stop.size(); ++n) {
            env.locker->async_acquire("k", {.mode = n < readers ? lock_mode::shared : lock_mode::exclusive},
                asio::bind_cancellation_slot(stop[n].slot(), [&ended](error_code, lock) { ++ended; }));
        }
        env.ready();
        BOOST_TEST(env.locker->stats().waiting == 2 * count);
        // The CPU time of this program, because other programs may be running.
        const std::clock_t start = std::clock();
        for (std::size_t n = 0; n < stop.size(); ++n)
            stop[newest_first ? stop.size() - 1 - n : n].emit(asio::cancellation_type::terminal);
        env.ready();
        BOOST_TEST(ended == 2 * count);
        return std::chrono::milliseconds((std::clock() - start) / (CLOCKS_PER_SEC / 1000));
    };
    for (const bool newest_first : {true, false}) {
        auto writers = cancel_all(0, newest_first);
        auto both = cancel_all(count, newest_first);
        // The shortest of three measurements counts.
        for (int n = 0; n < 2; ++n) {
            writers = std::min(writers, cancel_all(0, newest_first));
            both = std::min(both, cancel_all(count, newest_first));
        }
        BOOST_TEST((both < 4 * writers), (newest_first ? "newest first: " : "oldest first: ")
                                             << both.count() << " ms, writers alone " << writers.count() << " ms");
    }
}

BOOST_AUTO_TEST_CASE(readers_behind_a_writer_that_leaves_join_those_in_front)
{
    virtual_fixture env(backend_kind::scripted);
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", endless));
    grant_order waiters{env, {}, {}};
    waiters.join(1, shared);
    waiters.join(2, shared);
    asio::cancellation_signal first, second;
    env.locker->async_acquire("k", asio::bind_cancellation_slot(first.slot(), [](error_code, lock) {}));
    waiters.join(3, shared);
    env.locker->async_acquire("k", asio::bind_cancellation_slot(second.slot(), [](error_code, lock) {}));
    waiters.join(4, shared);
    // The later writer leaves first. The earlier writer is still in front of the readers 3 and 4.
    second.emit(asio::cancellation_type::terminal);
    env.ready();
    BOOST_TEST(env.script->count(operation::create) == 2U);
    first.emit(asio::cancellation_type::terminal);
    env.ready();
    BOOST_TEST(env.script->count(operation::create) == 4U);
    held = {};
    env.ready();
    BOOST_TEST((waiters.order == std::vector{1, 2, 3, 4}));
    waiters.held.clear();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(try_acquire_never_overtakes_a_local_waiter)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        grant_order waiters{env, {}, {}};
        colock::locker other_locker(env.memory);
        auto held = env.run(other_locker.acquire("k", endless));
        if (env.script)
            env.script->always(operation::wait, step::hold());
        waiters.join(1);
        const auto asked = env.script ? env.script->count(operation::create) : 0;
        if (env.script) {
            // The lock is free, but its waiter has not been notified yet.
            held = {};
            env.ready();
        }
        BOOST_TEST(!env.run(env.locker->try_acquire("k")).has_value());
        if (env.script)
            BOOST_TEST(env.script->count(operation::create) == asked);
        held = {};
        env.advance(3s);
        BOOST_TEST((waiters.order == std::vector{1}));
        waiters.leave(1);
        BOOST_TEST(env.run(env.locker->try_acquire("k")).has_value());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(hand_overs_are_capped_where_the_backend_keeps_no_queue)
{
    constexpr int count = 40;
    for (const bool fifo : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        auto can = env.script->traits().capabilities;
        can.fifo = fifo;
        env.script->set_capabilities(can);
        env.locker.emplace(env.backend());
        grant_order waiters{env, {}, {}};
        auto held = env.acquire("k");
        for (int n = 0; n < count; ++n)
            waiters.join(n);
        env.script->forget_calls();
        held = {};
        for (int n = 0; n < count; ++n) {
            env.ready();
            BOOST_TEST_REQUIRE(waiters.order.size() == static_cast<std::size_t>(n) + 1);
            waiters.leave(n);
        }
        std::size_t in_a_row = 0;
        std::size_t longest = 0;
        for (const auto& made : env.script->calls()) {
            if (made.what == operation::hand_over)
                longest = std::max(longest, ++in_a_row);
            else if (made.what == operation::release || made.what == operation::abandon)
                in_a_row = 0;
        }
        BOOST_TEST(longest == (fifo ? 40U : 16U));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_release_wakes_the_next_without_a_timer)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        grant_order waiters{env, {}, {}};
        colock::locker other_locker(env.memory);
        auto held = env.run(other_locker.acquire("k", endless));
        waiters.join(1);
        env.run(held.release());
        env.ready();
        BOOST_TEST(waiters.order.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_local_release_wakes_a_head_whose_attempt_was_under_way)
{
    virtual_fixture env(backend_kind::scripted);
    auto can = env.script->traits().capabilities;
    can.events = false;
    env.script->set_capabilities(can);
    env.locker.emplace(env.backend());
    auto held = env.acquire("k");
    env.script->next(operation::create, step::busy());
    env.script->next(operation::create, step::hold());
    auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0)}));
    env.advance(11s);
    BOOST_TEST_REQUIRE(env.script->held_count() == 1U);
    // The second attempt finds the holder, which releases before the answer arrives.
    env.script->next(operation::create, step::pass());
    env.script->deliver();
    held = {};
    env.ready();
    env.advance(100ms);
    BOOST_TEST(waiting.done());
    if (waiting.done())
        static_cast<void>(waiting.get(env.io()));
}

BOOST_AUTO_TEST_CASE(an_expiry_that_wakes_nobody_bounds_the_wait)
{
    virtual_fixture env(backend_kind::scripted);
    grant_order waiters{env, {}, {}};
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", {.ttl = 10s}));
    env.script->always(operation::wait, step::hold());
    env.locker->async_acquire("k", {.retry = retry_policy::fixed(1h)}, [&](error_code code, lock granted) {
        BOOST_TEST(!code);
        waiters.order.push_back(1);
        waiters.held[1] = std::move(granted);
    });
    env.advance(9s);
    BOOST_TEST(waiters.order.empty());
    env.advance_by_steps(2s, 500ms);
    BOOST_TEST(waiters.order.size() == 1U);
}

BOOST_AUTO_TEST_CASE(total_time_is_absolute_and_wake_ups_are_no_attempts)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::create, step::busy());
    env.script->always(operation::wait, step::hold());
    auto waiting =
        env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1h).jitter(0).times(1).total_time(1min)}));
    for (int second = 0; second < 59; ++second) {
        env.advance(1s);
        BOOST_TEST_REQUIRE(!waiting.done());
        // Wakes the waiter.
        BOOST_TEST(env.script->deliver());
        env.ready();
    }
    BOOST_TEST(env.locker->stats().attempts == 60U);
    BOOST_TEST(env.locker->stats().retries == 0U);
    env.advance(2s);
    const auto thrown = thrown_by<retry_error>([&] { static_cast<void>(waiting.get(env.io())); });
    BOOST_TEST_REQUIRE(thrown.has_value());
    BOOST_TEST((thrown->elapsed() >= 1min));
    BOOST_TEST((thrown->elapsed() < 62s));
    env.wind_down();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(without_events_the_core_polls_by_the_policy_alone)
{
    virtual_fixture env(backend_kind::scripted);
    auto can = env.script->traits().capabilities;
    can.events = false;
    can.fifo = false;
    env.script->set_capabilities(can);
    env.locker.emplace(env.backend());
    env.script->always(operation::create, step::busy());
    auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0).times(3)}));
    env.advance_by_steps(29s, 500ms);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(env.script->count(operation::create) == 3U);
    env.advance_by_steps(2s, 500ms);
    COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
    BOOST_TEST(env.script->count(operation::create) == 4U);
    BOOST_TEST(env.script->count(operation::wait) == 0U);
    BOOST_TEST(env.locker->stats().retries == 3U);
    env.wind_down();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(waiter_behind_the_head_counts_by_its_own_delays_without_requests)
{
    virtual_fixture env(backend_kind::scripted);
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", endless));
    auto head = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(24h)}));
    env.ready();
    auto behind_it = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0).times(3)}));
    env.ready();
    const auto asked = env.script->count(operation::create);
    env.advance_by_steps(45s, 1s);
    BOOST_TEST_REQUIRE(behind_it.done());
    COLOCK_THROWS(retry_error, errc::retry_exhausted, behind_it.get(env.io()));
    BOOST_TEST(env.script->count(operation::create) == asked);
    held = {};
    env.ready();
    BOOST_TEST(head.get(env.io()).held());
}

BOOST_AUTO_TEST_CASE(an_immediate_retry_does_not_starve_the_loop)
{
    for (const auto& policy :
        {retry_policy::fixed(0s).jitter(0), retry_policy::custom([](const retry_attempt&) { return 0s; })})
    {
        virtual_fixture env;
        colock::locker other_locker(env.memory);
        auto held = env.run(other_locker.acquire("k", endless));
        env.locker->async_acquire("k", {.retry = policy}, [](error_code, lock) {});
        int others = 0;
        std::function<void()> again = [&] {
            if (++others < 50)
                asio::post(env.io(), again);
            else
                held = {};
        };
        asio::post(env.io(), again);
        env.io().restart();
        for (int handlers = 0; handlers < 2000 && others < 50; ++handlers)
            static_cast<void>(env.io().poll_one());
        BOOST_TEST(others == 50);
        env.ready();
        env.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
