// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

namespace colock::contract {

// Exclusive locks.

COLOCK_CONTRACT_CASE(adapter, a_free_lock_is_granted)
{
    const auto claim = on.exclusive("k");
    BOOST_TEST((on.grant(claim) > 0) == on.able().fence);
    on.check_held(claim);
    on.release_held(claim);
    on.check_not_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, a_held_lock_is_busy)
{
    const auto holder = on.exclusive("k"), other = on.exclusive("k");
    on.grant(holder);
    on.refuse(other);
    on.check_not_held(other);
    on.refuse(on.one_attempt("k"));
    on.check_held(holder);
    on.release_held(holder);
    on.grant(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, keys_do_not_exclude_each_other)
{
    const auto one = on.exclusive("k"), two = on.exclusive("kk"), three = on.exclusive("K");
    on.grant(one);
    on.grant(two);
    on.grant(three);
    on.release_held(one);
    on.check_held(two);
    on.check_held(three);
    on.release_held(two);
    on.release_held(three);
}

COLOCK_CONTRACT_CASE(adapter, release_is_idempotent)
{
    const auto claim = on.exclusive("k");
    BOOST_TEST(on.release(claim).status == release_status::not_held);
    on.grant(claim);
    on.release_held(claim);
    BOOST_TEST(on.release(claim).status == release_status::not_held);
    on.check_not_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, a_release_touches_only_its_own_grant)
{
    const auto holder = on.exclusive("k"), stranger = on.one_attempt("k");
    on.grant(holder);
    on.refuse(stranger);
    BOOST_TEST(on.release(stranger).status == release_status::not_held);
    on.check_held(holder);
    BOOST_TEST(on.abandon(stranger).status == release_status::not_held);
    on.check_held(holder);
    on.release_held(holder);
}

COLOCK_CONTRACT_CASE(adapter, late_release_does_not_affect_the_next_holder, &capabilities::expires)
{
    const auto late = on.exclusive("k", on.short_ttl()), next = on.exclusive("k");
    on.grant(late);
    on.pass_time(on.short_ttl());
    on.grant(next);
    BOOST_TEST(on.release(late).status == release_status::not_held);
    on.check_held(next);
    BOOST_TEST(on.abandon(late).status == release_status::not_held);
    on.check_held(next);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_create_finds_its_own_grant)
{
    const auto holder = on.exclusive("k"), other = on.one_attempt("k");
    const auto fence = on.grant(holder);
    BOOST_TEST(on.grant(holder) >= fence);
    on.refuse(other);
    on.release_held(holder);
    // There is one grant, however often it was requested.
    on.check_not_held(holder);
    on.grant(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_create_is_for_a_new_ttl)
{
    const auto holder = on.exclusive("k");
    on.grant(holder);
    BOOST_TEST(on.extend(holder, on.short_ttl()).status == extend_status::extended);
    on.grant(holder);
    on.pass_time(on.short_ttl() * 11 / 10);
    on.check_held(holder);
    on.release_held(holder);
}

COLOCK_CONTRACT_CASE(adapter, a_grant_ends_with_its_ttl, &capabilities::expires)
{
    const auto expired = on.exclusive("k", on.short_ttl()), other = on.exclusive("k");
    on.grant(expired);
    on.check_held(expired);
    on.pass_time(on.short_ttl());
    on.check_not_held(expired);
    BOOST_TEST(on.release(expired).status == release_status::not_held);
    on.grant(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_queued_claim_is_granted_after_the_holders_expiry, &capabilities::expires)
{
    const auto expired = on.exclusive("k", on.short_ttl()), next = on.exclusive("k");
    on.grant(expired);
    on.refuse(next);
    on.pass_time(on.short_ttl());
    on.grant(next);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, an_expired_claim_can_be_created_again, &capabilities::expires)
{
    const auto claim = on.exclusive("k");
    const auto fence = on.grant(claim);
    BOOST_TEST(on.extend(claim, on.short_ttl()).status == extend_status::extended);
    on.pass_time(on.short_ttl());
    const auto second = on.grant(claim);
    BOOST_TEST((second > fence || !on.able().fence));
    on.check_held(claim);
    on.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, retry_after_never_passes_the_holders_expiry)
{
    const auto holder = on.exclusive("k", on.short_ttl()), other = on.exclusive("k");
    on.grant(holder);
    const auto hint = on.refuse(other).retry_after;
    BOOST_TEST((hint >= hint.zero() && hint <= on.short_ttl()));
    on.release_held(holder);
    on.abandon(other);
}

// Extend.

COLOCK_CONTRACT_CASE(adapter, extend_lengthens)
{
    const auto claim = on.exclusive("k", on.short_ttl());
    on.grant(claim);
    BOOST_TEST(on.extend(claim, on.long_ttl).status == extend_status::extended);
    on.pass_time(on.short_ttl() * 11 / 10);
    on.check_held(claim);
    on.refuse(on.one_attempt("k"));
    on.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, extend_shortens, &capabilities::expires)
{
    const auto claim = on.exclusive("k"), other = on.exclusive("k");
    on.grant(claim);
    BOOST_TEST(on.extend(claim, on.short_ttl()).status == extend_status::extended);
    on.check_held(claim);
    on.pass_time(on.short_ttl());
    on.check_not_held(claim);
    on.grant(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, extend_never_creates)
{
    const auto claim = on.exclusive("k"), other = on.exclusive("k");
    const auto check_refused = [&](const claim_ptr& refused) {
        BOOST_TEST(on.extend(refused, on.long_ttl).status == extend_status::not_held);
        on.check_not_held(refused);
    };
    check_refused(claim);
    on.grant(claim);
    on.release_held(claim);
    check_refused(claim);
    on.grant(other);
    check_refused(claim);
    on.check_held(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, extend_never_revives_what_has_expired, &capabilities::expires)
{
    const auto expired = on.exclusive("k", on.short_ttl()), other = on.exclusive("k");
    const auto check_refused = [&] {
        BOOST_TEST(on.extend(expired, on.long_ttl).status == extend_status::not_held);
        on.check_not_held(expired);
    };
    on.grant(expired);
    on.pass_time(on.short_ttl());
    check_refused();
    on.grant(other);
    check_refused();
    on.check_held(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, extending_a_queued_claim_grants_nothing)
{
    const auto holder = on.exclusive("k"), queued = on.exclusive("k");
    on.grant(holder);
    on.refuse(queued);
    BOOST_TEST(on.extend(queued, on.long_ttl).status == extend_status::not_held);
    on.check_held(holder);
    on.release_held(holder);
    on.abandon(queued);
}

// Abandon.

COLOCK_CONTRACT_CASE(adapter, abandoning_a_grant_releases_it)
{
    const auto claim = on.exclusive("k"), other = on.exclusive("k");
    on.grant(claim);
    BOOST_TEST(on.abandon(claim).status == release_status::released);
    on.check_not_held(claim);
    BOOST_TEST(on.abandon(claim).status == release_status::not_held);
    on.grant(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, abandoning_nothing_does_nothing)
{
    const auto claim = on.exclusive("k"), other = on.exclusive("k");
    BOOST_TEST(on.abandon(claim).status == release_status::not_held);
    on.grant(other);
    BOOST_TEST(on.abandon(claim).status == release_status::not_held);
    on.check_held(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, an_abandoned_claim_leaves_the_queue)
{
    const auto holder = on.exclusive("k"), gone = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(gone);
    on.refuse(next);
    BOOST_TEST(on.abandon(gone).status == release_status::not_held);
    on.release_held(holder);
    on.check_not_held(gone);
    on.grant(next);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, an_abandoned_head_makes_way)
{
    const auto holder = on.exclusive("k"), head = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(head);
    on.refuse(next);
    on.release_held(holder);
    // The claim is first in the queue. Whether it already holds the lock depends on the backend.
    on.abandon(head);
    on.check_not_held(head);
    on.grant(next);
    on.release_held(next);
}

// Fences.

COLOCK_CONTRACT_CASE(adapter, fences_grow_over_every_end_of_a_grant, &capabilities::fence)
{
    std::uint64_t last = 0;
    const auto grant_next = [&](std::chrono::milliseconds ttl) {
        const auto claim = on.exclusive("k", ttl);
        const auto fence = on.grant(claim);
        BOOST_TEST(fence > last);
        last = fence;
        return claim;
    };
    on.release_held(grant_next(on.long_ttl));
    on.abandon(grant_next(on.long_ttl));
    if (on.able().expires) {
        grant_next(on.short_ttl());
        on.pass_time(on.short_ttl());
    }
    if (on.able().list) {
        on.break_key("k");
        grant_next(on.long_ttl);
        on.break_key("k");
    }
    if (on.able().list && on.able().expires) {
        grant_next(on.short_ttl());
        on.pass_time(on.short_ttl());
        on.purge();
    }
    const auto queued = on.exclusive("k"), holder = grant_next(on.long_ttl);
    on.refuse(queued);
    on.release_held(holder);
    BOOST_TEST(on.grant(queued) > last);
    on.release_held(queued);
}

COLOCK_CONTRACT_CASE(adapter, fences_grow_over_shared_grants, &capabilities::fence, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.exclusive("k");
    const auto first_fence = on.grant(first), second_fence = on.grant(second);
    BOOST_TEST(second_fence > first_fence);
    on.release_held(first);
    on.release_held(second);
    BOOST_TEST(on.grant(writer) > second_fence);
    on.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, fences_grow_across_processes, &capabilities::fence)
{
    const auto other = on.another();
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        for (const driver* by : std::initializer_list<const driver*>{&on, &other}) {
            const auto claim = by->exclusive("k");
            const auto fence = by->grant(claim);
            BOOST_TEST(fence > last);
            last = fence;
            by->release_held(claim);
        }
    }
}

// Other processes, and properties of the adapter.

COLOCK_CONTRACT_CASE(adapter, processes_exclude_each_other)
{
    const auto other = on.another();
    const auto mine = on.exclusive("k"), others = on.exclusive("k");
    on.grant(mine);
    other.refuse(others);
    on.release_held(mine);
    other.grant(others);
    on.refuse(on.one_attempt("k"));
    other.release_held(others);
}

COLOCK_CONTRACT_CASE(adapter, limits_and_name_make_sense)
{
    BOOST_TEST(!on.backend().name().empty());
    const auto limits = on.backend().limits();
    BOOST_TEST(limits.max_key >= 512U);
    BOOST_TEST((limits.min_ttl > 0ms && limits.min_ttl <= 1s));
    BOOST_TEST((limits.max_ttl >= 24h));
    BOOST_TEST((!on.able().semaphore || on.able().shared));
    run_coro(on.io(), on.backend().close(1s));
    // The adapter stays usable after a close.
    const auto claim = on.exclusive("k");
    on.grant(claim);
    on.release_held(claim);
}

} // namespace colock::contract
