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
void for_each_loss(remote_subject& on, Body body)
{
    for (const auto what : lost_parts) {
        BOOST_TEST_CONTEXT("loses a " << what)
        {
            on.warm_up();
            const int before = on.link().cuts();
            body(what);
            BOOST_TEST(on.link().cuts() > before);
            on.check_stored(0);
        }
    }
}

/// Loses two parts in sequence. If the operation sends nothing more after the first loss, another operation loses the
/// second part.
template <class Begin>
void lose_both(remote_subject& on, const locker& locks, lost_part first, lost_part second, Begin begin)
{
    const int before = on.link().cuts();
    on.link().cut(first);
    auto under_way = on.start(begin());
    on.until([&] { return on.link().cuts() > before; });
    on.link().cut(second);
    on.get(std::move(under_way));
    const auto settle = [&] { on.until([&] { return locks.stats().settling == 0; }); };
    settle();
    if (on.link().cuts() == before + 1) {
        on.run(on.run(locks.acquire("a")).release());
        settle();
    }
    BOOST_TEST(on.link().cuts() == before + 2);
}

/// Returns the statistics of a locker whose acquire loses its create, is granted, and is released.
locker_stats counted_after_loss(remote_subject& on, lost_part what, locker_options options)
{
    const auto locks = on.make_linked_locker(std::move(options));
    on.run(on.run(locks.acquire("k")).release(on_failure::raise));
    on.link().cut(what);
    auto held = on.run(locks.acquire("k"));
    BOOST_TEST(on.run(held.is_locked()));
    on.check_stored(1);
    on.run(held.release(on_failure::raise));
    on.until([&] { return locks.stats().settling == 0; });
    return locks.stats();
}

} // namespace

// Cases that use the adapter.

COLOCK_REMOTE_CASE(a_create_that_is_lost_leaves_no_orphan)
{
    for_each_loss(on, [&](lost_part what) {
        const auto claim = on.exclusive("k");
        on.link().cut(what);
        const auto outcome = on.run(on.backend().create(testing::sent_now(claim)));
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        on.check_stored(what == lost_part::reply ? 1 : 0);
        claim->mark_in_doubt();
        on.settle(claim);
        on.check_stored(0);
        const auto other_claim = on.exclusive("k");
        on.direct_driver().grant(other_claim);
        on.direct_driver().release_held(other_claim);
    });
}

COLOCK_REMOTE_CASE(a_create_after_a_lost_one_finds_its_own_grant)
{
    for_each_loss(on, [&](lost_part what) {
        const auto claim = on.exclusive("k");
        on.link().cut(what);
        BOOST_TEST(on.create(claim).status == create_status::failed);
        claim->mark_in_doubt();
        on.grant(claim);
        on.check_held(claim);
        on.check_stored(1);
        on.settle(claim);
    });
}

// On a quorum, a lock is held and extended although the create on one node has an unknown outcome.
COLOCK_REMOTE_CASE(extended_claim_with_a_lost_create_can_be_released)
{
    for_each_loss(on, [&](lost_part what) {
        const auto claim = on.exclusive("k");
        on.link().cut(what);
        BOOST_TEST(on.create(claim).status == create_status::failed);
        claim->mark_in_doubt();
        // "Not held" is correct, too, because the claim is in doubt.
        const auto extended = on.extend(claim, 1h).status;
        BOOST_TEST(
            (extended == extend_status::not_held || (extended == extend_status::extended && what == lost_part::reply)));
        on.settle(claim);
        on.check_stored(0);
    });
}

COLOCK_REMOTE_CASE(a_release_that_is_lost_is_repeated_until_proven)
{
    for_each_loss(on, [&](lost_part what) {
        const auto claim = on.exclusive("k");
        on.grant(claim);
        on.link().cut(what);
        const auto outcome = on.release(claim);
        BOOST_TEST_REQUIRE(outcome.status == release_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        on.check_stored(what == lost_part::request ? 1 : 0);
        BOOST_TEST(on.release(claim).status != release_status::failed);
        on.check_stored(0);
        on.check_not_held(claim);
    });
}

COLOCK_REMOTE_CASE(an_extension_that_is_lost_does_not_end_the_lock)
{
    for_each_loss(on, [&](lost_part what) {
        const auto claim = on.exclusive("k");
        on.grant(claim);
        on.link().cut(what);
        const auto outcome = on.extend(claim, 2h);
        BOOST_TEST_REQUIRE(outcome.status == extend_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        BOOST_TEST(on.extend(claim, 2h).status == extend_status::extended);
        on.check_held(claim);
        on.release_held(claim);
    });
}

COLOCK_REMOTE_CASE(lost_adoption_is_repeated_or_released, &capabilities::tickets)
{
    const auto& other = on.direct_driver();
    const auto give_up = [&](plain_claim_ptr& held) {
        held = on.exclusive("k");
        other.grant(held);
        return other.backend().export_ticket(*held);
    };
    plain_claim_ptr held;
    // The first use may have to send the script to the server, which then executes nothing yet.
    const auto first = on.exclusive("k");
    other.take_over(give_up(held), first);
    other.release_held(first);
    for_each_loss(on, [&](lost_part what) {
        const auto ticket = give_up(held);
        const auto claim = on.exclusive("k");
        on.link().cut(what);
        const auto outcome = on.adopt(ticket, claim);
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.error->code == errc::outcome_unknown);
        claim->mark_in_doubt();
        on.take_over(ticket, claim);
        on.check_held(claim);
        other.check_not_held(held);
        on.settle(claim);
    });
    for_each_loss(on, [&](lost_part what) {
        const auto ticket = give_up(held);
        const auto claim = on.exclusive("k"), next = on.exclusive("k");
        on.link().cut(what);
        BOOST_TEST(on.adopt(ticket, claim).status == create_status::failed);
        claim->mark_in_doubt();
        on.settle(claim);
        if (what == lost_part::reply)
            return;
        // Nobody has used the ticket yet.
        on.check_stored(1);
        other.take_over(ticket, next);
        other.release_held(next);
    });
}

COLOCK_REMOTE_CASE(lost_query_is_an_error)
{
    for_each_loss(on, [&](lost_part what) {
        const auto claim = on.exclusive("k");
        on.grant(claim);
        on.link().cut(what);
        BOOST_TEST(on.valid(claim).error != nullptr);
        if (on.able().list) {
            on.link().cut(what);
            const auto listed = on.run(on.backend().inspect("k"));
            BOOST_TEST(listed.error != nullptr);
        }
        on.check_held(claim);
        on.release_held(claim);
    });
}

COLOCK_REMOTE_CASE(a_hand_over_that_is_lost_leaves_one_holder_at_most)
{
    for_each_loss(on, [&](lost_part what) {
        const auto held = on.exclusive("k"), next = on.exclusive("k");
        on.grant(held);
        on.link().cut(what);
        const auto outcome = on.hand_over(held, next);
        BOOST_TEST(outcome.created.status == create_status::failed);
        BOOST_TEST(on.link().stored().size() <= 1U);
        next->mark_in_doubt();
        on.settle(next);
        on.settle(held);
    });
}

COLOCK_REMOTE_CASE(a_create_of_several_that_is_lost_leaves_no_orphans, &capabilities::several)
{
    for_each_loss(on, [&](lost_part what) {
        const std::vector all{on.exclusive("a"), on.exclusive("b"), on.exclusive("c")};
        on.link().cut(what);
        const auto outcome = on.create_all(all);
        BOOST_TEST_REQUIRE(outcome.status == create_status::failed);
        BOOST_TEST(outcome.why.error->code == errc::outcome_unknown);
        on.check_stored(what == lost_part::reply ? 3 : 0);
        for (const auto& each : all)
            each->mark_in_doubt();
        for (const auto& each : all)
            on.settle(each);
        on.check_stored(0);
        const std::vector other_claims{on.exclusive("c"), on.exclusive("b"), on.exclusive("a")};
        on.direct_driver().grant_all(other_claims);
        for (const auto& each : other_claims)
            on.direct_driver().release_held(each);
    });
}

COLOCK_REMOTE_CASE(a_create_of_several_after_a_lost_one_finds_its_own_grants, &capabilities::several)
{
    for_each_loss(on, [&](lost_part what) {
        const std::vector all{on.exclusive("a"), on.exclusive("b")};
        on.link().cut(what);
        BOOST_TEST(on.create_all(all).status == create_status::failed);
        for (const auto& each : all)
            each->mark_in_doubt();
        on.grant_all(all);
        on.check_stored(2);
        for (const auto& each : all) {
            on.check_held(each);
            on.settle(each);
        }
    });
}

COLOCK_REMOTE_CASE(several_refused_claims_in_doubt_can_be_released, &capabilities::several)
{
    for_each_loss(on, [&](lost_part what) {
        const auto other = on.exclusive("b");
        const std::vector all{on.exclusive("a"), on.exclusive("b")};
        on.link().cut(what);
        BOOST_TEST(on.create(all[0]).status == create_status::failed);
        all[0]->mark_in_doubt();
        on.direct_driver().grant(other);
        // The refusal does not prove that the first claim holds nothing.
        BOOST_TEST(on.refuse_all(all).which == 1U);
        on.check_stored(what == lost_part::reply ? 2 : 1);
        on.settle(all[0]);
        on.settle(all[1]);
        on.check_stored(1);
        on.direct_driver().release_held(other);
    });
}

// Cases that use a locker.

COLOCK_REMOTE_CASE(acquire_with_a_lost_create_is_granted)
{
    for_each_loss(on, [&](lost_part what) {
        const auto counted = counted_after_loss(on, what, remote_subject::quick_retry());
        BOOST_TEST(counted.attempts >= 3U);
        BOOST_TEST(counted.unproven == 0U);
    });
}

COLOCK_REMOTE_CASE(two_losses_one_after_the_other_leave_nothing_and_keep_nobody_waiting)
{
    const auto other = on.make_direct_locker();
    for (const auto first : lost_parts) {
        for (const auto second : lost_parts) {
            BOOST_TEST_CONTEXT("loses a " << first << ", then a " << second)
            {
                const auto locks = on.make_linked_locker();
                on.run(on.run(locks.acquire("k")).release(on_failure::raise));
                lock held;
                lose_both(
                    on, locks, first, second, [&]() -> asio::awaitable<void> { held = co_await locks.acquire("k"); });
                BOOST_TEST(on.run(held.is_locked()));
                on.check_stored(1);
                lose_both(on, locks, first, second, [&] { return held.release(); });
                on.run(on.run(other.acquire("k")).release(on_failure::raise));
                BOOST_TEST(locks.stats().unproven == 0U);
                on.check_stored(0);
            }
        }
    }
}

// A grant that the lost create may have left excludes everybody until it is found, or has expired.
COLOCK_REMOTE_CASE(lost_create_is_checked_before_a_long_delay_ends)
{
    for_each_loss(on, [&](lost_part what) {
        const auto counted = counted_after_loss(on, what, {.retry = retry_policy::fixed(10min).times(1)});
        // The check is not counted as an attempt of the policy.
        BOOST_TEST(counted.retries == 0U);
        BOOST_TEST(counted.unproven == 0U);
    });
}

COLOCK_REMOTE_CASE(try_with_a_lost_create_reports_it_and_leaves_no_orphan)
{
    for_each_loss(on, [&](lost_part what) {
        const auto locks = on.make_linked_locker();
        on.run(on.run(locks.acquire("k")).release(on_failure::raise));
        on.link().cut(what);
        const auto failed = on.failure_of(locks.try_acquire("k"));
        BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
        on.until([&] { return locks.stats().settling == 0; });
        BOOST_TEST(locks.stats().settled == 1U);
        BOOST_TEST(locks.stats().unproven == 0U);
    });
}

COLOCK_REMOTE_CASE(group_with_a_lost_create_is_held_completely)
{
    for_each_loss(on, [&](lost_part what) {
        const auto locks = on.make_linked_locker(), other = on.make_direct_locker();
        auto first = on.run(other.acquire("b"));
        auto waiting = on.start(locks.acquire_all({"a", "b", "c"}));
        on.until([&] { return waiting.done() || locks.stats().waiting > 0; });
        on.link().cut(what);
        on.run(first.release());
        auto group = on.get(std::move(waiting));
        on.check_stored(3);
        on.run(group.release());
        on.until([&] { return locks.stats().settling == 0; });
    });
}

COLOCK_REMOTE_CASE(lost_release_of_a_group_is_reported, &capabilities::groups)
{
    for_each_loss(on, [&](lost_part what) {
        const auto locks = on.make_linked_locker(), other = on.make_direct_locker();
        auto held = other.group("g");
        on.run(held.acquire("a"));
        on.run(held.acquire("b"));
        // A connection is established.
        on.run(on.run(locks.acquire("warm")).release(on_failure::raise));
        auto group = locks.group("g");
        on.link().cut(what);
        const auto failed = on.failure_of(group.release());
        BOOST_TEST((failed.code() == errc::outcome_unknown || failed.code() == errc::unavailable), failed.what());
        // A backend that needs several requests may have executed some of them, or none.
        BOOST_TEST(on.run(group.release()).size() <= 2U);
        for (const auto* key : {"a", "b"})
            BOOST_TEST(!on.run(other.is_locked(key)));
        for (const auto& report : on.run(held.release()))
            BOOST_TEST((report.status == errc::not_held));
    });
}

COLOCK_REMOTE_CASE(a_release_that_is_lost_hands_the_lock_to_a_local_waiter)
{
    for_each_loss(on, [&](lost_part what) {
        const auto locks = on.make_linked_locker();
        auto held = on.run(locks.acquire("k"));
        auto next = on.start(locks.acquire("k"));
        on.until([&] { return locks.stats().waiting == 1; });
        on.link().cut(what);
        on.run(held.release());
        auto second = on.get(std::move(next));
        BOOST_TEST(on.run(second.is_locked()));
        on.check_stored(1);
        on.run(second.release(on_failure::raise));
        on.until([&] { return locks.stats().settling == 0; });
    });
}

COLOCK_REMOTE_CASE(a_renewal_that_is_lost_is_repeated_in_time)
{
    for_each_loss(on, [&](lost_part what) {
        const auto locks = on.make_linked_locker();
        bool inside = false, leave = false;
        auto body = on.start(locks.with_lock("k", {.ttl = on.short_ttl() * 3}, [&](lock&) -> asio::awaitable<void> {
            inside = true;
            while (!leave) {
                lease_timer pause(on.io(), on.short_ttl() / 50);
                co_await pause.async_wait(asio::deferred);
            }
        }));
        on.until([&] { return inside; });
        on.link().cut(what);
        on.until([&] { return body.done() || locks.stats().renewal_errors > 0; });
        const auto renewed = locks.stats().renewals;
        on.until([&] { return body.done() || locks.stats().renewals > renewed; });
        BOOST_TEST(!body.done());
        leave = true;
        on.get(std::move(body));
        on.until([&] { return locks.stats().settling == 0; });
    });
}

} // namespace colock::contract
