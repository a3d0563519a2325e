// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

#include <vector>

namespace colock::contract {

// Shared locks and semaphores.

COLOCK_CONTRACT_CASE(adapter, shared_holders_share_and_exclude_exclusive_ones, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.one_attempt("k");
    on.grant(first);
    on.grant(second);
    on.refuse(writer);
    on.release_held(first);
    on.refuse(writer);
    on.release_held(second);
    on.grant(writer);
    on.refuse(on.one_attempt("k", lock_mode::shared));
    on.release_held(writer);
    const auto third = on.shared("k");
    on.grant(third);
    on.release_held(third);
}

COLOCK_CONTRACT_CASE(adapter, a_shared_holder_is_found_again, &capabilities::shared)
{
    const auto first = on.shared("k", 2), second = on.shared("k", 2);
    on.grant(first);
    on.grant(first);
    on.grant(second);
    on.grant(second);
    on.release_held(first);
    on.check_not_held(first);
    BOOST_TEST(on.release(first).status == release_status::not_held);
    on.check_held(second);
    on.release_held(second);
}

COLOCK_CONTRACT_CASE(adapter, each_shared_holder_has_its_own_expiry, &capabilities::shared, &capabilities::expires)
{
    const auto brief = on.shared("k", 0, on.short_ttl()), lasting = on.shared("k");
    on.grant(brief);
    on.grant(lasting);
    on.pass_time(on.short_ttl());
    on.check_not_held(brief);
    on.check_held(lasting);
    on.refuse(on.one_attempt("k"));
    BOOST_TEST(on.extend(brief, on.long_ttl).status == extend_status::not_held);
    BOOST_TEST(on.release(brief).status == release_status::not_held);
    on.release_held(lasting);
}

COLOCK_CONTRACT_CASE(
    adapter, extending_one_shared_holder_leaves_the_others, &capabilities::shared, &capabilities::expires)
{
    const auto brief = on.shared("k", 0, on.short_ttl()), extended = on.shared("k", 0, on.short_ttl());
    on.grant(brief);
    on.grant(extended);
    BOOST_TEST(on.extend(extended, on.long_ttl).status == extend_status::extended);
    on.pass_time(on.short_ttl());
    on.check_not_held(brief);
    on.check_held(extended);
    BOOST_TEST(on.extend(extended, on.short_ttl()).status == extend_status::extended);
    on.pass_time(on.short_ttl());
    on.check_not_held(extended);
}

COLOCK_CONTRACT_CASE(
    adapter, crashed_reader_does_not_block_a_writer_forever, &capabilities::shared, &capabilities::expires)
{
    const auto crashed = on.shared("k", 0, on.short_ttl()), writer = on.exclusive("k");
    on.grant(crashed);
    on.refuse(writer);
    on.pass_time(on.short_ttl());
    on.grant(writer);
    on.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, readers_queue_behind_a_waiting_writer, &capabilities::shared)
{
    const auto reader = on.shared("k"), writer = on.exclusive("k"), late = on.shared("k");
    on.grant(reader);
    on.refuse(writer);
    on.refuse(late);
    on.refuse(on.one_attempt("k", lock_mode::shared));
    on.release_held(reader);
    on.grant(writer);
    on.refuse(late);
    on.release_held(writer);
    on.grant(late);
    on.release_held(late);
}

COLOCK_CONTRACT_CASE(adapter, a_single_attempt_of_a_writer_stops_no_readers, &capabilities::shared)
{
    const auto reader = on.shared("k"), late = on.shared("k");
    on.grant(reader);
    on.refuse(on.one_attempt("k"));
    on.grant(late);
    on.release_held(reader);
    on.release_held(late);
}

COLOCK_CONTRACT_CASE(adapter, a_writer_that_gave_up_stops_no_readers, &capabilities::shared)
{
    const auto reader = on.shared("k"), writer = on.exclusive("k"), late = on.shared("k");
    on.grant(reader);
    on.refuse(writer);
    on.refuse(late);
    on.abandon(writer);
    on.grant(late);
    on.release_held(reader);
    on.release_held(late);
}

COLOCK_CONTRACT_CASE(adapter, a_semaphore_admits_up_to_each_claims_own_limit, &capabilities::semaphore)
{
    const auto first = on.shared("k", 2), second = on.shared("k", 2);
    const auto third = on.shared("k", 3), unlimited = on.shared("k");
    const auto single = [](std::size_t limit) -> claim_ptr {
        return new plain_claim({.key = "k", .mode = lock_mode::shared, .max_holders = limit, .queues = false});
    };
    on.grant(first);
    on.grant(second);
    on.refuse(single(1));
    on.refuse(single(2));
    on.grant(third);
    on.refuse(single(3));
    on.grant(unlimited);
    on.release_held(first);
    on.release_held(second);
    const auto again = single(3);
    on.grant(again);
    on.refuse(on.one_attempt("k"));
    on.release_held(again);
    on.release_held(third);
    on.release_held(unlimited);
}

COLOCK_CONTRACT_CASE(
    adapter, an_expired_holder_frees_its_place_in_a_semaphore, &capabilities::semaphore, &capabilities::expires)
{
    const auto brief = on.shared("k", 2, on.short_ttl()), lasting = on.shared("k", 2), next = on.shared("k", 2);
    on.grant(brief);
    on.grant(lasting);
    on.refuse(next);
    on.pass_time(on.short_ttl());
    on.grant(next);
    on.release_held(lasting);
    on.release_held(next);
}

// No ttl.

COLOCK_CONTRACT_CASE(adapter, grant_without_ttl_is_kept_until_released, &capabilities::no_ttl)
{
    const auto claim = on.exclusive("k", 0ms);
    on.grant(claim);
    on.pass_time(on.short_ttl());
    on.check_held(claim);
    const auto refused = on.refuse(on.one_attempt("k"));
    // Without events the backend may ask to check again after a while.
    BOOST_TEST((refused.retry_after.count() == 0 || !on.able().events));
    on.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, shared_holder_without_ttl_is_kept_until_released, &capabilities::no_ttl,
    &capabilities::shared, &capabilities::expires)
{
    const auto eternal = on.shared("k", 0, 0ms), brief = on.shared("k", 0, on.short_ttl());
    on.grant(eternal);
    on.grant(brief);
    on.pass_time(on.short_ttl());
    on.check_held(eternal);
    on.check_not_held(brief);
    on.refuse(on.one_attempt("k"));
    on.release_held(eternal);
}

// Waiting.

COLOCK_CONTRACT_CASE(adapter, release_wakes_waiters, &capabilities::events)
{
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    auto acquiring = on.start_acquire(next);
    on.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    on.release_held(holder);
    // The release itself wakes the waiter, so no timer has to expire.
    acquiring.get(on.io());
    on.check_held(next);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, release_by_another_process_wakes_waiters, &capabilities::events)
{
    const auto other = on.another();
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    other.grant(holder);
    auto acquiring = on.start_acquire(next);
    on.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    other.release_held(holder);
    acquiring.get(on.io());
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_release_between_create_and_wait_is_not_missed, &capabilities::events)
{
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(next);
    on.release_held(holder);
    run_coro(on.io(), on.backend().wait(next, lease_clock::time_point::max()));
    on.grant(next);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, the_last_reader_wakes_a_writer, &capabilities::events, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.exclusive("k");
    on.grant(first);
    on.grant(second);
    auto acquiring = on.start_acquire(writer);
    on.pass_time(1ms);
    on.release_held(first);
    on.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    on.release_held(second);
    acquiring.get(on.io());
    on.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, a_writer_wakes_all_readers, &capabilities::events, &capabilities::shared)
{
    const auto writer = on.exclusive("k"), first = on.shared("k"), second = on.shared("k");
    on.grant(writer);
    auto acquiring_first = on.start_acquire(first), acquiring_second = on.start_acquire(second);
    on.pass_time(1ms);
    on.release_held(writer);
    acquiring_first.get(on.io());
    acquiring_second.get(on.io());
    on.release_held(first);
    on.release_held(second);
}

COLOCK_CONTRACT_CASE(adapter, break_wakes_waiters, &capabilities::events, &capabilities::list)
{
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    auto acquiring = on.start_acquire(next);
    on.pass_time(1ms);
    BOOST_TEST(on.break_key("k").size() == 1U);
    acquiring.get(on.io());
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, cancelled_wait_releases_its_completion, &capabilities::events)
{
    const auto holder = on.exclusive("k"), gone = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(gone);
    on.backend().start_wait(gone, lease_clock::time_point::max(), [gone](woken) {});
    testing::run_ready(on.io());
    on.backend().cancel_wait(*gone);
    on.abandon(gone);
    on.backend().cancel_wait(*gone);
    on.pass_time(1ms);
    on.release_held(holder);
    on.grant(next);
    on.release_held(next);
    BOOST_TEST(gone->losses.empty());
}

// The queue.

COLOCK_CONTRACT_CASE(adapter, arrival_order_is_kept, &capabilities::fifo)
{
    const auto holder = on.exclusive("k");
    const std::vector queue{on.exclusive("k"), on.exclusive("k"), on.exclusive("k")};
    on.grant(holder);
    for (const auto& claim : queue)
        on.refuse(claim);
    on.release_held(holder);
    for (std::size_t front = 0; front < queue.size(); ++front) {
        // The order and the number of the requests do not matter.
        for (std::size_t behind = queue.size() - 1; behind > front; --behind)
            on.refuse(queue[behind]);
        on.refuse(on.one_attempt("k"));
        on.grant(queue[front]);
        on.release_held(queue[front]);
    }
}

COLOCK_CONTRACT_CASE(adapter, a_single_attempt_keeps_no_place, &capabilities::fifo)
{
    const auto holder = on.exclusive("k"), hasty = on.one_attempt("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(hasty);
    on.refuse(next);
    on.release_held(holder);
    on.refuse(hasty);
    on.grant(next);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, readers_in_front_are_granted_together, &capabilities::fifo, &capabilities::shared)
{
    const auto holder = on.exclusive("k"), writer = on.exclusive("k");
    const auto first = on.shared("k"), second = on.shared("k"), last = on.shared("k");
    on.grant(holder);
    on.refuse(first);
    on.refuse(second);
    on.refuse(writer);
    on.refuse(last);
    on.release_held(holder);
    on.refuse(last);
    on.refuse(writer);
    on.grant(second);
    on.grant(first);
    on.release_held(first);
    on.release_held(second);
    on.refuse(last);
    on.grant(writer);
    on.release_held(writer);
    on.grant(last);
    on.release_held(last);
}

COLOCK_CONTRACT_CASE(adapter, semaphore_claim_is_not_blocked_by_a_waiter_at_its_limit, &capabilities::semaphore)
{
    const auto first = on.shared("k", 1), small = on.shared("k", 1), larger = on.shared("k", 4);
    on.grant(first);
    on.refuse(small);
    on.grant(larger);
    on.release_held(first);
    on.release_held(larger);
    on.grant(small);
    on.release_held(small);
}

// Hand over.

COLOCK_CONTRACT_CASE(adapter, a_hand_over_releases_and_grants)
{
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    const auto fence = on.grant(holder);
    const auto outcome = on.hand_over(holder, next);
    BOOST_TEST(outcome.released.status == release_status::released);
    BOOST_TEST(outcome.created.status == create_status::granted);
    BOOST_TEST((outcome.created.fence > fence || !on.able().fence));
    on.check_not_held(holder);
    on.check_held(next);
    on.refuse(on.one_attempt("k"));
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, hand_over_after_expiry_reports_not_held, &capabilities::expires)
{
    const auto expired = on.exclusive("k", on.short_ttl()), next = on.exclusive("k");
    on.grant(expired);
    on.pass_time(on.short_ttl());
    auto outcome = on.hand_over(expired, next);
    BOOST_TEST(outcome.released.status == release_status::not_held);
    BOOST_TEST(outcome.created.status == create_status::granted);

    const auto third = on.exclusive("k");
    outcome = on.hand_over(expired, third);
    BOOST_TEST(outcome.released.status == release_status::not_held);
    BOOST_TEST(outcome.created.status == create_status::busy);
    on.check_held(next);
    on.abandon(third);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_hand_over_does_not_overtake_the_queue, &capabilities::fifo)
{
    const auto holder = on.exclusive("k"), queued = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(queued);
    BOOST_TEST(on.hand_over(holder, next).created.status == create_status::busy);
    on.grant(queued);
    on.release_held(queued);
    on.grant(next);
    on.release_held(next);
}

} // namespace colock::contract
