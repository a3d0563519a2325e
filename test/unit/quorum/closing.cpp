// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/detail/generation.hpp>
#include <colock/locker.hpp>

#include <atomic>
#include <thread>

using namespace colock;
using namespace colock::testing;

BOOST_FIXTURE_TEST_SUITE(quorum_closing, unreleased_claims)

BOOST_AUTO_TEST_CASE(close_releases_claims_on_reachable_nodes)
{
    leave_claim_on(c);
    reconnect(c);
    auto closing = start(io(), env->backend().close(1s));
    ready();
    // The release is tried immediately and not in the next round.
    BOOST_TEST(closing.done());
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(unproven() == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(close_gives_up_remaining_claims_and_counts_them)
{
    leave_claim_on(c, 1h);
    reconnect(c);
    leave_claim_on(c, 1h, "another");
    auto closing = start(io(), env->backend().close(1min));
    ready();
    BOOST_TEST(!closing.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 0U);
    pass_time(node_timeout + 50ms);
    BOOST_TEST(closing.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 1U);
    BOOST_TEST(unproven() == 2U);
    BOOST_TEST(idle());
    reconnect(c);
    // The adapter stays usable, and releases remaining claims in the background as before.
    leave_claim_on(c, 1h, "other");
    BOOST_TEST(!idle());
    reconnect(c);
    pass_time(300ms);
    BOOST_TEST(idle());
    BOOST_TEST(holder_counts() == "002");
}

BOOST_AUTO_TEST_CASE(cancelled_close_ends_and_gives_nothing_up)
{
    leave_claim_on(c, 1h);
    auto closing = start(io(), env->backend().close(1min));
    ready();
    BOOST_TEST(!closing.done());
    env->backend().cancel_close();
    ready();
    BOOST_TEST(closing.done());
    BOOST_TEST(nodes[c]->cancelled_closes == 1);
    reconnect(c);
    pass_time(node_timeout + 300ms);
    BOOST_TEST(nodes[c]->count(operation::close) == 0U);
    BOOST_TEST(unproven() == 0U);
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(close_waits_for_release_in_flight)
{
    const auto claim = driver::exclusive("k", 1h);
    env->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::hold());
    env->release_held(claim);
    auto closing = start(io(), env->backend().close(1min));
    ready();
    BOOST_TEST(!closing.done());
    nodes[c]->deliver();
    ready();
    BOOST_TEST(closing.done());
    BOOST_TEST(unproven() == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(release_failed_after_close_is_not_retried)
{
    const auto claim = driver::exclusive("k", 1h);
    env->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::hold());
    env->release_held(claim);
    auto closing = start(io(), env->backend().close(100ms));
    pass_time(150ms);
    BOOST_TEST(closing.done());
    BOOST_TEST(unproven() == 0U);
    nodes[c]->discard();
    ready();
    BOOST_TEST(unproven() == 1U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(shutdown_reports_claims_still_held_by_a_node)
{
    locker locks(env->shared_backend());
    auto held = run_coro(io(), locks.acquire("k", {.ttl = 1h}));
    ready();
    disconnect(c);
    run_coro(io(), held.release());
    auto report = start(io(), locks.shutdown(10s));
    pass_time(1s);
    BOOST_TEST_REQUIRE(report.done());
    const auto outcome = report.get(io());
    BOOST_TEST(outcome.clean());
    BOOST_TEST(outcome.unproven == 1U);
    BOOST_TEST(locks.stats().unproven == 1U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_second_shutdown_ends_as_well)
{
    // Some mutexes do nothing in a program with one thread, so a second thread exists. If the shutdown locked such a
    // mutex twice, this test would block forever.
    std::atomic<bool> over{false};
    std::thread other([&] { over.wait(false); });
    locker locks(env->shared_backend());
    static_cast<void>(run_coro(io(), locks.shutdown(10s)));
    static_cast<void>(run_coro(io(), locks.shutdown(10s)));
    over = true;
    over.notify_one();
    other.join();
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(node_reconnected_during_close_is_cleaned_up)
{
    // An earlier close has no effect on the later one.
    auto first = start(io(), env->backend().close(50ms));
    pass_time(100ms);
    BOOST_TEST(first.done());
    leave_claim_on(c, 1h);
    auto closing = start(io(), env->backend().close(1min));
    pass_time(200ms);
    BOOST_TEST(!closing.done());
    reconnect(c);
    pass_time(100ms);
    BOOST_TEST(closing.done());
    BOOST_TEST(unproven() == 0U);
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(close_waits_for_round_in_flight)
{
    leave_claim_on(c, 1h);
    reconnect(c);
    nodes[c]->next(operation::abandon, step::hold());
    pass_time(300ms);
    BOOST_TEST(nodes[c]->held_count() == 1U);
    auto closing = start(io(), env->backend().close(1min));
    ready();
    BOOST_TEST(!closing.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 0U);
    nodes[c]->deliver();
    ready();
    BOOST_TEST(closing.done());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(close_stops_waiting_for_unanswered_attempt_at_deadline)
{
    std::uint64_t given_up = 0;
    for (const bool began_before : {true, false}) {
        leave_claim_on(c, 1h, std::to_string(given_up));
        reconnect(c);
        nodes[c]->next(operation::abandon, step::hold());
        if (began_before)
            pass_time(300ms);
        auto closing = start(io(), env->backend().close(100ms));
        ready();
        BOOST_TEST(nodes[c]->held_count() == 1U);
        BOOST_TEST(!closing.done());
        pass_time(150ms);
        BOOST_TEST(closing.done());
        nodes[c]->discard();
        ready();
        BOOST_TEST(unproven() == ++given_up);
    }
}

BOOST_AUTO_TEST_CASE(claim_left_unreleased_during_a_round_waits_for_the_next_round)
{
    leave_claim_on(c, 1h);
    reconnect(c);
    nodes[c]->next(operation::abandon, step::hold());
    auto closing = start(io(), env->backend().close(1min));
    ready();
    leave_claim_on(c, 1h, "other");
    reconnect(c);
    const auto before = attempts(c);
    pass_time(300ms);
    BOOST_TEST(attempts(c) == before);
    BOOST_TEST(!closing.done());
    nodes[c]->deliver();
    ready();
    BOOST_TEST(closing.done());
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_during_close)
{
    const auto watched = std::make_shared<int>();
    leave_claim_on(c, 1h);
    env->backend().start_close(1min, [watched](close_outcome) {});
    ready();
    context.reset();
    BOOST_TEST(watched.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(earlier_of_two_close_deadlines_applies)
{
    leave_claim_on(c, 1h);
    auto first = start(io(), env->backend().close(100ms));
    auto second = start(io(), env->backend().close(1min));
    pass_time(150ms);
    BOOST_TEST(first.done());
    BOOST_TEST(second.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 1U);
    BOOST_TEST(unproven() == 1U);
}

BOOST_AUTO_TEST_CASE(node_is_closed_within_remaining_time)
{
    const auto time_left = [&] { return nodes[c]->calls().back().ttl; };
    leave_claim_on(c, 1h);
    auto closing = start(io(), env->backend().close(1min));
    pass_time(node_timeout + 50ms);
    BOOST_TEST(closing.done());
    BOOST_TEST((time_left() > 50s && time_left() <= 1min - node_timeout));
    // Next, the event loop is blocked until the deadline of the close has passed.
    reconnect(c);
    leave_claim_on(c, 1h, "other");
    closing = start(io(), env->backend().close(100ms));
    ready();
    jump(io(), 1s);
    BOOST_TEST(closing.done());
    BOOST_TEST((time_left() == 0ms));
}

BOOST_FIXTURE_TEST_CASE(timer_stopped_when_due_starts_no_attempt, immediate_nodes)
{
    const auto first = driver::exclusive("k", 1h), second = driver::exclusive("other", 1h);
    env->grant(first);
    env->grant(second);
    disconnect(c);
    env->release_held(first);
    ready();
    BOOST_TEST(holder_counts() == "112");
    // This timer is due before that of the next attempt, and both complete in the same iteration of the event loop.
    lease_timer before(io(), 200ms);
    before.async_wait([&](const error_code&) {
        reconnect(c);
        env->backend().start_close(1min, [](close_outcome) {});
        BOOST_TEST(holder_counts() == "111");
        nodes[c]->forget_calls();
        disconnect(c);
        // The strand runs this release after the handler, and before it notices the other timer.
        env->backend().start_release(sent_now(second), release_guarantee::released, [](const release_outcome&) {});
    });
    jump(io(), 300ms);
    BOOST_TEST(holder_counts() == "001");
    BOOST_TEST(nodes[c]->count(operation::abandon) == 1U);
    jump(io(), 250ms);
    BOOST_TEST(nodes[c]->count(operation::abandon) == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
