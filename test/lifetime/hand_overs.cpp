// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "two_lockers.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(hand_overs)

BOOST_AUTO_TEST_CASE(next_waiter_becomes_head_when_a_hand_over_is_sent)
{
    constexpr auto x = lock_mode::exclusive;
    constexpr auto s = lock_mode::shared;
    for (const bool fifo : {true, false}) {
        for (const auto& [behind, expected_creates] : {std::pair{std::vector{x, x}, 1U},
                 std::pair{std::vector{s, s, x}, 2U}, std::pair{std::vector{s, x, s}, 1U}})
        {
            two_lockers env(fifo);
            auto held = env.acquire("k");
            auto next = env.wait_for("k");
            std::vector<running<lock>> waiters;
            for (const auto mode : behind)
                waiters.push_back(env.wait_for("k", {.mode = mode}));
            env.script->forget_calls();
            env.script->next(operation::hand_over, step::hold());
            held = {};
            env.ready();
            // The create is sent in the same handler as the hand-over, so that both can be sent together.
            BOOST_TEST(env.count(operation::hand_over) == 1U);
            BOOST_TEST(env.count(operation::create) == (fifo ? expected_creates : 0U));
            env.script->deliver();
            BOOST_TEST(next.get(env.io()).held());
            for (auto& each : waiters)
                BOOST_TEST(each.get(env.io()).held());
            env.ready();
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(failed_hand_over_keeps_the_order_of_the_queue)
{
    for (const auto& failing : {step::lose_request(), step::lose_reply(), step::busy()}) {
        two_lockers env(true);
        auto held = env.acquire("k");
        auto next = env.wait_for("k", {.retry = retry_policy::fixed(10ms)});
        auto following = env.wait_for("k");
        auto last = env.wait_for("k");
        env.script->next(operation::hand_over, failing);
        held = {};
        env.ready();
        env.advance_by_steps(10s, 10ms);
        BOOST_TEST(next.done());
        BOOST_TEST(!following.done());
        held = next.get(env.io());
        held = {};
        env.advance_by_steps(10s, 10ms);
        BOOST_TEST(following.done());
        BOOST_TEST(!last.done());
        held = following.get(env.io());
        held = {};
        BOOST_TEST(last.get(env.io()).held());
        env.ready();
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(next_waiter_sends_no_request_after_a_hand_over)
{
    two_lockers env(false);
    auto held = env.acquire("k");
    auto first = env.wait_for("k");
    auto second = env.wait_for("k");
    env.script->forget_calls();
    held = {};
    held = first.get(env.io());
    env.ready();
    BOOST_TEST(env.count(operation::hand_over) == 1U);
    BOOST_TEST(env.count(operation::create) == 0U);
    held = {};
    BOOST_TEST(second.get(env.io()).held());
    BOOST_TEST(env.count(operation::hand_over) == 2U);
    BOOST_TEST(env.count(operation::create) == 0U);
}

BOOST_AUTO_TEST_CASE(hand_over_that_finds_the_key_taken_does_not_count_as_an_attempt)
{
    two_lockers env(false);
    auto held = env.run(env.other_locker.acquire("k", endless));
    auto first = env.wait_for("k");
    // The waiter's only retry is counted when it enters the queue behind the head.
    auto second = env.wait_for("k", {.retry = retry_policy::fixed(24h).jitter(0).times(1)});
    held = {};
    held = first.get(env.io());
    env.ready();
    env.script->forget_calls();
    env.script->always(operation::wait, step::hold());
    env.script->next(operation::hand_over, step::busy());
    env.script->next(operation::create, step::busy());
    held = {};
    env.ready();
    BOOST_TEST(env.count(operation::hand_over) == 1U);
    // The release woke the waiter, which sent a create. The retry policy counts neither the hand-over nor this create.
    // After its first request, the waiter listens for events.
    BOOST_TEST(env.count(operation::create) == 1U);
    BOOST_TEST(env.count(operation::wait) == 1U);
    BOOST_TEST(!second.done());
    env.script->deliver();
    BOOST_TEST(second.get(env.io()).held());
}

BOOST_AUTO_TEST_CASE(each_queue_counts_its_own_hand_overs_and_has_a_limit_if_the_backend_keeps_none)
{
    for (const bool fifo : {false, true}) {
        two_lockers env(fifo);
        // Returns how many consecutive hand-overs are made.
        const auto pass_on = [&](const std::string& key, int waiters) {
            env.script->forget_calls();
            auto held = env.acquire(key);
            std::vector<running<lock>> waiting;
            for (int n = 0; n < waiters; ++n)
                waiting.push_back(env.wait_for(key));
            for (auto& each : waiting) {
                held = {};
                held = each.get(env.io());
                env.ready();
            }
            held = {};
            env.ready();
            return env.count(operation::hand_over);
        };
        BOOST_TEST(pass_on("a", 10) == 10U);
        BOOST_TEST(pass_on("b", 16) == 16U);
        // Every seventeenth release gives other lockers a chance, unless the backend keeps a queue.
        BOOST_TEST(pass_on("c", 40) == (fifo ? 40U : 38U));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(only_an_exclusive_lock_is_handed_over_to_a_single_exclusive_claim)
{
    for (const bool fifo : {true, false}) {
        struct row
        {
            lock_mode from;
            std::vector<lock_mode> to;
            bool handed_over;
        };
        constexpr auto x = lock_mode::exclusive;
        constexpr auto s = lock_mode::shared;
        for (const auto& [from, to, handed_over] :
            {row{x, {x}, true}, row{x, {s}, false}, row{x, {s, s}, false}, row{s, {x}, false}})
        {
            two_lockers env(fifo);
            auto held = env.acquire("k", {.mode = from});
            std::vector<running<lock>> waiters;
            for (const auto mode : to)
                waiters.push_back(env.wait_for("k", {.mode = mode}));
            held = {};
            env.ready();
            BOOST_TEST(env.count(operation::hand_over) == (handed_over ? 1U : 0U));
            for (auto& each : waiters)
                BOOST_TEST(each.done());
        }
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_handed_over_to_a_claim_in_doubt_nor_by_one_that_was_lost_or_never_granted)
{
    {
        two_lockers env(false);
        auto held = env.acquire("k");
        env.script->next(operation::create, step::lose_request());
        auto doubtful = env.wait_for("k");
        held = {};
        env.ready();
        BOOST_TEST(env.count(operation::hand_over) == 0U);
        BOOST_TEST(env.count(operation::release) == 1U);
    }
    {
        two_lockers env(false);
        env.script->open_session(lease_clock::now() + 1h);
        auto held = env.acquire("k");
        auto waiting = env.wait_for("k");
        env.script->end_session();
        env.ready();
        BOOST_TEST(env.count(operation::hand_over) == 0U);
        BOOST_TEST(waiting.done());
    }
    {
        two_lockers env(true);
        auto held = env.run(env.other_locker.acquire("k", endless));
        auto& head = env.add_waiter("k");
        auto waiting = env.wait_for("k");
        env.stop(head);
        BOOST_TEST(env.count(operation::hand_over) == 0U);
        BOOST_TEST(env.count(operation::abandon) == 1U);
        BOOST_TEST(!waiting.done());
    }
}

BOOST_AUTO_TEST_SUITE_END()
