// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

namespace colock::contract {

// Exclusive locks.

COLOCK_CONTRACT_CASE(adapter, a_free_lock_is_granted)
{
    const auto claim = env.exclusive("k");
    BOOST_TEST((env.grant(claim) > 0) == env.capabilities().fence);
    env.check_held(claim);
    env.release_held(claim);
    env.check_not_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, a_held_lock_is_busy)
{
    const auto holder = env.exclusive("k"), other = env.exclusive("k");
    env.grant(holder);
    env.check_refused(other);
    env.check_not_held(other);
    env.check_refused(env.one_attempt("k"));
    env.check_held(holder);
    env.release_held(holder);
    env.grant(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, keys_do_not_exclude_each_other)
{
    const auto one = env.exclusive("k"), two = env.exclusive("kk"), three = env.exclusive("K");
    env.grant(one);
    env.grant(two);
    env.grant(three);
    env.release_held(one);
    env.check_held(two);
    env.check_held(three);
    env.release_held(two);
    env.release_held(three);
}

COLOCK_CONTRACT_CASE(adapter, release_is_idempotent)
{
    const auto claim = env.exclusive("k");
    BOOST_TEST(env.release(claim).status == release_status::not_held);
    env.grant(claim);
    env.release_held(claim);
    BOOST_TEST(env.release(claim).status == release_status::not_held);
    env.check_not_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, a_release_touches_only_its_own_grant)
{
    const auto holder = env.exclusive("k"), stranger = env.one_attempt("k");
    env.grant(holder);
    env.check_refused(stranger);
    BOOST_TEST(env.release(stranger).status == release_status::not_held);
    env.check_held(holder);
    BOOST_TEST(env.abandon(stranger).status == release_status::not_held);
    env.check_held(holder);
    env.release_held(holder);
}

COLOCK_CONTRACT_CASE(adapter, late_release_does_not_affect_the_next_holder, &capabilities::expires)
{
    const auto late = env.exclusive("k", env.short_ttl()), next = env.exclusive("k");
    env.grant(late);
    env.pass_time(env.short_ttl());
    env.grant(next);
    BOOST_TEST(env.release(late).status == release_status::not_held);
    env.check_held(next);
    BOOST_TEST(env.abandon(late).status == release_status::not_held);
    env.check_held(next);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_create_finds_its_own_grant)
{
    const auto holder = env.exclusive("k"), other = env.one_attempt("k");
    const auto fence = env.grant(holder);
    BOOST_TEST(env.grant(holder) >= fence);
    env.check_refused(other);
    env.release_held(holder);
    // There is one grant, however often it was requested.
    env.check_not_held(holder);
    env.grant(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_create_is_for_a_new_ttl)
{
    const auto holder = env.exclusive("k");
    env.grant(holder);
    BOOST_TEST(env.extend(holder, env.short_ttl()).status == extend_status::extended);
    env.grant(holder);
    env.pass_time(env.short_ttl() * 11 / 10);
    env.check_held(holder);
    env.release_held(holder);
}

COLOCK_CONTRACT_CASE(adapter, a_grant_ends_with_its_ttl, &capabilities::expires)
{
    const auto expired = env.exclusive("k", env.short_ttl()), other = env.exclusive("k");
    env.grant(expired);
    env.check_held(expired);
    env.pass_time(env.short_ttl());
    env.check_not_held(expired);
    BOOST_TEST(env.release(expired).status == release_status::not_held);
    env.grant(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_queued_claim_is_granted_after_the_holders_expiry, &capabilities::expires)
{
    const auto expired = env.exclusive("k", env.short_ttl()), next = env.exclusive("k");
    env.grant(expired);
    env.check_refused(next);
    env.pass_time(env.short_ttl());
    env.grant(next);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, an_expired_claim_can_be_created_again, &capabilities::expires)
{
    const auto claim = env.exclusive("k");
    const auto fence = env.grant(claim);
    BOOST_TEST(env.extend(claim, env.short_ttl()).status == extend_status::extended);
    env.pass_time(env.short_ttl());
    const auto second = env.grant(claim);
    BOOST_TEST((second > fence || !env.capabilities().fence));
    env.check_held(claim);
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, retry_after_never_passes_the_holders_expiry)
{
    const auto holder = env.exclusive("k", env.short_ttl()), other = env.exclusive("k");
    env.grant(holder);
    const auto hint = env.check_refused(other).retry_after;
    BOOST_TEST((hint >= hint.zero() && hint <= env.short_ttl()));
    env.release_held(holder);
    env.abandon(other);
}

// Extend.

COLOCK_CONTRACT_CASE(adapter, extend_lengthens)
{
    const auto claim = env.exclusive("k", env.short_ttl());
    env.grant(claim);
    BOOST_TEST(env.extend(claim, env.long_ttl).status == extend_status::extended);
    env.pass_time(env.short_ttl() * 11 / 10);
    env.check_held(claim);
    env.check_refused(env.one_attempt("k"));
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, extend_shortens, &capabilities::expires)
{
    const auto claim = env.exclusive("k"), other = env.exclusive("k");
    env.grant(claim);
    BOOST_TEST(env.extend(claim, env.short_ttl()).status == extend_status::extended);
    env.check_held(claim);
    env.pass_time(env.short_ttl());
    env.check_not_held(claim);
    env.grant(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, extend_never_creates)
{
    const auto claim = env.exclusive("k"), other = env.exclusive("k");
    const auto check_refused = [&](const claim_ptr& refused) {
        BOOST_TEST(env.extend(refused, env.long_ttl).status == extend_status::not_held);
        env.check_not_held(refused);
    };
    check_refused(claim);
    env.grant(claim);
    env.release_held(claim);
    check_refused(claim);
    env.grant(other);
    check_refused(claim);
    env.check_held(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, extend_never_revives_what_has_expired, &capabilities::expires)
{
    const auto expired = env.exclusive("k", env.short_ttl()), other = env.exclusive("k");
    const auto check_refused = [&] {
        BOOST_TEST(env.extend(expired, env.long_ttl).status == extend_status::not_held);
        env.check_not_held(expired);
    };
    env.grant(expired);
    env.pass_time(env.short_ttl());
    check_refused();
    env.grant(other);
    check_refused();
    env.check_held(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, extending_a_queued_claim_grants_nothing)
{
    const auto holder = env.exclusive("k"), queued = env.exclusive("k");
    env.grant(holder);
    env.check_refused(queued);
    BOOST_TEST(env.extend(queued, env.long_ttl).status == extend_status::not_held);
    env.check_not_held(queued);
    env.check_held(holder);
    env.release_held(holder);
    env.abandon(queued);
}

// The guarantee `settled`.

COLOCK_CONTRACT_CASE(adapter, settling_a_grant_releases_it)
{
    const auto claim = env.exclusive("k"), other = env.exclusive("k");
    env.grant(claim);
    BOOST_TEST(env.abandon(claim).status == release_status::released);
    env.check_not_held(claim);
    BOOST_TEST(env.abandon(claim).status == release_status::not_held);
    env.grant(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, settling_nothing_does_nothing)
{
    const auto claim = env.exclusive("k"), other = env.exclusive("k");
    BOOST_TEST(env.abandon(claim).status == release_status::not_held);
    env.grant(other);
    BOOST_TEST(env.abandon(claim).status == release_status::not_held);
    env.check_held(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_settled_claim_leaves_the_queue)
{
    const auto holder = env.exclusive("k"), gone = env.exclusive("k"), next = env.exclusive("k");
    env.grant(holder);
    env.check_refused(gone);
    env.check_refused(next);
    BOOST_TEST(env.abandon(gone).status == release_status::not_held);
    env.release_held(holder);
    env.check_not_held(gone);
    env.grant(next);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_settled_head_makes_way)
{
    const auto holder = env.exclusive("k"), head = env.exclusive("k"), next = env.exclusive("k");
    env.grant(holder);
    env.check_refused(head);
    env.check_refused(next);
    env.release_held(holder);
    // The claim is first in the queue. Whether it already holds the lock depends on the backend.
    env.abandon(head);
    env.check_not_held(head);
    env.grant(next);
    env.release_held(next);
}

// Fences.

COLOCK_CONTRACT_CASE(adapter, fences_grow_over_every_end_of_a_grant, &capabilities::fence)
{
    std::uint64_t last = 0;
    const auto grant_next = [&](std::chrono::milliseconds ttl) {
        const auto claim = env.exclusive("k", ttl);
        const auto fence = env.grant(claim);
        BOOST_TEST(fence > last);
        last = fence;
        return claim;
    };
    env.release_held(grant_next(env.long_ttl));
    env.abandon(grant_next(env.long_ttl));
    if (env.capabilities().expires) {
        grant_next(env.short_ttl());
        env.pass_time(env.short_ttl());
    }
    if (env.capabilities().list) {
        env.break_key("k");
        grant_next(env.long_ttl);
        env.break_key("k");
    }
    if (env.capabilities().list && env.capabilities().expires) {
        grant_next(env.short_ttl());
        env.pass_time(env.short_ttl());
        env.purge();
    }
    const auto queued = env.exclusive("k"), holder = grant_next(env.long_ttl);
    env.check_refused(queued);
    env.release_held(holder);
    BOOST_TEST(env.grant(queued) > last);
    env.release_held(queued);
}

COLOCK_CONTRACT_CASE(adapter, fences_grow_over_shared_grants, &capabilities::fence, &capabilities::shared)
{
    const auto first = env.shared("k"), second = env.shared("k"), writer = env.exclusive("k");
    const auto first_fence = env.grant(first), second_fence = env.grant(second);
    BOOST_TEST(second_fence > first_fence);
    env.release_held(first);
    env.release_held(second);
    BOOST_TEST(env.grant(writer) > second_fence);
    env.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, fences_grow_across_processes, &capabilities::fence)
{
    const auto other = env.another();
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        for (const driver* by : std::initializer_list<const driver*>{&env, &other}) {
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
    const auto other = env.another();
    const auto mine = env.exclusive("k"), others = env.exclusive("k");
    env.grant(mine);
    other.check_refused(others);
    env.release_held(mine);
    other.grant(others);
    env.check_refused(env.one_attempt("k"));
    other.release_held(others);
}

COLOCK_CONTRACT_CASE(adapter, limits_and_name_make_sense)
{
    BOOST_TEST(!env.backend().traits().name.empty());
    const auto limits = env.backend().traits().limits;
    BOOST_TEST(limits.max_key >= 512U);
    BOOST_TEST((limits.min_ttl > 0ms && limits.min_ttl <= 1s));
    BOOST_TEST((limits.max_ttl >= 24h));
    BOOST_TEST((!env.capabilities().semaphore || env.capabilities().shared));
    run_coro(env.io(), env.backend().close(1s));
    // The adapter stays usable after a close.
    const auto claim = env.exclusive("k");
    env.grant(claim);
    env.release_held(claim);
}

// Without a ttl.

COLOCK_CONTRACT_CASE(adapter, grant_without_ttl_is_kept_until_released, &capabilities::no_ttl)
{
    const auto claim = env.exclusive("k", 0ms);
    env.grant(claim);
    env.pass_time(env.short_ttl());
    env.check_held(claim);
    const auto refused = env.check_refused(env.one_attempt("k"));
    // Without events the backend may ask to check again after a while.
    BOOST_TEST((refused.retry_after.count() == 0 || !env.capabilities().events));
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, shared_holder_without_ttl_is_kept_until_released, &capabilities::no_ttl,
    &capabilities::shared, &capabilities::expires)
{
    const auto eternal = env.shared("k", 0, 0ms), brief = env.shared("k", 0, env.short_ttl());
    env.grant(eternal);
    env.grant(brief);
    env.pass_time(env.short_ttl());
    env.check_held(eternal);
    env.check_not_held(brief);
    env.check_refused(env.one_attempt("k"));
    env.release_held(eternal);
}

} // namespace colock::contract
