// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

#include <vector>

namespace colock::contract {

// Waiting.

COLOCK_CONTRACT_CASE(adapter, release_wakes_waiters, &capabilities::events)
{
    const auto holder = env.exclusive("k"), next = env.exclusive("k");
    env.grant(holder);
    auto acquiring = env.start_acquire(next);
    env.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    env.release_held(holder);
    // The release itself wakes the waiter, so no timer has to expire.
    acquiring.get(env.io());
    env.check_held(next);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, release_by_another_process_wakes_waiters, &capabilities::events)
{
    const auto other = env.another();
    const auto holder = env.exclusive("k"), next = env.exclusive("k");
    other.grant(holder);
    auto acquiring = env.start_acquire(next);
    env.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    other.release_held(holder);
    acquiring.get(env.io());
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_release_between_create_and_wait_is_not_missed, &capabilities::events)
{
    const auto holder = env.exclusive("k"), next = env.exclusive("k");
    env.grant(holder);
    env.check_refused(next);
    env.release_held(holder);
    run_coro(env.io(), env.backend().wait(next, lease_clock::time_point::max()));
    env.grant(next);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, the_last_reader_wakes_a_writer, &capabilities::events, &capabilities::shared)
{
    const auto first = env.shared("k"), second = env.shared("k"), writer = env.exclusive("k");
    env.grant(first);
    env.grant(second);
    auto acquiring = env.start_acquire(writer);
    env.pass_time(1ms);
    env.release_held(first);
    env.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    env.release_held(second);
    acquiring.get(env.io());
    env.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, a_writer_wakes_all_readers, &capabilities::events, &capabilities::shared)
{
    const auto writer = env.exclusive("k"), first = env.shared("k"), second = env.shared("k");
    env.grant(writer);
    auto acquiring_first = env.start_acquire(first), acquiring_second = env.start_acquire(second);
    env.pass_time(1ms);
    env.release_held(writer);
    acquiring_first.get(env.io());
    acquiring_second.get(env.io());
    env.release_held(first);
    env.release_held(second);
}

COLOCK_CONTRACT_CASE(adapter, break_wakes_waiters, &capabilities::events, &capabilities::list)
{
    const auto holder = env.exclusive("k"), next = env.exclusive("k");
    env.grant(holder);
    auto acquiring = env.start_acquire(next);
    env.pass_time(1ms);
    BOOST_TEST(env.break_key("k").size() == 1U);
    acquiring.get(env.io());
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, cancelled_wait_does_not_affect_other_claims, &capabilities::events)
{
    const auto holder = env.exclusive("k"), gone = env.exclusive("k"), next = env.exclusive("k");
    env.grant(holder);
    env.check_refused(gone);
    env.backend().start_wait(gone, lease_clock::time_point::max(), [gone](wait_outcome) {});
    testing::run_ready(env.io());
    env.backend().cancel_wait(*gone);
    env.abandon(gone);
    env.backend().cancel_wait(*gone);
    env.pass_time(1ms);
    env.release_held(holder);
    env.grant(next);
    env.release_held(next);
    BOOST_TEST(gone->losses.empty());
}

// The queue.

COLOCK_CONTRACT_CASE(adapter, arrival_order_is_kept, &capabilities::fifo)
{
    const auto holder = env.exclusive("k");
    const std::vector queue{env.exclusive("k"), env.exclusive("k"), env.exclusive("k")};
    env.grant(holder);
    for (const auto& claim : queue)
        env.check_refused(claim);
    env.release_held(holder);
    for (std::size_t front = 0; front < queue.size(); ++front) {
        // The order and the number of the requests do not matter.
        for (std::size_t behind = queue.size() - 1; behind > front; --behind)
            env.check_refused(queue[behind]);
        env.check_refused(env.one_attempt("k"));
        env.grant(queue[front]);
        env.release_held(queue[front]);
    }
}

COLOCK_CONTRACT_CASE(adapter, a_single_attempt_does_not_stay_in_the_queue, &capabilities::fifo)
{
    const auto holder = env.exclusive("k"), hasty = env.one_attempt("k"), next = env.exclusive("k");
    env.grant(holder);
    env.check_refused(hasty);
    env.check_refused(next);
    env.release_held(holder);
    env.check_refused(hasty);
    env.grant(next);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, readers_in_front_are_granted_together, &capabilities::fifo, &capabilities::shared)
{
    const auto holder = env.exclusive("k"), writer = env.exclusive("k");
    const auto first = env.shared("k"), second = env.shared("k"), last = env.shared("k");
    env.grant(holder);
    env.check_refused(first);
    env.check_refused(second);
    env.check_refused(writer);
    env.check_refused(last);
    env.release_held(holder);
    env.check_refused(last);
    env.check_refused(writer);
    env.grant(second);
    env.grant(first);
    env.release_held(first);
    env.release_held(second);
    env.check_refused(last);
    env.grant(writer);
    env.release_held(writer);
    env.grant(last);
    env.release_held(last);
}

COLOCK_CONTRACT_CASE(adapter, semaphore_claim_is_not_blocked_by_a_waiter_at_its_limit, &capabilities::semaphore)
{
    const auto first = env.shared("k", 1), small = env.shared("k", 1), larger = env.shared("k", 4);
    env.grant(first);
    env.check_refused(small);
    env.grant(larger);
    env.release_held(first);
    env.release_held(larger);
    env.grant(small);
    env.release_held(small);
}

// Hand over.

COLOCK_CONTRACT_CASE(adapter, a_hand_over_releases_and_grants)
{
    const auto holder = env.exclusive("k"), next = env.exclusive("k");
    const auto fence = env.grant(holder);
    const auto outcome = env.hand_over(holder, next);
    BOOST_TEST(outcome.released.status == release_status::released);
    BOOST_TEST(outcome.created.status == create_status::granted);
    BOOST_TEST((outcome.created.fence > fence || !env.capabilities().fence));
    env.check_not_held(holder);
    env.check_held(next);
    env.check_refused(env.one_attempt("k"));
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, hand_over_after_expiry_reports_not_held, &capabilities::expires)
{
    const auto expired = env.exclusive("k", env.short_ttl()), next = env.exclusive("k");
    env.grant(expired);
    env.pass_time(env.short_ttl());
    auto outcome = env.hand_over(expired, next);
    BOOST_TEST(outcome.released.status == release_status::not_held);
    BOOST_TEST(outcome.created.status == create_status::granted);

    const auto third = env.exclusive("k");
    outcome = env.hand_over(expired, third);
    BOOST_TEST(outcome.released.status == release_status::not_held);
    BOOST_TEST(outcome.created.status == create_status::busy);
    env.check_held(next);
    env.abandon(third);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_hand_over_does_not_overtake_the_queue, &capabilities::fifo)
{
    const auto holder = env.exclusive("k"), queued = env.exclusive("k"), next = env.exclusive("k");
    env.grant(holder);
    env.check_refused(queued);
    BOOST_TEST(env.hand_over(holder, next).created.status == create_status::busy);
    env.grant(queued);
    env.release_held(queued);
    env.grant(next);
    env.release_held(next);
}

} // namespace colock::contract
