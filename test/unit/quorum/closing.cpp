// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/detail/generation.hpp>
#include <colock/locker.hpp>

#include <atomic>
#include <thread>

using namespace colock;
using namespace colock::testing;

BOOST_FIXTURE_TEST_SUITE(quorum_closing, leftovers)

BOOST_AUTO_TEST_CASE(closing_takes_back_what_it_can)
{
    leave_on(c);
    comes_back(c);
    auto closes = start(io(), on->backend().close(1s));
    ready();
    // At once, not at the next round.
    BOOST_TEST(closes.done());
    BOOST_TEST(standing() == "000");
    BOOST_TEST(unproven() == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(closing_gives_up_the_rest_and_says_so)
{
    leave_on(c, 1h);
    auto closes = start(io(), on->backend().close(1min));
    ready();
    BOOST_TEST(!closes.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 0U);
    pass(patience + 50ms);
    BOOST_TEST(closes.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 1U);
    BOOST_TEST(unproven() == 1U);
    BOOST_TEST(idle());
    comes_back(c);
    // It stays usable, and what it leaves from now on is taken back again.
    leave_on(c, 1h, "other");
    BOOST_TEST(!idle());
    comes_back(c);
    pass(300ms);
    BOOST_TEST(idle());
    BOOST_TEST(standing() == "001");
}

BOOST_AUTO_TEST_CASE(closing_waits_for_what_is_under_way)
{
    const auto claim = driver::exclusive("k", 1h);
    on->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::hold());
    on->give_back(claim);
    auto closes = start(io(), on->backend().close(1min));
    ready();
    BOOST_TEST(!closes.done());
    nodes[c]->deliver();
    ready();
    BOOST_TEST(closes.done());
    BOOST_TEST(unproven() == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(what_fails_after_the_close_is_not_kept)
{
    const auto claim = driver::exclusive("k", 1h);
    on->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::hold());
    on->give_back(claim);
    auto closes = start(io(), on->backend().close(100ms));
    pass(150ms);
    BOOST_TEST(closes.done());
    BOOST_TEST(unproven() == 0U);
    nodes[c]->discard();
    ready();
    BOOST_TEST(unproven() == 1U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_shutdown_reports_what_a_node_still_holds)
{
    locker locks(on->shared_backend());
    auto held = run_coro(io(), locks.acquire("k", {.ttl = 1h}));
    ready();
    goes_away(c);
    run_coro(io(), held.release());
    auto report = start(io(), locks.shutdown(10s));
    pass(1s);
    BOOST_TEST_REQUIRE(report.done());
    const auto told = report.get(io());
    BOOST_TEST(told.clean());
    BOOST_TEST(told.unproven == 1U);
    BOOST_TEST(locks.stats().unproven == 1U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_shutdown_of_what_is_well_is_clean)
{
    locker locks(on->shared_backend());
    auto held = run_coro(io(), locks.acquire("k", {.ttl = 1h}));
    const auto told = run_coro(io(), locks.shutdown(10s));
    BOOST_TEST(told.clean());
    BOOST_TEST(told.unproven == 0U);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_second_shutdown_ends_as_well)
{
    // With another thread about, a mutex that is taken twice is never had.
    std::atomic<bool> over{false};
    std::thread other([&] { over.wait(false); });
    locker locks(on->shared_backend());
    static_cast<void>(run_coro(io(), locks.shutdown(10s)));
    static_cast<void>(run_coro(io(), locks.shutdown(10s)));
    over = true;
    over.notify_one();
    other.join();
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_node_that_comes_back_while_it_is_waited_for_is_cleaned)
{
    // An earlier close has no part in it.
    auto first = start(io(), on->backend().close(50ms));
    pass(100ms);
    BOOST_TEST(first.done());
    leave_on(c, 1h);
    auto closes = start(io(), on->backend().close(1min));
    pass(200ms);
    BOOST_TEST(!closes.done());
    comes_back(c);
    pass(100ms);
    BOOST_TEST(closes.done());
    BOOST_TEST(unproven() == 0U);
    BOOST_TEST(standing() == "000");
}

BOOST_AUTO_TEST_CASE(closing_waits_for_a_round_that_is_under_way)
{
    leave_on(c, 1h);
    comes_back(c);
    nodes[c]->next(operation::abandon, step::hold());
    pass(300ms);
    BOOST_TEST(nodes[c]->held() == 1U);
    auto closes = start(io(), on->backend().close(1min));
    ready();
    BOOST_TEST(!closes.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 0U);
    nodes[c]->deliver();
    ready();
    BOOST_TEST(closes.done());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(the_soonest_of_two_deadlines_counts)
{
    leave_on(c, 1h);
    auto first = start(io(), on->backend().close(100ms));
    auto second = start(io(), on->backend().close(1min));
    pass(150ms);
    BOOST_TEST(first.done());
    BOOST_TEST(second.done());
    BOOST_TEST(nodes[c]->count(operation::close) == 1U);
    BOOST_TEST(unproven() == 1U);
}

BOOST_AUTO_TEST_CASE(what_was_left_before_a_fork_is_the_parents)
{
    leave_on(c, 1h);
    const auto under_way = driver::exclusive("under way", 1h);
    comes_back(c);
    on->grant(under_way);
    ready();
    nodes[c]->next(operation::abandon, step::hold());
    on->give_back(under_way);
    io().notify_fork(asio::execution_context::fork_prepare);
    ++colock::detail::generation;
    io().notify_fork(asio::execution_context::fork_child);
    nodes[c]->discard();
    ready();
    nodes[c]->forget_calls();
    pass(5s);
    BOOST_TEST(attempts(c) == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_SUITE_END()
