// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/locker.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace colock;
using namespace colock::testing;

namespace {

constexpr auto ttl = 10s;

struct leftovers : three_nodes
{
    /// Held on all three, and given back while `node` does not answer to that.
    void leave_on(std::size_t node, std::chrono::milliseconds life = ttl, const std::string& key = "k")
    {
        const auto claim = driver::exclusive(key, life);
        on->grant(claim);
        ready();
        goes_away(node);
        on->give_back(claim);
        ready();
    }
    [[nodiscard]] std::size_t attempts(std::size_t node) const { return nodes[node]->count(operation::abandon); }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(quorum_leftovers, leftovers)

BOOST_AUTO_TEST_CASE(what_is_being_taken_back_is_never_used_again)
{
    const auto claim = driver::exclusive("k", ttl);
    on->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::hold());
    on->give_back(claim);
    // Only b is free: c holds what is being taken back, and a take-back that came after a second grant would remove it.
    take(a);
    on->refuse(claim);
    ready();
    BOOST_TEST(standing() == "101");
    nodes[c]->deliver();
    ready();
    BOOST_TEST(standing() == "100");
    on->grant(claim);
    ready();
    BOOST_TEST(standing() == "111");
    BOOST_TEST(idle());
    on->check_held(claim);
}

BOOST_AUTO_TEST_CASE(a_late_grant_that_is_taken_back_cannot_remove_the_next_one)
{
    locker locks(on->shared_backend(), {.minimum_validity = 9800ms});
    // The first grant comes too late; c answers to its take-back when the second is held.
    for (const auto& node : nodes)
        node->next(operation::create, step::pass().delay(150ms));
    nodes[c]->next(operation::abandon, step::hold());
    auto acquires = start(io(), locks.acquire("k", {.ttl = 10s, .retry = retry_policy::fixed(300ms).jitter(0)}));
    pass(1s);
    BOOST_TEST_REQUIRE(acquires.done());
    auto held = acquires.get(io());
    const auto before = standing();
    nodes[c]->deliver();
    pass(1s);
    BOOST_TEST(held.held());
    BOOST_TEST(run_coro(io(), held.is_locked()));
    BOOST_TEST(standing(a) == 1U);
    BOOST_TEST(standing(b) == 1U);
    BOOST_TEST(before == "111");
    run_coro(io(), held.release());
    pass(1s);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_minority_is_taken_back_at_once)
{
    take(a);
    take(b);
    on->refuse(driver::exclusive("k", ttl));
    ready();
    BOOST_TEST(standing() == "110");
    BOOST_TEST(attempts(a) + attempts(b) == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_grant_that_comes_after_the_refusal_is_taken_back)
{
    take(a);
    take(b);
    nodes[c]->next(operation::create, step::hold());
    on->refuse(driver::exclusive("k", ttl));
    nodes[c]->deliver();
    ready();
    BOOST_TEST(attempts(c) == 1U);
    BOOST_TEST(standing() == "110");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(what_may_have_been_granted_is_taken_back)
{
    nodes[a]->next(operation::create, step::lose_reply());
    nodes[b]->next(operation::create, step::hold_unknown());
    const auto outcome = on->create(driver::exclusive("k", ttl));
    BOOST_TEST(outcome.status == create_status::failed);
    BOOST_TEST((outcome.error->code == errc::outcome_unknown));
    ready();
    BOOST_TEST(standing() == "000");
    // The request of b is still on its way.
    nodes[b]->deliver();
    ready();
    BOOST_TEST(standing() == "010");
    pass(300ms);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(what_was_certainly_not_sent_leaves_nothing_to_take_back)
{
    goes_away(c);
    for (int i = 0; i < 10; ++i) {
        const auto claim = driver::exclusive("k", ttl);
        on->grant(claim);
        on->give_back(claim);
    }
    on->refuse([&] {
        take(a);
        return driver::exclusive("k", ttl);
    }());
    BOOST_TEST(attempts(c) == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(it_is_tried_until_the_node_is_back)
{
    leave_on(c);
    pass(5s);
    BOOST_TEST(standing() == "001");
    BOOST_TEST(!idle());
    comes_back(c);
    pass(300ms);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(any_failure_may_pass)
{
    const auto claim = driver::exclusive("k", ttl);
    on->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::fail(errc::misconfigured_backend, "the disk is full"));
    on->give_back(claim);
    pass(300ms);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(an_extension_is_taken_back_for_as_long_as_it_may_stand)
{
    const auto claim = driver::exclusive("k", 1s);
    on->grant(claim);
    BOOST_TEST(on->extend(claim, 60s).status == extend_status::extended);
    ready();
    goes_away(c);
    on->give_back(claim);
    pass(30s);
    BOOST_TEST(standing() == "001");
    comes_back(c);
    pass(300ms);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(what_may_have_been_extended_counts_as_extended)
{
    const auto claim = driver::exclusive("k", 1s);
    on->grant(claim);
    ready();
    nodes[c]->next(operation::extend, step::lose_reply());
    BOOST_TEST(on->extend(claim, 60s).status == extend_status::extended);
    goes_away(c);
    on->give_back(claim);
    pass(30s);
    comes_back(c);
    pass(300ms);
    BOOST_TEST(standing() == "000");
}

BOOST_AUTO_TEST_CASE(what_was_given_up_counts_as_unproven)
{
    leave_on(c);
    pass(ttl);
    BOOST_TEST(!idle());
    BOOST_TEST(unproven() == 0U);
    pass(patience + 500ms);
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 1U);
}

BOOST_AUTO_TEST_CASE(a_crowd_of_leftovers_costs_no_more_than_a_few)
{
    constexpr std::size_t crowd = 200;
    std::vector<claim_ptr> claims;
    for (std::size_t i = 0; i < crowd; ++i) {
        claims.push_back(driver::exclusive(std::to_string(i), 60s));
        on->grant(claims.back());
    }
    ready();
    goes_away(c);
    for (const auto& each : claims)
        on->give_back(each);
    ready();
    nodes[c]->forget_calls();
    pass(10s);
    BOOST_TEST(attempts(c) > 0U);
    BOOST_TEST(attempts(c) <= 16U * 40U);
    BOOST_TEST(standing(c) == crowd);
    comes_back(c);
    pass(300ms);
    BOOST_TEST(standing(c) == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(one_that_cannot_be_proven_is_not_in_the_way_of_others)
{
    constexpr int stubborn = 20;
    for (int i = 0; i < stubborn; ++i) {
        nodes[c]->next(operation::create, step::hold_unknown());
        const auto claim = driver::exclusive("stubborn " + std::to_string(i), ttl);
        on->grant(claim);
        on->give_back(claim);
    }
    leave_on(c, ttl, "other");
    comes_back(c);
    pass(1s);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(!idle());
    while (nodes[c]->deliver())
        ready();
    pass(1s);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(closing_takes_back_what_it_can)
{
    leave_on(c);
    comes_back(c);
    run_coro(io(), on->backend().close(1s));
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

BOOST_AUTO_TEST_CASE(a_majority_that_is_away_is_asked_again_by_the_core)
{
    locker locks(on->shared_backend());
    auto held = run_coro(io(), locks.acquire("k", {.ttl = 1min}));
    ready();
    goes_away(b);
    goes_away(c);
    run_coro(io(), held.release());
    BOOST_TEST(locks.stats().settling == 1U);
    pass(10s);
    comes_back(b);
    comes_back(c);
    pass(3s);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(locks.stats().settled == 1U);
    BOOST_TEST(locks.stats().unproven == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_context_may_die_with_leftovers)
{
    leave_on(c, 1h);
    BOOST_TEST(!idle());
    auto backend = on->shared_backend();
    on.reset();
    nodes.clear();
    context.reset();
    backend.reset();
}

BOOST_AUTO_TEST_SUITE_END()
