// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "two_lockers.hpp"

#include <algorithm>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(turns)

BOOST_AUTO_TEST_CASE(only_heads_send_requests_to_the_backend)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        colock::locker other_locker(env.memory);
        auto held = env.run(other_locker.acquire("k", endless));
        std::vector<running<lock>> waiting;
        for (int n = 0; n < 5; ++n) {
            waiting.push_back(env.start(env.locker->acquire("k", {.retry = rarely})));
            env.ready();
            BOOST_TEST(env.script->count(operation::create) == 1U);
            BOOST_TEST(env.script->count(operation::wait) == 1U);
        }
        BOOST_TEST(env.locker->stats().waiting == 5U);
        held = {};
        for (auto& each : waiting)
            static_cast<void>(each.get(env.io()));
        env.ready();
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(head_behind_a_local_holder_asks_only_a_backend_with_a_queue)
{
    for (const bool fifo : {true, false}) {
        two_lockers env(fifo);
        auto held = env.run(env.other_locker.acquire("k", endless));
        auto first = env.wait_for("k", {.ttl = 10s});
        auto second = env.wait_for("k");
        env.script->forget_calls();
        held = {};
        const auto holder = first.get(env.io());
        env.ready();
        // One create of the first waiter, and one of the second, which has a place in the backend's queue.
        BOOST_TEST(env.count(operation::create) == (fifo ? 2U : 1U));
        BOOST_TEST(env.count(operation::wait) == (fifo ? 1U : 0U));
        if (fifo)
            continue;
        env.advance_by_steps(9s, 1s);
        BOOST_TEST(env.count(operation::create) == 1U);
        // An expiry wakes nobody.
        env.advance_by_steps(2s, 100ms);
        BOOST_TEST(second.done());
        for (const auto& made : env.script->calls()) {
            if (made.what == operation::create && made.operation_start > holder.expires_at() - 9s)
                BOOST_TEST((made.operation_start >= holder.expires_at()));
        }
    }
}

/// Others may enter the queue while the first attempt of a waiter is being made. The waiter is then a head, but not at
/// the front.
BOOST_AUTO_TEST_CASE(late_head_does_not_disturb_the_heads_in_front)
{
    for (const bool with_rival : {false, true}) {
        for (const std::size_t more : {0U, 1U, 2U, 3U}) {
            virtual_fixture env(backend_kind::immediate);
            colock::locker other_locker(env.memory);
            std::size_t granted = 0;
            const auto pass_on = [&](colock::locker& by) {
                by.async_acquire("k", {.retry = rarely}, [&granted](error_code failed, lock) {
                    if (!failed)
                        ++granted;
                });
                env.ready();
            };
            auto held = env.acquire("k");
            env.script->next(operation::create, step::pass().before([&] {
                for (std::size_t n = 0; n < 2 + more; ++n)
                    pass_on(*env.locker);
            }));
            pass_on(*env.locker);
            if (with_rival)
                pass_on(other_locker);
            held = {};
            env.ready();
            BOOST_TEST(granted == 3 + more + (with_rival ? 1 : 0));
            // Nothing of this queue affects the next one.
            held = env.acquire("k");
            for (int n = 0; n < 2; ++n)
                pass_on(*env.locker);
            held = {};
            env.ready();
            BOOST_TEST(granted == 5 + more + (with_rival ? 1 : 0));
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(recycled_queue_has_no_data_of_its_former_key)
{
    two_lockers env(false);
    auto held = env.run(env.other_locker.acquire("a", endless));
    auto first = env.wait_for("a");
    auto& second = env.add_waiter("a");
    held = {};
    const auto holder = first.get(env.io());
    env.stop(second);
    // Nobody waits for the first key any more, but it is held.
    auto other = env.wait_for("b");
    BOOST_TEST_REQUIRE(other.done());
    BOOST_TEST(other.get(env.io()).held());
    BOOST_TEST(holder.held());
}

BOOST_AUTO_TEST_CASE(waiter_leaving_the_middle_of_the_queue_promotes_nobody)
{
    two_lockers env(true);
    auto held = env.run(env.other_locker.acquire("k", endless));
    auto reader = env.wait_for("k", shared);
    auto& writer = env.add_waiter("k");
    auto next_writer = env.wait_for("k");
    auto last = env.wait_for("k", shared);
    env.stop(writer);
    BOOST_TEST(env.count(operation::create) == 1U);
    held = {};
    held = reader.get(env.io());
    BOOST_TEST(!next_writer.done());
    held = {};
    held = next_writer.get(env.io());
    BOOST_TEST(!last.done());
}

BOOST_AUTO_TEST_CASE(next_writer_or_all_readers_in_front_ask_after_a_granted_writer)
{
    struct row
    {
        std::vector<lock_mode> behind;
        std::size_t ask;
    };
    constexpr auto x = lock_mode::exclusive;
    constexpr auto s = lock_mode::shared;
    for (const auto& [behind, ask] : {row{{x, s}, 1}, row{{x, x}, 1}, row{{s, s, x}, 2}, row{{s, x, s}, 1}}) {
        two_lockers env(true);
        auto held = env.run(env.other_locker.acquire("k", endless));
        auto first = env.wait_for("k");
        std::vector<running<lock>> line;
        for (const auto mode : behind)
            line.push_back(env.wait_for("k", {.mode = mode}));
        env.script->forget_calls();
        held = {};
        held = first.get(env.io());
        env.ready();
        BOOST_TEST(env.count(operation::create) == 1 + ask);
        held = {};
        env.ready();
        for (std::size_t n = 0; n < line.size(); ++n)
            BOOST_TEST(line[n].done() == (n < ask));
    }
}

BOOST_AUTO_TEST_CASE(release_in_doubt_makes_waiters_ask_the_backend)
{
    two_lockers env(false);
    env.script->always(operation::wait, step::hold());
    auto held = env.acquire("k");
    auto reader = env.wait_for("k", shared);
    env.script->next(operation::release, step::lose_reply());
    held = {};
    env.ready();
    BOOST_TEST(reader.done());
}

BOOST_AUTO_TEST_CASE(loss_makes_waiters_ask_the_backend)
{
    two_lockers env(false);
    env.script->open_session(lease_clock::now() + 1h);
    env.script->always(operation::wait, step::hold());
    auto held = env.acquire("k");
    auto waiting = env.wait_for("k");
    env.script->always(operation::release, step::hold());
    env.script->forget_calls();
    env.script->end_session();
    env.ready();
    BOOST_TEST(env.count(operation::create) == 1U);
}

BOOST_AUTO_TEST_CASE(local_waiters_yield_to_waiters_of_other_lockers)
{
    struct row
    {
        lease_clock::duration took;
        lease_clock::duration at_least;
    };
    // The local waiter waits for twice the duration of the release, within bounds.
    for (const auto& [took, at_least] : {row{0ms, 500us}, row{500ms, 20ms}}) {
        two_lockers env(false);
        env.script->always(operation::wait, step::hold());
        auto held = env.acquire("k");
        auto reader = env.wait_for("k", shared);
        env.script->forget_calls();
        lease_clock::time_point answered;
        env.script->next(operation::release, instrumented_adapter::others_wait(step::pass()).after([&, skipped = took] {
            env.clock.skip(skipped);
            answered = lease_clock::now();
        }));
        held = {};
        env.ready();
        // This exceeds the upper bound of the wait, however long the machine took meanwhile.
        env.advance(25ms);
        BOOST_TEST_REQUIRE(reader.done());
        const auto calls = env.script->calls();
        const auto create = std::ranges::find(calls, operation::create, &call::what);
        BOOST_TEST_REQUIRE((create != calls.end()));
        BOOST_TEST((create->operation_start - answered >= at_least));
    }
}

BOOST_AUTO_TEST_CASE(becoming_head_does_not_count_as_an_attempt)
{
    two_lockers env(true);
    auto held = env.run(env.other_locker.acquire("k", endless));
    auto& head = env.add_waiter("k");
    // Attempts counted at 0 s and 10 s by its own delays.
    auto counted = env.wait_for("k", {.retry = retry_policy::fixed(10s).jitter(0).times(3)});
    env.advance_by_steps(15s, 1s);
    env.stop(head);
    BOOST_TEST(env.count(operation::create) == 2U);
    // At 20 s and 30 s the waiter sends requests.
    env.advance_by_steps(13s, 1s);
    BOOST_TEST(!counted.done());
    env.advance_by_steps(4s, 1s);
    BOOST_TEST_REQUIRE(counted.done());
    const auto thrown = required_error<retry_error>([&] { static_cast<void>(counted.get(env.io())); });
    BOOST_TEST(thrown.counted_attempts() == 4U);
    // One request when it became the head, and two after that.
    BOOST_TEST(thrown.attempts() == 3U);
}

BOOST_AUTO_TEST_SUITE_END()
