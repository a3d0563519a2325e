// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/locker.hpp>

#include <vector>

using namespace colock;
using namespace colock::testing;

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

BOOST_AUTO_TEST_CASE(a_node_is_told_that_nobody_waits_for_its_create_any_more)
{
    for (const bool granted : {true, false}) {
        nodes[c]->next(operation::create, step::hold());
        const auto claim = driver::exclusive("k", ttl);
        if (granted) {
            on->grant(claim);
            BOOST_TEST(nodes[c]->held_for_nobody() == 0U);
            on->give_back(claim);
        } else {
            take(a);
            take(b);
            on->refuse(claim);
        }
        BOOST_TEST(nodes[c]->held_for_nobody() == 1U);
        nodes[c]->deliver();
        ready();
        BOOST_TEST(standing(c) == 0U);
    }
}

BOOST_AUTO_TEST_CASE(what_stood_before_another_create_failed_is_taken_back)
{
    const auto claim = driver::exclusive("k", ttl);
    on->grant(claim);
    ready();
    goes_away(c);
    on->grant(claim);
    ready();
    comes_back(c);
    on->give_back(claim);
    ready();
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_node_is_told_which_of_its_parts_may_have_been_granted_without_an_answer)
{
    nodes[b]->next(operation::create, step::fail(errc::unavailable));
    nodes[c]->next(operation::create, step::lose_reply());
    const auto claim = driver::exclusive("k", ttl);
    BOOST_TEST(on->create(claim).status == create_status::failed);
    ready();
    on->grant(claim);
    on->give_back(claim);
    ready();
    std::vector<bool> told;
    for (const auto& each : nodes[c]->calls()) {
        if (each.what == operation::abandon)
            told.push_back(each.in_doubt);
    }
    const std::vector<bool> expected{true, false};
    BOOST_TEST(told == expected, boost::test_tools::per_element());
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

BOOST_AUTO_TEST_CASE(a_shorter_extension_that_did_not_arrive_shortens_nothing)
{
    const auto claim = driver::exclusive("k", 1s);
    on->grant(claim);
    BOOST_TEST(on->extend(claim, 60s).status == extend_status::extended);
    ready();
    goes_away(c);
    BOOST_TEST(on->extend(claim, 1s).status == extend_status::extended);
    on->give_back(claim);
    pass(30s);
    BOOST_TEST(unproven() == 0U);
    comes_back(c);
    pass(300ms);
    BOOST_TEST(standing() == "000");
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

BOOST_AUTO_TEST_CASE(a_crowd_that_expires_together_is_given_up_as_a_whole)
{
    constexpr std::size_t crowd = 1'100;
    std::vector<claim_ptr> claims;
    for (std::size_t i = 0; i < crowd; ++i) {
        claims.push_back(driver::exclusive(std::to_string(i), ttl));
        on->grant(claims.back());
    }
    goes_away(c);
    for (const auto& each : claims)
        on->give_back(each);
    pass(ttl + patience);
    // Not one part with each attempt.
    for (int steps = 0; steps < 6 && unproven() == 0; ++steps)
        pass(50ms);
    BOOST_TEST(unproven() == crowd);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_take_back_that_waited_for_its_turn_has_it_alone)
{
    const auto claim = driver::exclusive("k", ttl);
    on->grant(claim);
    ready();
    nodes[c]->next(operation::extend, step::pass().delay(100ms));
    BOOST_TEST(on->extend(claim, ttl).status == extend_status::extended);
    nodes[c]->next(operation::abandon, step::pass().delay(100ms));
    on->give_back(claim);
    pass(150ms);
    BOOST_TEST(attempts(c) == 1U);
    // The fixture sees two at once.
    BOOST_TEST(on->abandon(claim).status == release_status::not_held);
    pass(100ms);
    BOOST_TEST(attempts(c) == 1U);
    BOOST_TEST(standing() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(a_release_that_no_majority_answered_is_the_cores_to_ask_again)
{
    const auto claim = driver::exclusive("k", 1min);
    on->grant(claim);
    ready();
    goes_away(b);
    goes_away(c);
    BOOST_TEST(on->release(claim).status == release_status::failed);
    pass(2s);
    BOOST_TEST(attempts(b) == 1U);
    BOOST_TEST(idle());
    comes_back(b);
    comes_back(c);
    // It is given back all the same, and answers nothing more.
    BOOST_TEST(on->extend(claim, 1min).status == extend_status::not_held);
    const auto valid = on->valid(claim);
    BOOST_TEST(!valid.valid);
    BOOST_TEST(!valid.error);
    BOOST_TEST(standing() == "011");
    // Another attempt has shares of its own, and leaves those to the background, which has tried them just now.
    on->refuse(claim);
    BOOST_TEST(attempts(b) == 1U);
    pass(300ms);
    BOOST_TEST(standing() == "000");
    on->grant(claim);
    ready();
    BOOST_TEST(standing() == "111");
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
    const std::weak_ptr<adapter> watched = nodes[c];
    auto backend = on->shared_backend();
    on.reset();
    nodes.clear();
    context.reset();
    BOOST_TEST(!watched.expired());
    backend.reset();
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_CASE(a_context_may_die_while_a_take_back_waits_for_its_turn)
{
    auto claim = driver::exclusive("k", ttl);
    on->grant(claim);
    ready();
    nodes[c]->next(operation::extend, step::hold());
    BOOST_TEST(on->extend(claim, ttl).status == extend_status::extended);
    // So that the release is not decided without it.
    goes_away(b);
    on->backend().start_release(sent_now(claim), [](const release_outcome&) { BOOST_ERROR("was decided"); });
    ready();
    const std::weak_ptr<adapter> watched = nodes[c];
    context.reset();
    claim.reset();
    on.reset();
    nodes.clear();
    BOOST_TEST(watched.expired());
}

BOOST_FIXTURE_TEST_CASE(nothing_is_kept_that_is_left_after_the_context_died, nodes_at_once)
{
    const std::weak_ptr<adapter> watched = nodes[c];
    auto claim = driver::exclusive("k", 1h);
    on->grant(claim);
    goes_away(c);
    context.reset();
    on->backend().start_release(sent_now(claim), [](const release_outcome&) {});
    BOOST_TEST(nodes[c]->count(operation::abandon) > 0U);
    claim.reset();
    on.reset();
    nodes.clear();
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_SUITE_END()
