// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace colock::contract {

// Tests in which exactly one request or one reply is lost.

namespace {

/// Runs the body once for each part that a link may lose, with an established connection.
template <class Body>
void for_each_loss(remote_fixture& env, Body body)
{
    for (const auto what : lost_parts) {
        BOOST_TEST_CONTEXT("loses a " << what)
        {
            env.warm_up();
            const int before = env.link().cuts();
            body(what);
            BOOST_TEST(env.link().cuts() > before);
            env.check_stored(0);
        }
    }
}

/// Loses two parts in sequence. If the operation sends nothing more after the first loss, another operation loses the
/// second part.
template <class Begin>
void lose_both(remote_fixture& env, const locker& locks, lost_part first, lost_part second, Begin begin)
{
    const int before = env.link().cuts();
    env.link().cut(first);
    auto under_way = env.start(begin());
    env.until([&] { return env.link().cuts() > before; });
    env.link().cut(second);
    env.get(std::move(under_way));
    const auto settle = [&] { env.until([&] { return locks.stats().settling == 0; }); };
    settle();
    if (env.link().cuts() == before + 1) {
        env.run(env.run(locks.acquire("a")).release());
        settle();
    }
    BOOST_TEST(env.link().cuts() == before + 2);
}

/// Returns the statistics of a locker whose acquire loses its create, is granted, and is released.
locker_stats counted_after_loss(remote_fixture& env, lost_part what, locker_options options)
{
    const auto locks = env.make_linked_locker(std::move(options));
    env.run(env.run(locks.acquire("k")).release(on_failure::raise));
    env.link().cut(what);
    auto held = env.run(locks.acquire("k"));
    BOOST_TEST(env.run(held.is_locked()));
    env.check_stored(1);
    env.run(held.release(on_failure::raise));
    env.until([&] { return locks.stats().settling == 0; });
    return locks.stats();
}

} // namespace

// Cases that use the adapter.

COLOCK_REMOTE_CASE(a_create_that_is_lost_leaves_no_orphan)
{
    for_each_loss(env, [&](lost_part what) {
        const auto claim = env.exclusive("k");
        env.link().cut(what);
        const auto outcome = env.run(env.backend().create(testing::sent_now(claim)));
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        env.check_stored(what == lost_part::reply ? 1 : 0);
        claim->mark_in_doubt();
        env.settle(claim);
        env.check_stored(0);
        const auto other_claim = env.exclusive("k");
        env.direct_driver().grant(other_claim);
        env.direct_driver().release_held(other_claim);
    });
}

COLOCK_REMOTE_CASE(a_create_after_a_lost_one_finds_its_own_grant)
{
    for_each_loss(env, [&](lost_part what) {
        const auto claim = env.exclusive("k");
        env.link().cut(what);
        BOOST_TEST(env.create(claim).status == create_status::failed);
        claim->mark_in_doubt();
        env.grant(claim);
        env.check_held(claim);
        env.check_stored(1);
        env.settle(claim);
    });
}

// On a quorum, a lock is held and extended although the create on one node has an unknown outcome.
COLOCK_REMOTE_CASE(extended_claim_with_a_lost_create_can_be_released)
{
    for_each_loss(env, [&](lost_part what) {
        const auto claim = env.exclusive("k");
        env.link().cut(what);
        BOOST_TEST(env.create(claim).status == create_status::failed);
        claim->mark_in_doubt();
        // "Not held" is correct, too, because the claim is in doubt.
        const auto extended = env.extend(claim, 1h).status;
        BOOST_TEST(
            (extended == extend_status::not_held || (extended == extend_status::extended && what == lost_part::reply)));
        env.settle(claim);
        env.check_stored(0);
    });
}

COLOCK_REMOTE_CASE(a_release_that_is_lost_is_repeated_until_proven)
{
    for_each_loss(env, [&](lost_part what) {
        const auto claim = env.exclusive("k");
        env.grant(claim);
        env.link().cut(what);
        const auto outcome = env.release(claim);
        BOOST_TEST_REQUIRE(outcome.status == release_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        env.check_stored(what == lost_part::request ? 1 : 0);
        BOOST_TEST(env.release(claim).status != release_status::failed);
        env.check_stored(0);
        env.check_not_held(claim);
    });
}

COLOCK_REMOTE_CASE(an_extension_that_is_lost_does_not_end_the_lock)
{
    for_each_loss(env, [&](lost_part what) {
        const auto claim = env.exclusive("k");
        env.grant(claim);
        env.link().cut(what);
        const auto outcome = env.extend(claim, 2h);
        BOOST_TEST_REQUIRE(outcome.status == extend_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        BOOST_TEST(env.extend(claim, 2h).status == extend_status::extended);
        env.check_held(claim);
        env.release_held(claim);
    });
}

COLOCK_REMOTE_CASE(lost_adoption_is_repeated_or_released, &capabilities::tickets)
{
    const auto& other = env.direct_driver();
    const auto grant_and_export = [&](plain_claim_ptr& held) {
        held = env.exclusive("k");
        other.grant(held);
        return other.export_ticket(held);
    };
    plain_claim_ptr held;
    // The first use may have to send the script to the server, which then executes nothing yet.
    const auto first = env.exclusive("k");
    other.take_over(grant_and_export(held), first);
    other.release_held(first);
    for_each_loss(env, [&](lost_part what) {
        const auto ticket = grant_and_export(held);
        const auto claim = env.exclusive("k");
        env.link().cut(what);
        const auto outcome = env.adopt(ticket, claim);
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        env.take_over(ticket, claim);
        env.check_held(claim);
        other.check_not_held(held);
        env.settle(claim);
    });
    for_each_loss(env, [&](lost_part what) {
        const auto ticket = grant_and_export(held);
        const auto claim = env.exclusive("k"), next = env.exclusive("k");
        env.link().cut(what);
        BOOST_TEST(env.adopt(ticket, claim).status == create_status::failed);
        claim->mark_in_doubt();
        env.settle(claim);
        if (what == lost_part::reply)
            return;
        // Nobody has used the ticket yet.
        env.check_stored(1);
        other.take_over(ticket, next);
        other.release_held(next);
    });
}

COLOCK_REMOTE_CASE(lost_query_is_an_error)
{
    for_each_loss(env, [&](lost_part what) {
        const auto claim = env.exclusive("k");
        env.grant(claim);
        env.link().cut(what);
        BOOST_TEST(env.valid(claim).error != nullptr);
        // The adapter is connected again, and may have asked for the node of the claim.
        env.check_held(claim);
        if (env.capabilities().list) {
            env.link().cut(what);
            const auto listed = env.run(env.backend().listing({.filter = {.key = "k"}}));
            BOOST_TEST(listed.error != nullptr);
        }
        env.check_held(claim);
        env.release_held(claim);
    });
}

COLOCK_REMOTE_CASE(a_hand_over_that_is_lost_leaves_one_holder_at_most)
{
    for_each_loss(env, [&](lost_part what) {
        const auto held = env.exclusive("k"), next = env.exclusive("k");
        env.grant(held);
        env.link().cut(what);
        const auto outcome = env.hand_over(held, next);
        // The default is a release and then a create. The create may succeed on a new connection.
        BOOST_TEST(
            (outcome.released.status == release_status::failed || outcome.created.status == create_status::failed));
        BOOST_TEST(env.link().stored().size() <= 1U);
        next->mark_in_doubt();
        env.settle(next);
        env.settle(held);
    });
}

// The keys have the same hash tag: a cluster grants only such keys in one step.

COLOCK_REMOTE_CASE(a_create_of_several_that_is_lost_leaves_no_orphans, &capabilities::create_all)
{
    for_each_loss(env, [&](lost_part what) {
        const std::vector all{env.exclusive("{t}a"), env.exclusive("{t}b"), env.exclusive("{t}c")};
        env.link().cut(what);
        const auto outcome = env.create_all(all);
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.refusal.error->code == errc::outcome_unknown);
        env.check_stored(what == lost_part::reply ? 3 : 0);
        for (const auto& each : all)
            each->mark_in_doubt();
        for (const auto& each : all)
            env.settle(each);
        env.check_stored(0);
        const std::vector other_claims{env.exclusive("{t}c"), env.exclusive("{t}b"), env.exclusive("{t}a")};
        env.direct_driver().grant_all(other_claims);
        for (const auto& each : other_claims)
            env.direct_driver().release_held(each);
    });
}

COLOCK_REMOTE_CASE(a_create_of_several_after_a_lost_one_finds_its_own_grants, &capabilities::create_all)
{
    for_each_loss(env, [&](lost_part what) {
        const std::vector all{env.exclusive("{t}a"), env.exclusive("{t}b")};
        env.link().cut(what);
        BOOST_TEST(env.create_all(all).status == create_status::failed);
        for (const auto& each : all)
            each->mark_in_doubt();
        env.grant_all(all);
        env.check_stored(2);
        for (const auto& each : all) {
            env.check_held(each);
            env.settle(each);
        }
    });
}

COLOCK_REMOTE_CASE(several_refused_claims_in_doubt_can_be_released, &capabilities::create_all)
{
    for_each_loss(env, [&](lost_part what) {
        const auto other = env.exclusive("{t}b");
        const std::vector all{env.exclusive("{t}a"), env.exclusive("{t}b")};
        env.link().cut(what);
        BOOST_TEST(env.create(all[0]).status == create_status::failed);
        all[0]->mark_in_doubt();
        env.direct_driver().grant(other);
        // The refusal does not prove that the first claim holds nothing.
        BOOST_TEST(env.check_all_refused(all).which == 1U);
        env.check_stored(what == lost_part::reply ? 2 : 1);
        env.settle(all[0]);
        env.settle(all[1]);
        env.check_stored(1);
        env.direct_driver().release_held(other);
    });
}

// Cases that use a locker.

COLOCK_REMOTE_CASE(acquire_with_a_lost_create_is_granted)
{
    for_each_loss(env, [&](lost_part what) {
        const auto counted = counted_after_loss(env, what, remote_fixture::quick_retry());
        BOOST_TEST(counted.attempts >= 3U);
        BOOST_TEST(counted.unproven == 0U);
    });
}

COLOCK_REMOTE_CASE(two_losses_one_after_the_other_leave_nothing_and_keep_nobody_waiting)
{
    const auto other = env.make_direct_locker();
    for (const auto first : lost_parts) {
        for (const auto second : lost_parts) {
            BOOST_TEST_CONTEXT("loses a " << first << ", then a " << second)
            {
                const auto locks = env.make_linked_locker();
                env.run(env.run(locks.acquire("k")).release(on_failure::raise));
                lock held;
                lose_both(
                    env, locks, first, second, [&]() -> asio::awaitable<void> { held = co_await locks.acquire("k"); });
                BOOST_TEST(env.run(held.is_locked()));
                env.check_stored(1);
                lose_both(env, locks, first, second, [&] { return held.release(); });
                env.run(env.run(other.acquire("k")).release(on_failure::raise));
                BOOST_TEST(locks.stats().unproven == 0U);
                env.check_stored(0);
            }
        }
    }
}

// The lost create may have been granted. That grant keeps all others waiting until the locker finds it, or until it
// expires.
COLOCK_REMOTE_CASE(lost_create_is_checked_before_a_long_delay_ends)
{
    for_each_loss(env, [&](lost_part what) {
        const auto counted = counted_after_loss(env, what, {.retry = retry_policy::fixed(10min).times(1)});
        // The check is not counted as an attempt of the policy.
        BOOST_TEST(counted.retries == 0U);
        BOOST_TEST(counted.unproven == 0U);
    });
}

COLOCK_REMOTE_CASE(try_with_a_lost_create_reports_it_and_leaves_no_orphan)
{
    for_each_loss(env, [&](lost_part what) {
        const auto locks = env.make_linked_locker();
        env.run(env.run(locks.acquire("k")).release(on_failure::raise));
        env.link().cut(what);
        const auto failed = env.failure_of(locks.try_acquire("k"));
        BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
        env.until([&] { return locks.stats().settling == 0; });
        BOOST_TEST(locks.stats().settled == 1U);
        BOOST_TEST(locks.stats().unproven == 0U);
    });
}

COLOCK_REMOTE_CASE(group_with_a_lost_create_is_held_completely)
{
    for_each_loss(env, [&](lost_part what) {
        const auto locks = env.make_linked_locker(), other = env.make_direct_locker();
        auto first = env.run(other.acquire("b"));
        auto waiting = env.start(locks.acquire_all({"a", "b", "c"}));
        env.until([&] { return waiting.done() || locks.stats().waiting > 0; });
        env.link().cut(what);
        env.run(first.release());
        auto group = env.get(std::move(waiting));
        env.check_stored(3);
        env.run(group.release());
        env.until([&] { return locks.stats().settling == 0; });
    });
}

COLOCK_REMOTE_CASE(lost_release_of_a_group_is_reported, &capabilities::groups)
{
    for_each_loss(env, [&](lost_part what) {
        const auto locks = env.make_linked_locker(), other = env.make_direct_locker();
        auto held = other.group("g");
        env.run(held.acquire("a"));
        env.run(held.acquire("b"));
        // A connection is established.
        env.run(env.run(locks.acquire("warm")).release(on_failure::raise));
        auto group = locks.group("g");
        env.link().cut(what);
        const auto failed = env.failure_of(group.release());
        BOOST_TEST((failed.code() == errc::outcome_unknown || failed.code() == errc::unavailable), failed.what());
        // A backend that needs several requests may have executed some of them, or none.
        BOOST_TEST(env.run(group.release()).size() <= 2U);
        for (const auto* key : {"a", "b"})
            BOOST_TEST(!env.run(other.is_locked(key)));
        for (const auto& report : env.run(held.release()))
            BOOST_TEST((report.status == errc::not_held));
    });
}

COLOCK_REMOTE_CASE(a_release_that_is_lost_hands_the_lock_to_a_local_waiter)
{
    for_each_loss(env, [&](lost_part what) {
        const auto locks = env.make_linked_locker();
        auto held = env.run(locks.acquire("k"));
        auto next = env.start(locks.acquire("k"));
        env.until([&] { return locks.stats().waiting == 1; });
        env.link().cut(what);
        env.run(held.release());
        auto second = env.get(std::move(next));
        BOOST_TEST(env.run(second.is_locked()));
        env.check_stored(1);
        env.run(second.release(on_failure::raise));
        env.until([&] { return locks.stats().settling == 0; });
    });
}

COLOCK_REMOTE_CASE(a_renewal_that_is_lost_is_repeated_in_time)
{
    for_each_loss(env, [&](lost_part what) {
        const auto locks = env.make_linked_locker();
        bool inside = false, leave = false;
        auto body = env.start(locks.with_lock("k", {.ttl = env.short_ttl() * 3}, [&](lock&) -> asio::awaitable<void> {
            inside = true;
            while (!leave) {
                lease_timer pause(env.io(), env.short_ttl() / 50);
                co_await pause.async_wait(asio::deferred);
            }
        }));
        env.until([&] { return inside; });
        env.link().cut(what);
        env.until([&] { return body.done() || locks.stats().renewal_errors > 0; });
        const auto renewed = locks.stats().renewals;
        env.until([&] { return body.done() || locks.stats().renewals > renewed; });
        BOOST_TEST(!body.done());
        leave = true;
        env.get(std::move(body));
        env.until([&] { return locks.stats().settling == 0; });
    });
}

} // namespace colock::contract
