// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/locker.hpp>

#include <functional>
#include <vector>

using namespace colock;
using namespace colock::testing;

BOOST_FIXTURE_TEST_SUITE(quorum_background_releases, unreleased_claims)

BOOST_AUTO_TEST_CASE(claim_being_released_is_never_used_again)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::hold());
    env->release_held(claim);
    // Only b is free. The claim on c is still being released, and a release that arrives after a second grant would
    // remove that grant.
    take(a);
    env->check_refused(claim);
    ready();
    BOOST_TEST(holder_counts() == "101");
    nodes[c]->deliver();
    ready();
    BOOST_TEST(holder_counts() == "100");
    env->grant(claim);
    ready();
    BOOST_TEST(holder_counts() == "111");
    BOOST_TEST(idle());
    env->check_held(claim);
}

BOOST_AUTO_TEST_CASE(release_of_late_grant_cannot_remove_the_next_grant)
{
    locker locks(env->shared_backend(), {.minimum_validity = 9800ms});
    // The first grant comes too late and is released. The answer of c to this release comes only when the second grant
    // is held.
    for (const auto& node : nodes)
        node->next(operation::create, step::pass().delay(150ms));
    nodes[c]->next(operation::abandon, step::hold());
    auto acquiring = start(io(), locks.acquire("k", {.ttl = 10s, .retry = retry_policy::fixed(300ms).jitter(0)}));
    pass_time(1s);
    BOOST_TEST_REQUIRE(acquiring.done());
    auto held = acquiring.get(io());
    const auto before = holder_counts();
    nodes[c]->deliver();
    pass_time(1s);
    BOOST_TEST(held.held());
    BOOST_TEST(run_coro(io(), held.is_locked()));
    BOOST_TEST(holder_count(a) == 1U);
    BOOST_TEST(holder_count(b) == 1U);
    BOOST_TEST(before == "111");
    run_coro(io(), held.release());
    pass_time(1s);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(grants_of_a_minority_are_released_at_once)
{
    take(a);
    take(b);
    env->check_refused(driver::exclusive("k", ttl));
    ready();
    BOOST_TEST(holder_counts() == "110");
    BOOST_TEST(attempts(a) + attempts(b) == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(grant_after_refusal_is_released)
{
    take(a);
    take(b);
    nodes[c]->next(operation::create, step::hold());
    env->check_refused(driver::exclusive("k", ttl));
    nodes[c]->deliver();
    ready();
    BOOST_TEST(attempts(c) == 1U);
    BOOST_TEST(holder_counts() == "110");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(grant_with_unknown_outcome_is_released)
{
    nodes[a]->next(operation::create, step::lose_reply());
    nodes[b]->next(operation::create, step::hold_unknown());
    const auto outcome = env->create(driver::exclusive("k", ttl));
    BOOST_TEST(outcome.status == create_status::failed);
    BOOST_TEST((outcome.error->code == errc::outcome_unknown));
    ready();
    BOOST_TEST(holder_counts() == "000");
    // The request to b is still on its way.
    nodes[b]->deliver();
    ready();
    BOOST_TEST(holder_counts() == "010");
    pass_time(300ms);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(unsent_create_needs_no_release)
{
    disconnect(c);
    for (int i = 0; i < 10; ++i) {
        const auto claim = driver::exclusive("k", ttl);
        env->grant(claim);
        env->release_held(claim);
    }
    env->check_refused([&] {
        take(a);
        return driver::exclusive("k", ttl);
    }());
    BOOST_TEST(attempts(c) == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(unneeded_create_is_cancelled_on_its_node)
{
    for (const bool granted : {true, false}) {
        nodes[c]->next(operation::create, step::hold());
        const auto claim = driver::exclusive("k", ttl);
        if (granted) {
            env->grant(claim);
            BOOST_TEST(nodes[c]->unwanted_count() == 0U);
            env->release_held(claim);
        } else {
            take(a);
            take(b);
            env->check_refused(claim);
        }
        BOOST_TEST(nodes[c]->unwanted_count() == 1U);
        nodes[c]->deliver();
        ready();
        BOOST_TEST(holder_count(c) == 0U);
    }
}

BOOST_AUTO_TEST_CASE(earlier_grant_is_released_after_failed_create)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    disconnect(c);
    env->grant(claim);
    ready();
    reconnect(c);
    env->release_held(claim);
    ready();
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(only_unanswered_claim_is_abandoned_as_in_doubt)
{
    nodes[b]->next(operation::create, step::fail(errc::unavailable));
    nodes[c]->next(operation::create, step::lose_reply());
    const auto claim = driver::exclusive("k", ttl);
    BOOST_TEST(env->create(claim).status == create_status::failed);
    ready();
    env->grant(claim);
    env->release_held(claim);
    ready();
    std::vector<bool> in_doubt;
    for (const auto& each : nodes[c]->calls()) {
        if (each.what == operation::abandon)
            in_doubt.push_back(each.in_doubt);
    }
    const std::vector<bool> expected{true, false};
    BOOST_TEST(in_doubt == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(release_is_retried_until_the_node_is_reachable)
{
    leave_claim_on(c);
    pass_time(5s);
    BOOST_TEST(holder_counts() == "001");
    BOOST_TEST(!idle());
    reconnect(c);
    pass_time(300ms);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(release_is_retried_after_any_failure)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    nodes[c]->next(operation::abandon, step::fail(errc::misconfigured_backend, "the disk is full"));
    env->release_held(claim);
    pass_time(300ms);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(release_is_retried_until_every_extension_has_expired)
{
    using change = std::function<void(const claim_ptr&)>;
    const auto extend = [this](const claim_ptr& claim, std::chrono::milliseconds by) {
        BOOST_TEST(env->extend(claim, by).status == extend_status::extended);
        ready();
    };
    const change changes[] = {
        [&](const claim_ptr& claim) { extend(claim, 60s); },
        // A shorter extension that is not sent.
        [&](const claim_ptr& claim) {
            extend(claim, 60s);
            disconnect(c);
            extend(claim, 1s);
        },
        // An extension with an unknown outcome.
        [&](const claim_ptr& claim) {
            nodes[c]->next(operation::extend, step::lose_reply());
            extend(claim, 60s);
        },
    };
    for (const auto& each : changes) {
        const auto claim = driver::exclusive("k", 1s);
        env->grant(claim);
        ready();
        each(claim);
        disconnect(c);
        env->release_held(claim);
        pass_time(30s);
        BOOST_TEST(holder_counts() == "001");
        BOOST_TEST(unproven() == 0U);
        reconnect(c);
        pass_time(300ms);
        BOOST_TEST(holder_counts() == "000");
        BOOST_TEST(idle());
        BOOST_TEST(unproven() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(given_up_claim_counts_as_unproven)
{
    leave_claim_on(c);
    pass_time(ttl);
    BOOST_TEST(!idle());
    BOOST_TEST(unproven() == 0U);
    pass_time(node_timeout + 500ms);
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 1U);
}

BOOST_AUTO_TEST_CASE(many_unreleased_claims_cost_no_more_than_a_few)
{
    constexpr std::size_t claim_count = 200;
    std::vector<claim_ptr> claims;
    for (std::size_t i = 0; i < claim_count; ++i) {
        claims.push_back(driver::exclusive(std::to_string(i), 60s));
        env->grant(claims.back());
    }
    ready();
    disconnect(c);
    for (const auto& each : claims)
        env->release_held(each);
    ready();
    nodes[c]->forget_calls();
    pass_time(10s);
    BOOST_TEST(attempts(c) > 0U);
    BOOST_TEST(attempts(c) <= 16U * 40U);
    BOOST_TEST(holder_count(c) == claim_count);
    reconnect(c);
    pass_time(300ms);
    BOOST_TEST(holder_count(c) == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(claims_expiring_together_are_given_up_together)
{
    constexpr std::size_t claim_count = 1'100;
    std::vector<claim_ptr> claims;
    for (std::size_t i = 0; i < claim_count; ++i) {
        claims.push_back(driver::exclusive(std::to_string(i), ttl));
        env->grant(claims.back());
    }
    disconnect(c);
    for (const auto& each : claims)
        env->release_held(each);
    pass_time(ttl + node_timeout);
    // Many claims are given up in each round.
    for (int steps = 0; steps < 6 && unproven() == 0; ++steps)
        pass_time(50ms);
    BOOST_TEST(unproven() == claim_count);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(queued_release_is_sent_once)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    nodes[c]->next(operation::extend, step::pass().delay(100ms));
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::extended);
    nodes[c]->next(operation::abandon, step::pass().delay(100ms));
    env->release_held(claim);
    pass_time(150ms);
    BOOST_TEST(attempts(c) == 1U);
    // The fixture reports an error if this abandon is sent while the first is in flight.
    BOOST_TEST(env->abandon(claim).status == release_status::not_held);
    pass_time(100ms);
    BOOST_TEST(attempts(c) == 1U);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(release_without_majority_is_left_to_the_core)
{
    const auto claim = driver::exclusive("k", 1min);
    env->grant(claim);
    ready();
    disconnect(b);
    disconnect(c);
    BOOST_TEST(env->release(claim).status == release_status::failed);
    pass_time(2s);
    BOOST_TEST(attempts(b) == 1U);
    BOOST_TEST(idle());
    reconnect(b);
    reconnect(c);
    // The failed release has ended the claim nevertheless, so the nodes are not asked about it.
    BOOST_TEST(env->extend(claim, 1min).status == extend_status::not_held);
    const auto valid = env->valid(claim);
    BOOST_TEST(!valid.valid);
    BOOST_TEST(!valid.error);
    BOOST_TEST(holder_counts() == "011");
    // Another attempt has its own claims on the nodes. The earlier claims are released in the next round, because a
    // release of them has just failed.
    env->check_refused(claim);
    BOOST_TEST(attempts(b) == 1U);
    pass_time(300ms);
    BOOST_TEST(holder_counts() == "000");
    env->grant(claim);
    ready();
    BOOST_TEST(holder_counts() == "111");
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(unproven_claim_does_not_block_others)
{
    constexpr int unproven_count = 20;
    for (int i = 0; i < unproven_count; ++i) {
        nodes[c]->next(operation::create, step::hold_unknown());
        const auto claim = driver::exclusive("unproven " + std::to_string(i), ttl);
        env->grant(claim);
        env->release_held(claim);
    }
    leave_claim_on(c, ttl, "other");
    reconnect(c);
    pass_time(1s);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(!idle());
    while (nodes[c]->deliver())
        ready();
    pass_time(1s);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(idle());
    BOOST_TEST(unproven() == 0U);
}

BOOST_AUTO_TEST_CASE(core_retries_release_until_a_majority_is_reachable)
{
    locker locks(env->shared_backend());
    auto held = run_coro(io(), locks.acquire("k", {.ttl = 1min}));
    ready();
    disconnect(b);
    disconnect(c);
    run_coro(io(), held.release());
    BOOST_TEST(locks.stats().settling == 1U);
    pass_time(10s);
    reconnect(b);
    reconnect(c);
    pass_time(3s);
    BOOST_TEST(holder_counts() == "000");
    BOOST_TEST(locks.stats().settled == 1U);
    BOOST_TEST(locks.stats().unproven == 0U);
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_with_unreleased_claims)
{
    leave_claim_on(c, 1h);
    BOOST_TEST(!idle());
    const std::weak_ptr<adapter> watched = nodes[c];
    auto backend = env->shared_backend();
    env.reset();
    nodes.clear();
    context.reset();
    BOOST_TEST(!watched.expired());
    backend.reset();
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_while_a_release_is_queued)
{
    auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    nodes[c]->next(operation::extend, step::hold());
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::extended);
    // Without b, the release cannot be decided before c has answered.
    disconnect(b);
    env->backend().start_release(
        sent_now(claim), release_guarantee::released, [](const release_outcome&) { BOOST_ERROR("was decided"); });
    ready();
    const std::weak_ptr<adapter> watched = nodes[c];
    context.reset();
    claim.reset();
    env.reset();
    nodes.clear();
    BOOST_TEST(watched.expired());
}

BOOST_FIXTURE_TEST_CASE(release_after_context_shutdown_is_dropped, immediate_nodes)
{
    const std::weak_ptr<adapter> watched = nodes[c];
    auto claim = driver::exclusive("k", 1h);
    env->grant(claim);
    disconnect(c);
    context.reset();
    const auto completion_lives = std::make_shared<bool>();
    env->backend().start_release(
        sent_now(claim), release_guarantee::released, [completion_lives](const release_outcome&) {});
    BOOST_TEST(completion_lives.use_count() == 1);
    BOOST_TEST(nodes[c]->count(operation::abandon) == 0U);
    claim.reset();
    env.reset();
    nodes.clear();
    BOOST_TEST(watched.expired());
}

BOOST_AUTO_TEST_SUITE_END()
