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
Outcome send_before_disconnect(remote_subject& on, asio::awaitable<Outcome> operation)
{
    on.link().hold();
    auto under_way = on.start(std::move(operation));
    on.until([&] { return on.link().holds(); });
    on.link().hang_up();
    return on.get(std::move(under_way));
}

/// Runs the body twice: the late request finds the lock free, or held by another client.
template <class Body>
void for_free_and_held(remote_subject& on, Body body)
{
    for (const bool taken : {false, true}) {
        BOOST_TEST_CONTEXT("meanwhile taken: " << taken)
        {
            on.warm_up();
            body(taken);
            on.check_stored(0);
        }
    }
}

/// Abandons the claim. If the adapter answers that the claim holds nothing, this stays true when the late request
/// arrives. Otherwise the adapter can answer so afterwards.
void check_abandon_is_final(remote_subject& on, const plain_claim_ptr& claim, bool taken)
{
    const auto other_claim = on.exclusive("k");
    const bool proven = on.abandon_once(claim);
    if (proven && taken)
        on.direct_driver().grant(other_claim);
    on.link().deliver();
    if (!proven)
        on.settle(claim);
    on.check_stored(proven && taken ? 1 : 0);
    if (!proven || !taken)
        on.direct_driver().grant(other_claim);
    on.direct_driver().check_held(other_claim);
    on.check_not_held(claim);
    on.direct_driver().release_held(other_claim);
}

} // namespace

COLOCK_REMOTE_CASE(late_create_of_a_dead_connection_never_causes_two_holders)
{
    for_free_and_held(on, [&](bool taken) {
        const auto claim = on.exclusive("k");
        const auto outcome = send_before_disconnect(on, on.backend().create(testing::sent_now(claim)));
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        check_abandon_is_final(on, claim, taken);
    });
}

COLOCK_REMOTE_CASE(late_create_of_several_never_causes_two_holders, &capabilities::several)
{
    for_free_and_held(on, [&](bool taken) {
        const auto claim = on.exclusive("k"), claim_of_l = on.exclusive("l");
        std::optional<create_all_outcome> outcome;
        on.link().hold();
        on.backend().start_create_all({testing::sent_now(claim), testing::sent_now(claim_of_l)},
            [&](create_all_outcome answer) { outcome.emplace(std::move(answer)); });
        on.until([&] { return on.link().holds(); });
        on.link().hang_up();
        on.until([&] { return outcome.has_value(); });
        BOOST_TEST_REQUIRE(outcome->status == create_status::failed);
        BOOST_TEST(outcome->why.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        claim_of_l->mark_in_doubt();
        if (!on.abandon_once(claim_of_l)) {
            on.link().deliver();
            on.settle(claim_of_l);
        }
        check_abandon_is_final(on, claim, taken);
    });
}

COLOCK_REMOTE_CASE(late_release_of_a_dead_connection_removes_no_other_lock)
{
    for_free_and_held(on, [&](bool taken) {
        const auto claim = on.exclusive("k");
        on.grant(claim);
        const auto outcome = send_before_disconnect(on, on.backend().release(claim));
        BOOST_TEST_REQUIRE(outcome.status == release_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        check_abandon_is_final(on, claim, taken);
    });
}

COLOCK_REMOTE_CASE(late_hand_over_of_a_dead_connection_never_causes_two_holders)
{
    for_free_and_held(on, [&](bool taken) {
        const auto claim = on.exclusive("k"), next = on.exclusive("k");
        on.grant(claim);
        next->set_sent(lease_clock::now());
        const auto outcome = send_before_disconnect(on, on.backend().hand_over(claim, next));
        BOOST_TEST_REQUIRE(outcome.created.status == create_status::failed);
        next->mark_in_doubt();
        if (!on.abandon_once(claim)) {
            on.link().deliver();
            on.settle(claim);
        }
        check_abandon_is_final(on, next, taken);
    });
}

COLOCK_REMOTE_CASE(no_lock_of_a_locker_is_taken_away_by_its_own_late_release)
{
    const auto locks = on.make_linked_locker();
    auto first = on.run(locks.acquire("k"));
    on.link().hold();
    auto releasing = on.start(first.release());
    on.until([&] { return on.link().holds(); });
    auto next = on.start(locks.acquire("k"));
    on.link().hang_up();
    on.get(std::move(releasing));
    // The adapter may be unable to prove the release before it has arrived.
    for (int i = 0; i < 20 && !next.done(); ++i)
        on.pass_time(on.short_ttl() / 20);
    on.link().deliver();
    auto second = on.get(std::move(next));
    on.pass_time(on.short_ttl() / 10);
    BOOST_TEST(on.run(second.is_locked()));
    on.run(second.release(on_failure::raise));
    on.until([&] { return locks.stats().settling == 0; });
    BOOST_TEST(locks.stats().unproven == 0U);
}

COLOCK_REMOTE_CASE(no_lease_outlasts_a_shorter_extension_that_arrives_late, &capabilities::list, &capabilities::expires)
{
    const auto locks = on.make_linked_locker();
    auto held = on.run(locks.acquire("k", {.ttl = 1h}));
    on.link().hold();
    auto extending = on.start(held.extend(20min));
    on.until([&] { return on.link().holds(); });
    on.link().hang_up();
    try {
        on.get(std::move(extending));
        BOOST_ERROR("extended, although nothing could pass");
    } catch (const extend_error& failed) {
        BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
    }
    on.run(held.extend(1h));
    const auto expires = held.expires_at();
    on.link().deliver();
    const auto stored = on.direct_driver().inspect("k");
    BOOST_TEST_REQUIRE(stored.size() == 1U);
    BOOST_TEST_REQUIRE(stored[0].remaining.has_value());
    BOOST_TEST((expires <= lease_clock::now() + *stored[0].remaining));
    BOOST_TEST(held.held());
    on.run(held.release(on_failure::raise));
    on.until([&] { return locks.stats().settling == 0; });
}

} // namespace colock::contract
