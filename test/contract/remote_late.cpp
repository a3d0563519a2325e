// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace colock::contract {

// What a client has sent arrives after all, when its connection is long dead.

namespace {

/// The operation's request is on its way when its connection ends.
template <class Outcome>
Outcome overtaken(remote_subject& on, asio::awaitable<Outcome> operation)
{
    on.link().hold();
    auto under_way = on.start(std::move(operation));
    on.until([&] { return on.link().holds(); });
    on.link().hang_up();
    return on.get(std::move(under_way));
}

/// What the late request finds: the lock free, or another's.
template <class Body>
void for_free_and_taken(remote_subject& on, Body body)
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

/// Whatever the adapter promised stays true when the request arrives; and if it could promise nothing, it can then.
void check_promise(remote_subject& on, const plain_claim_ptr& claim, bool taken)
{
    const auto rival = on.exclusive("k");
    const bool promised = on.is_promised(claim);
    if (promised && taken)
        on.witness().grant(rival);
    on.link().deliver();
    if (!promised)
        on.settle(claim);
    on.check_stored(promised && taken ? 1 : 0);
    if (!promised || !taken)
        on.witness().grant(rival);
    on.witness().check_held(rival);
    on.check_not_held(claim);
    on.witness().give_back(rival);
}

} // namespace

COLOCK_REMOTE_CASE(a_late_create_of_a_dead_connection_is_never_granted_to_two)
{
    for_free_and_taken(on, [&](bool taken) {
        const auto claim = on.exclusive("k");
        const auto outcome = overtaken(on, on.backend().create(testing::sent_now(claim)));
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        check_promise(on, claim, taken);
    });
}

COLOCK_REMOTE_CASE(a_late_create_of_several_is_never_granted_to_two, &capabilities::several)
{
    for_free_and_taken(on, [&](bool taken) {
        const auto claim = on.exclusive("k"), beside = on.exclusive("l");
        std::optional<create_all_outcome> outcome;
        on.link().hold();
        on.backend().start_create_all({testing::sent_now(claim), testing::sent_now(beside)},
            [&](create_all_outcome answer) { outcome.emplace(std::move(answer)); });
        on.until([&] { return on.link().holds(); });
        on.link().hang_up();
        on.until([&] { return outcome.has_value(); });
        BOOST_TEST_REQUIRE(outcome->status == create_status::failed);
        BOOST_TEST(outcome->why.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        beside->mark_in_doubt();
        if (!on.is_promised(beside)) {
            on.link().deliver();
            on.settle(beside);
        }
        check_promise(on, claim, taken);
    });
}

COLOCK_REMOTE_CASE(a_late_release_of_a_dead_connection_takes_no_others_lock)
{
    for_free_and_taken(on, [&](bool taken) {
        const auto claim = on.exclusive("k");
        on.grant(claim);
        const auto outcome = overtaken(on, on.backend().release(claim));
        BOOST_TEST_REQUIRE(outcome.status == release_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        check_promise(on, claim, taken);
    });
}

COLOCK_REMOTE_CASE(a_late_hand_over_of_a_dead_connection_is_never_granted_to_two)
{
    for_free_and_taken(on, [&](bool taken) {
        const auto claim = on.exclusive("k"), next = on.exclusive("k");
        on.grant(claim);
        next->set_sent(lease_clock::now());
        const auto outcome = overtaken(on, on.backend().hand_over(claim, next));
        BOOST_TEST_REQUIRE(outcome.created.status == create_status::failed);
        next->mark_in_doubt();
        if (!on.is_promised(claim)) {
            on.link().deliver();
            on.settle(claim);
        }
        check_promise(on, next, taken);
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
    // It may be that nothing can be promised before the release has arrived.
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
    const auto stored = on.witness().inspect("k");
    BOOST_TEST_REQUIRE(stored.size() == 1U);
    BOOST_TEST_REQUIRE(stored[0].remaining.has_value());
    BOOST_TEST((expires <= lease_clock::now() + *stored[0].remaining));
    BOOST_TEST(held.held());
    on.run(held.release(on_failure::raise));
    on.until([&] { return locks.stats().settling == 0; });
}

} // namespace colock::contract
