// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace colock::contract {

// Requests of a client that arrive long after their connection has ended.

namespace {

/// Starts an operation whose request is in flight when its connection ends.
template <class Outcome>
Outcome send_before_disconnect(remote_fixture& env, asio::awaitable<Outcome> operation)
{
    env.link().hold();
    auto under_way = env.start(std::move(operation));
    env.until([&] { return env.link().holds(); });
    env.link().hang_up();
    return env.get(std::move(under_way));
}

/// Runs the body twice: the late request finds the lock free, or held by another client.
template <class Body>
void for_free_and_held(remote_fixture& env, Body body)
{
    for (const bool taken : {false, true}) {
        BOOST_TEST_CONTEXT("meanwhile taken: " << taken)
        {
            env.warm_up();
            body(taken);
            env.check_stored(0);
        }
    }
}

/// Abandons the claim. If the adapter answers that the claim holds nothing, this stays true when the late request
/// arrives. Otherwise the adapter can answer so afterwards.
void check_abandon_is_final(remote_fixture& env, const plain_claim_ptr& claim, bool taken)
{
    const auto other_claim = env.exclusive(claim->key());
    const bool proven = env.abandon_once(claim);
    if (proven && taken)
        env.direct_driver().grant(other_claim);
    env.link().deliver();
    if (!proven)
        env.settle(claim);
    env.check_stored(proven && taken ? 1 : 0);
    if (!proven || !taken)
        env.direct_driver().grant(other_claim);
    env.direct_driver().check_held(other_claim);
    env.check_not_held(claim);
    env.direct_driver().release_held(other_claim);
}

} // namespace

COLOCK_REMOTE_CASE(late_create_of_a_dead_connection_never_causes_two_holders)
{
    for_free_and_held(env, [&](bool taken) {
        const auto claim = env.exclusive("k");
        const auto outcome = send_before_disconnect(env, env.backend().create(testing::sent_now(claim)));
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        check_abandon_is_final(env, claim, taken);
    });
}

COLOCK_REMOTE_CASE(late_create_of_several_never_causes_two_holders, &capabilities::create_all)
{
    for_free_and_held(env, [&](bool taken) {
        const auto claim = env.exclusive("{t}k"), claim_of_l = env.exclusive("{t}l");
        std::optional<create_all_outcome> outcome;
        env.link().hold();
        env.backend().start_create_all({testing::sent_now(claim), testing::sent_now(claim_of_l)},
            [&](create_all_outcome answer) { outcome.emplace(std::move(answer)); });
        env.until([&] { return env.link().holds(); });
        env.link().hang_up();
        env.until([&] { return outcome.has_value(); });
        BOOST_TEST_REQUIRE(outcome->status == create_status::failed);
        BOOST_TEST(outcome->refusal.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        claim_of_l->mark_in_doubt();
        if (!env.abandon_once(claim_of_l)) {
            env.link().deliver();
            env.settle(claim_of_l);
        }
        check_abandon_is_final(env, claim, taken);
    });
}

COLOCK_REMOTE_CASE(late_release_of_a_dead_connection_removes_no_other_lock)
{
    for_free_and_held(env, [&](bool taken) {
        const auto claim = env.exclusive("k");
        env.grant(claim);
        const auto outcome = send_before_disconnect(env, env.backend().release(claim, release_guarantee::released));
        BOOST_TEST_REQUIRE(outcome.status == release_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        check_abandon_is_final(env, claim, taken);
    });
}

COLOCK_REMOTE_CASE(late_hand_over_of_a_dead_connection_never_causes_two_holders)
{
    for_free_and_held(env, [&](bool taken) {
        const auto claim = env.exclusive("k"), next = env.exclusive("k");
        env.grant(claim);
        next->set_operation_start(lease_clock::now());
        const auto outcome = send_before_disconnect(env, env.backend().hand_over(claim, next));
        // The default is a release and then a create. The create may be answered on a new connection.
        BOOST_TEST_REQUIRE(
            (outcome.released.status == release_status::failed || outcome.created.status == create_status::failed));
        next->mark_in_doubt();
        if (!env.abandon_once(claim)) {
            env.link().deliver();
            env.settle(claim);
        }
        check_abandon_is_final(env, next, taken);
    });
}

COLOCK_REMOTE_CASE(no_lock_of_a_locker_is_taken_away_by_its_own_late_release)
{
    const auto locks = env.make_linked_locker();
    auto first = env.run(locks.acquire("k"));
    env.link().hold();
    auto releasing = env.start(first.release());
    env.until([&] { return env.link().holds(); });
    auto next = env.start(locks.acquire("k"));
    env.link().hang_up();
    env.get(std::move(releasing));
    // The adapter may be unable to prove the release before it has arrived.
    for (int i = 0; i < 20 && !next.done(); ++i)
        env.pass_time(env.short_ttl() / 20);
    env.link().deliver();
    auto second = env.get(std::move(next));
    env.pass_time(env.short_ttl() / 10);
    BOOST_TEST(env.run(second.is_locked()));
    env.run(second.release(on_failure::raise));
    env.until([&] { return locks.stats().settling == 0; });
    BOOST_TEST(locks.stats().unproven == 0U);
}

COLOCK_REMOTE_CASE(no_lease_outlasts_a_shorter_extension_that_arrives_late, &capabilities::list, &capabilities::expires)
{
    const auto locks = env.make_linked_locker();
    auto held = env.run(locks.acquire("k", {.ttl = 1h}));
    env.link().hold();
    auto extending = env.start(held.extend(20min));
    env.until([&] { return env.link().holds(); });
    env.link().hang_up();
    try {
        env.get(std::move(extending));
        BOOST_ERROR("extended, although nothing could pass");
    } catch (const extend_error& failed) {
        BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
    }
    env.run(held.extend(1h));
    const auto expires = held.expires_at();
    env.link().deliver();
    const auto stored = env.direct_driver().inspect("k");
    BOOST_TEST_REQUIRE(stored.size() == 1U);
    BOOST_TEST_REQUIRE(stored[0].remaining.has_value());
    BOOST_TEST((expires <= lease_clock::now() + *stored[0].remaining));
    BOOST_TEST(held.held());
    env.run(held.release(on_failure::raise));
    env.until([&] { return locks.stats().settling == 0; });
}

} // namespace colock::contract
