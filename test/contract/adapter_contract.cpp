// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract/contract.hpp"

#include <set>
#include <string>
#include <vector>

namespace colock::contract {

namespace {

claim_ptr described(std::string key, owner_data owner, std::chrono::milliseconds ttl = driver::long_ttl,
    lock_mode mode = lock_mode::exclusive)
{
    return new plain_claim({.key = std::move(key),
        .mode = mode,
        .ttl = ttl,
        .owner = std::make_shared<const owner_data>(std::move(owner))});
}

std::set<std::string> keys_of(const std::vector<lock_status>& statuses)
{
    std::set<std::string> keys;
    for (const auto& status : statuses)
        keys.insert(status.key);
    return keys;
}

using keys = std::set<std::string>;

#define CHECK_KEYS(statuses, ...) BOOST_TEST(keys_of(statuses) == keys(__VA_ARGS__), boost::test_tools::per_element())

} // namespace

cases& adapter_cases()
{
    static cases all;
    return all;
}

// Exclusive locks.

COLOCK_CONTRACT_CASE(adapter, a_free_lock_is_granted)
{
    const auto claim = on.exclusive("k");
    BOOST_TEST((on.grant(claim) > 0) == on.able().fence);
    on.check_held(claim);
    on.give_back(claim);
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
    on.give_back(holder);
    on.grant(other);
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, keys_do_not_exclude_each_other)
{
    const auto one = on.exclusive("k"), two = on.exclusive("kk"), three = on.exclusive("K");
    on.grant(one);
    on.grant(two);
    on.grant(three);
    on.give_back(one);
    on.check_held(two);
    on.check_held(three);
    on.give_back(two);
    on.give_back(three);
}

COLOCK_CONTRACT_CASE(adapter, release_is_idempotent)
{
    const auto claim = on.exclusive("k");
    BOOST_TEST(on.release(claim).status == release_status::not_held);
    on.grant(claim);
    on.give_back(claim);
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
    on.give_back(holder);
}

COLOCK_CONTRACT_CASE(adapter, a_late_release_spares_the_next_holder)
{
    const auto late = on.exclusive("k", on.short_ttl()), next = on.exclusive("k");
    on.grant(late);
    on.pass_time(on.short_ttl());
    on.grant(next);
    BOOST_TEST(on.release(late).status == release_status::not_held);
    on.check_held(next);
    BOOST_TEST(on.abandon(late).status == release_status::not_held);
    on.check_held(next);
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_create_finds_its_own_grant)
{
    const auto holder = on.exclusive("k"), other = on.one_attempt("k");
    const auto fence = on.grant(holder);
    BOOST_TEST(on.grant(holder) >= fence);
    on.refuse(other);
    on.give_back(holder);
    // One grant, however often it was asked for.
    on.check_not_held(holder);
    on.grant(other);
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_create_is_for_a_new_ttl)
{
    const auto holder = on.exclusive("k");
    on.grant(holder);
    BOOST_TEST(on.extend(holder, on.short_ttl()).status == extend_status::extended);
    on.grant(holder);
    on.pass_time(on.short_ttl() * 11 / 10);
    on.check_held(holder);
    on.give_back(holder);
}

COLOCK_CONTRACT_CASE(adapter, a_grant_ends_with_its_ttl)
{
    const auto expired = on.exclusive("k", on.short_ttl()), other = on.exclusive("k");
    on.grant(expired);
    on.check_held(expired);
    on.pass_time(on.short_ttl());
    on.check_not_held(expired);
    BOOST_TEST(on.release(expired).status == release_status::not_held);
    on.grant(other);
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, a_queued_claim_is_granted_after_the_holders_expiry)
{
    const auto expired = on.exclusive("k", on.short_ttl()), next = on.exclusive("k");
    on.grant(expired);
    on.refuse(next);
    on.pass_time(on.short_ttl());
    on.grant(next);
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, an_expired_claim_can_be_created_again)
{
    const auto claim = on.exclusive("k");
    const auto fence = on.grant(claim);
    BOOST_TEST(on.extend(claim, on.short_ttl()).status == extend_status::extended);
    on.pass_time(on.short_ttl());
    const auto second = on.grant(claim);
    BOOST_TEST((second > fence || !on.able().fence));
    on.check_held(claim);
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, retry_after_never_passes_the_holders_expiry)
{
    const auto holder = on.exclusive("k", on.short_ttl()), other = on.exclusive("k");
    on.grant(holder);
    const auto hint = on.refuse(other).retry_after;
    BOOST_TEST((hint >= hint.zero() && hint <= on.short_ttl()));
    on.give_back(holder);
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
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, extend_shortens)
{
    const auto claim = on.exclusive("k"), other = on.exclusive("k");
    on.grant(claim);
    BOOST_TEST(on.extend(claim, on.short_ttl()).status == extend_status::extended);
    on.check_held(claim);
    on.pass_time(on.short_ttl());
    on.check_not_held(claim);
    on.grant(other);
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, extend_never_creates)
{
    const auto claim = on.exclusive("k", on.short_ttl()), other = on.exclusive("k");
    const auto check_refused = [&](const claim_ptr& refused) {
        BOOST_TEST(on.extend(refused, on.long_ttl).status == extend_status::not_held);
        on.check_not_held(refused);
    };
    check_refused(claim);
    on.grant(claim);
    on.give_back(claim);
    check_refused(claim);

    const auto expired = on.exclusive("k", on.short_ttl());
    on.grant(expired);
    on.pass_time(on.short_ttl());
    check_refused(expired);
    on.grant(other);
    check_refused(expired);
    on.check_held(other);
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, extending_a_queued_claim_grants_nothing)
{
    const auto holder = on.exclusive("k"), queued = on.exclusive("k");
    on.grant(holder);
    on.refuse(queued);
    BOOST_TEST(on.extend(queued, on.long_ttl).status == extend_status::not_held);
    on.check_held(holder);
    on.give_back(holder);
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
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, abandoning_nothing_does_nothing)
{
    const auto claim = on.exclusive("k"), other = on.exclusive("k");
    BOOST_TEST(on.abandon(claim).status == release_status::not_held);
    on.grant(other);
    BOOST_TEST(on.abandon(claim).status == release_status::not_held);
    on.check_held(other);
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, an_abandoned_claim_leaves_the_queue)
{
    const auto holder = on.exclusive("k"), gone = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(gone);
    on.refuse(next);
    BOOST_TEST(on.abandon(gone).status == release_status::not_held);
    on.give_back(holder);
    on.check_not_held(gone);
    on.grant(next);
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, an_abandoned_head_makes_way)
{
    const auto holder = on.exclusive("k"), head = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(head);
    on.refuse(next);
    on.give_back(holder);
    // Its turn had come; whether it held the lock already is the backend's affair.
    on.abandon(head);
    on.check_not_held(head);
    on.grant(next);
    on.give_back(next);
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
    on.give_back(grant_next(on.long_ttl));
    on.abandon(grant_next(on.long_ttl));
    grant_next(on.short_ttl());
    on.pass_time(on.short_ttl());
    if (on.able().list) {
        on.break_key("k");
        grant_next(on.long_ttl);
        on.break_key("k");
        grant_next(on.short_ttl());
        on.pass_time(on.short_ttl());
        on.purge();
    }
    const auto queued = on.exclusive("k"), holder = grant_next(on.long_ttl);
    on.refuse(queued);
    on.give_back(holder);
    BOOST_TEST(on.grant(queued) > last);
    on.give_back(queued);
}

COLOCK_CONTRACT_CASE(adapter, fences_grow_over_shared_grants, &capabilities::fence, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.exclusive("k");
    const auto first_fence = on.grant(first), second_fence = on.grant(second);
    BOOST_TEST(second_fence > first_fence);
    on.give_back(first);
    on.give_back(second);
    BOOST_TEST(on.grant(writer) > second_fence);
    on.give_back(writer);
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
            by->give_back(claim);
        }
    }
}

// Shared locks and semaphores.

COLOCK_CONTRACT_CASE(adapter, shared_holders_share_and_exclude_exclusive_ones, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.one_attempt("k");
    on.grant(first);
    on.grant(second);
    on.refuse(writer);
    on.give_back(first);
    on.refuse(writer);
    on.give_back(second);
    on.grant(writer);
    on.refuse(on.one_attempt("k", lock_mode::shared));
    on.give_back(writer);
    const auto third = on.shared("k");
    on.grant(third);
    on.give_back(third);
}

COLOCK_CONTRACT_CASE(adapter, a_shared_holder_is_found_again, &capabilities::shared)
{
    const auto first = on.shared("k", 2), second = on.shared("k", 2);
    on.grant(first);
    on.grant(first);
    on.grant(second);
    on.grant(second);
    on.give_back(first);
    on.check_not_held(first);
    BOOST_TEST(on.release(first).status == release_status::not_held);
    on.check_held(second);
    on.give_back(second);
}

COLOCK_CONTRACT_CASE(adapter, each_shared_holder_has_its_own_expiry, &capabilities::shared)
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
    on.give_back(lasting);
}

COLOCK_CONTRACT_CASE(adapter, extending_one_shared_holder_leaves_the_others, &capabilities::shared)
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

COLOCK_CONTRACT_CASE(adapter, a_crashed_reader_does_not_block_a_writer_for_ever, &capabilities::shared)
{
    const auto crashed = on.shared("k", 0, on.short_ttl()), writer = on.exclusive("k");
    on.grant(crashed);
    on.refuse(writer);
    on.pass_time(on.short_ttl());
    on.grant(writer);
    on.give_back(writer);
}

COLOCK_CONTRACT_CASE(adapter, readers_queue_behind_a_waiting_writer, &capabilities::shared)
{
    const auto reader = on.shared("k"), writer = on.exclusive("k"), late = on.shared("k");
    on.grant(reader);
    on.refuse(writer);
    on.refuse(late);
    on.refuse(on.one_attempt("k", lock_mode::shared));
    on.give_back(reader);
    on.grant(writer);
    on.refuse(late);
    on.give_back(writer);
    on.grant(late);
    on.give_back(late);
}

COLOCK_CONTRACT_CASE(adapter, a_single_attempt_of_a_writer_stops_no_readers, &capabilities::shared)
{
    const auto reader = on.shared("k"), late = on.shared("k");
    on.grant(reader);
    on.refuse(on.one_attempt("k"));
    on.grant(late);
    on.give_back(reader);
    on.give_back(late);
}

COLOCK_CONTRACT_CASE(adapter, a_writer_that_gave_up_stops_no_readers, &capabilities::shared)
{
    const auto reader = on.shared("k"), writer = on.exclusive("k"), late = on.shared("k");
    on.grant(reader);
    on.refuse(writer);
    on.refuse(late);
    on.abandon(writer);
    on.grant(late);
    on.give_back(reader);
    on.give_back(late);
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
    on.give_back(first);
    on.give_back(second);
    const auto again = single(3);
    on.grant(again);
    on.refuse(on.one_attempt("k"));
    on.give_back(again);
    on.give_back(third);
    on.give_back(unlimited);
}

COLOCK_CONTRACT_CASE(adapter, an_expired_holder_frees_its_place_in_a_semaphore, &capabilities::semaphore)
{
    const auto brief = on.shared("k", 2, on.short_ttl()), lasting = on.shared("k", 2), next = on.shared("k", 2);
    on.grant(brief);
    on.grant(lasting);
    on.refuse(next);
    on.pass_time(on.short_ttl());
    on.grant(next);
    on.give_back(lasting);
    on.give_back(next);
}

// No ttl.

COLOCK_CONTRACT_CASE(adapter, without_ttl_a_grant_stands_until_released, &capabilities::no_ttl)
{
    const auto claim = on.exclusive("k", 0ms);
    on.grant(claim);
    on.pass_time(on.short_ttl());
    on.check_held(claim);
    const auto refused = on.refuse(on.one_attempt("k"));
    // Without events it may be asked to look again after a while.
    BOOST_TEST((refused.retry_after.count() == 0 || !on.able().events));
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, without_ttl_nothing_is_purged, &capabilities::no_ttl, &capabilities::list)
{
    const auto claim = on.exclusive("k", 0ms);
    on.grant(claim);
    on.pass_time(on.short_ttl());
    BOOST_TEST(on.purge().empty());
    on.check_held(claim);
    const auto status = on.inspect("k");
    BOOST_REQUIRE(status.size() == 1U);
    BOOST_TEST(!status[0].remaining);
    CHECK_KEYS(on.list({.remaining_at_least = 24h}), {"k"});
    BOOST_TEST(on.list({.remaining_below = std::chrono::milliseconds::max()}).empty());
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, without_ttl_a_shared_holder_stands_too, &capabilities::no_ttl, &capabilities::shared)
{
    const auto eternal = on.shared("k", 0, 0ms), brief = on.shared("k", 0, on.short_ttl());
    on.grant(eternal);
    on.grant(brief);
    on.pass_time(on.short_ttl());
    on.check_held(eternal);
    on.check_not_held(brief);
    on.refuse(on.one_attempt("k"));
    on.give_back(eternal);
}

// Waiting.

COLOCK_CONTRACT_CASE(adapter, a_release_wakes_who_waits, &capabilities::events)
{
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    auto acquiring = on.start_acquire(next);
    on.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    on.give_back(holder);
    // No time has to pass.
    acquiring.get(on.io());
    on.check_held(next);
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, a_release_by_another_process_wakes_who_waits, &capabilities::events)
{
    const auto other = on.another();
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    other.grant(holder);
    auto acquiring = on.start_acquire(next);
    on.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    other.give_back(holder);
    acquiring.get(on.io());
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, a_release_between_create_and_wait_is_not_missed, &capabilities::events)
{
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(next);
    on.give_back(holder);
    run_coro(on.io(), on.backend().wait(next, lease_clock::time_point::max()));
    on.grant(next);
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, the_last_reader_wakes_a_writer, &capabilities::events, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.exclusive("k");
    on.grant(first);
    on.grant(second);
    auto acquiring = on.start_acquire(writer);
    on.pass_time(1ms);
    on.give_back(first);
    on.pass_time(1ms);
    BOOST_TEST(!acquiring.done());
    on.give_back(second);
    acquiring.get(on.io());
    on.give_back(writer);
}

COLOCK_CONTRACT_CASE(adapter, a_writer_wakes_all_readers, &capabilities::events, &capabilities::shared)
{
    const auto writer = on.exclusive("k"), first = on.shared("k"), second = on.shared("k");
    on.grant(writer);
    auto acquiring_first = on.start_acquire(first), acquiring_second = on.start_acquire(second);
    on.pass_time(1ms);
    on.give_back(writer);
    acquiring_first.get(on.io());
    acquiring_second.get(on.io());
    on.give_back(first);
    on.give_back(second);
}

COLOCK_CONTRACT_CASE(adapter, a_break_wakes_who_waits, &capabilities::events, &capabilities::list)
{
    const auto holder = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    auto acquiring = on.start_acquire(next);
    on.pass_time(1ms);
    BOOST_TEST(on.break_key("k").size() == 1U);
    acquiring.get(on.io());
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, a_cancelled_wait_lets_go, &capabilities::events)
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
    on.give_back(holder);
    on.grant(next);
    on.give_back(next);
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
    on.give_back(holder);
    for (std::size_t front = 0; front < queue.size(); ++front) {
        // Who asks first does not matter, nor how often.
        for (std::size_t behind = queue.size() - 1; behind > front; --behind)
            on.refuse(queue[behind]);
        on.refuse(on.one_attempt("k"));
        on.grant(queue[front]);
        on.give_back(queue[front]);
    }
}

COLOCK_CONTRACT_CASE(adapter, a_single_attempt_keeps_no_place, &capabilities::fifo)
{
    const auto holder = on.exclusive("k"), hasty = on.one_attempt("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(hasty);
    on.refuse(next);
    on.give_back(holder);
    on.refuse(hasty);
    on.grant(next);
    on.give_back(next);
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
    on.give_back(holder);
    on.refuse(last);
    on.refuse(writer);
    on.grant(second);
    on.grant(first);
    on.give_back(first);
    on.give_back(second);
    on.refuse(last);
    on.grant(writer);
    on.give_back(writer);
    on.grant(last);
    on.give_back(last);
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
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, a_hand_over_after_expiry_says_so)
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
    on.give_back(next);
}

COLOCK_CONTRACT_CASE(adapter, a_hand_over_does_not_overtake_the_queue, &capabilities::fifo)
{
    const auto holder = on.exclusive("k"), queued = on.exclusive("k"), next = on.exclusive("k");
    on.grant(holder);
    on.refuse(queued);
    BOOST_TEST(on.hand_over(holder, next).created.status == create_status::busy);
    on.grant(queued);
    on.give_back(queued);
    on.grant(next);
    on.give_back(next);
}

// List, inspect, break, purge.

COLOCK_CONTRACT_CASE(adapter, a_status_says_who_holds_the_lock, &capabilities::list)
{
    const auto claim = described("k", {.owner = "me", .host = "here", .comment = "for a test", .group = "g"});
    const auto fence = on.grant(claim);
    const auto statuses = on.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    const auto& status = statuses[0];
    BOOST_TEST(status.key == "k");
    BOOST_TEST(status.owner == "me");
    BOOST_TEST(status.host == "here");
    BOOST_TEST(status.comment == "for a test");
    BOOST_TEST(status.group == "g");
    BOOST_TEST(status.mode == lock_mode::exclusive);
    BOOST_TEST((status.fence == fence || status.fence == 0));
    BOOST_REQUIRE(status.remaining);
    BOOST_TEST((*status.remaining > on.long_ttl / 2 && *status.remaining <= on.long_ttl));
    if (status.created && status.renewed)
        BOOST_TEST((*status.created <= *status.renewed));
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, owner_data_comes_back_as_it_was, &capabilities::list)
{
    const owner_data odd{.owner = std::string(256, 'o'),
        .host = "a\"b'c\\d:e|f,g\n\r\t ",
        .comment = "{}[]()*?\x01\x7f \xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92",
        .group = ""};
    const auto claim = described("k", odd);
    on.grant(claim);
    const auto statuses = on.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    BOOST_TEST((owner_data{statuses[0].owner, statuses[0].host, statuses[0].comment, statuses[0].group} == odd));
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, a_status_never_holds_a_token, &capabilities::list)
{
    const auto claim = on.exclusive("k");
    on.grant(claim);
    const auto token = claim->token().hex();
    const auto statuses = on.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    for (const auto& text :
        {statuses[0].key, statuses[0].owner, statuses[0].host, statuses[0].comment, statuses[0].group})
        BOOST_TEST(text.find(token) == std::string::npos);
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, an_extension_moves_renewed_and_remaining, &capabilities::list)
{
    const auto claim = on.exclusive("k", on.short_ttl());
    on.grant(claim);
    const auto before = on.inspect("k").at(0);
    on.pass_time(on.short_ttl() / 4);
    on.extend(claim, on.long_ttl);
    const auto after = on.inspect("k").at(0);
    BOOST_REQUIRE((before.remaining && after.remaining));
    BOOST_TEST((*after.remaining > *before.remaining));
    BOOST_TEST(before.renewed.has_value() == after.renewed.has_value());
    if (before.renewed && after.renewed)
        BOOST_TEST((*after.renewed - *after.created > *before.renewed - *before.created));
    BOOST_TEST(after.fence == before.fence);
    on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, inspect_shows_the_live_holders_of_one_key, &capabilities::list)
{
    BOOST_TEST(on.inspect("k").empty());
    const auto expired = on.exclusive("k", on.short_ttl()), other = on.exclusive("kk"), queued = on.exclusive("kk");
    on.grant(expired);
    on.grant(other);
    on.refuse(queued);
    CHECK_KEYS(on.inspect("k"), {"k"});
    BOOST_TEST(on.inspect("kk").size() == 1U);
    on.pass_time(on.short_ttl());
    BOOST_TEST(on.inspect("k").empty());
    on.abandon(queued);
    on.give_back(other);
}

COLOCK_CONTRACT_CASE(adapter, inspect_shows_every_shared_holder, &capabilities::list, &capabilities::shared)
{
    const auto brief = described("k", {.owner = "brief"}, on.short_ttl(), lock_mode::shared);
    const auto lasting = described("k", {.owner = "lasting"}, on.long_ttl, lock_mode::shared);
    on.grant(brief);
    const auto fence = on.grant(lasting);
    auto statuses = on.inspect("k");
    BOOST_TEST(statuses.size() == 2U);
    for (const auto& status : statuses)
        BOOST_TEST(status.mode == lock_mode::shared);
    on.pass_time(on.short_ttl());
    statuses = on.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    BOOST_TEST(statuses[0].owner == "lasting");
    BOOST_TEST((statuses[0].fence == fence || statuses[0].fence == 0));
    on.give_back(lasting);
}

COLOCK_CONTRACT_CASE(adapter, list_honours_every_field_of_its_filter, &capabilities::list)
{
    const std::vector<claim_ptr> claims{
        described("cart:1", {.owner = "ann", .group = "g1"}, 30min),
        described("cart:2", {.owner = "bob", .group = "g1"}, 60min),
        described("seat:1", {.owner = "ann", .group = "g2"}, 90min),
    };
    for (const auto& claim : claims)
        on.grant(claim);

    CHECK_KEYS(on.list(), {"cart:1", "cart:2", "seat:1"});
    CHECK_KEYS(on.list({.key = "cart:1"}), {"cart:1"});
    CHECK_KEYS(on.list({.key = "cart:"}), {});
    CHECK_KEYS(on.list({.key_prefix = "cart:"}), {"cart:1", "cart:2"});
    CHECK_KEYS(on.list({.key_prefix = ""}), {"cart:1", "cart:2", "seat:1"});
    CHECK_KEYS(on.list({.group = "g1"}), {"cart:1", "cart:2"});
    CHECK_KEYS(on.list({.group = "g"}), {});
    CHECK_KEYS(on.list({.owner = "ann"}), {"cart:1", "seat:1"});
    CHECK_KEYS(on.list({.mode = lock_mode::exclusive}), {"cart:1", "cart:2", "seat:1"});
    CHECK_KEYS(on.list({.mode = lock_mode::shared}), {});
    CHECK_KEYS(on.list({.remaining_below = 45min}), {"cart:1"});
    CHECK_KEYS(on.list({.remaining_at_least = 45min}), {"cart:2", "seat:1"});
    CHECK_KEYS(on.list({.remaining_below = 75min, .remaining_at_least = 45min}), {"cart:2"});
    CHECK_KEYS(on.list({.key_prefix = "cart:", .owner = "ann"}), {"cart:1"});
    CHECK_KEYS(on.list({.group = "g2", .owner = "bob"}), {});
    for (const auto& claim : claims)
        on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, list_tells_shared_from_exclusive, &capabilities::list, &capabilities::shared)
{
    const auto writer = on.exclusive("w"), first = on.shared("r"), second = on.shared("r");
    on.grant(writer);
    on.grant(first);
    on.grant(second);
    CHECK_KEYS(on.list({.mode = lock_mode::exclusive}), {"w"});
    CHECK_KEYS(on.list({.mode = lock_mode::shared}), {"r"});
    BOOST_TEST(on.list({.mode = lock_mode::shared}).size() == 2U);
    on.give_back(writer);
    on.give_back(first);
    on.give_back(second);
}

COLOCK_CONTRACT_CASE(adapter, list_filters_by_creation, &capabilities::list)
{
    const auto older = on.exclusive("older"), newer = on.exclusive("newer");
    on.grant(older);
    on.pass_time(on.short_ttl() / 10);
    on.grant(newer);
    const auto older_created = on.inspect("older").at(0).created, newer_created = on.inspect("newer").at(0).created;
    if (older_created && newer_created) {
        BOOST_TEST((*older_created < *newer_created));
        const auto between = *older_created + (*newer_created - *older_created) / 2;
        CHECK_KEYS(on.list({.created_before = between}), {"older"});
        CHECK_KEYS(on.list({.created_after = between}), {"newer"});
        CHECK_KEYS(
            on.list({.created_before = *newer_created + 1h, .created_after = *older_created - 1h}), {"older", "newer"});
    } else {
        // A time that is not kept satisfies no condition.
        BOOST_TEST(on.list({.created_after = std::chrono::system_clock::time_point::min()}).empty());
    }
    on.give_back(older);
    on.give_back(newer);
}

COLOCK_CONTRACT_CASE(adapter, list_shows_live_locks_only, &capabilities::list)
{
    const auto expired = on.exclusive("expired", on.short_ttl()), live = on.exclusive("live");
    on.grant(expired);
    on.grant(live);
    CHECK_KEYS(on.list(), {"expired", "live"});
    on.pass_time(on.short_ttl());
    CHECK_KEYS(on.list(), {"live"});
    on.give_back(live);
    BOOST_TEST(on.list().empty());
}

COLOCK_CONTRACT_CASE(adapter, list_shows_the_locks_of_all_processes, &capabilities::list)
{
    const auto other = on.another();
    const auto mine = on.exclusive("mine"), others = on.exclusive("others");
    on.grant(mine);
    other.grant(others);
    CHECK_KEYS(on.list(), {"mine", "others"});
    CHECK_KEYS(other.list(), {"mine", "others"});
    on.give_back(mine);
    other.give_back(others);
}

COLOCK_CONTRACT_CASE(adapter, break_removes_the_holder_of_a_key, &capabilities::list)
{
    const auto broken = on.exclusive("k"), bystander = on.exclusive("kk"), next = on.exclusive("k");
    const auto fence = on.grant(broken);
    on.grant(bystander);
    const auto removed = on.break_key("k");
    BOOST_REQUIRE(removed.size() == 1U);
    BOOST_TEST(removed[0].key == "k");
    BOOST_TEST((removed[0].fence == fence || removed[0].fence == 0));
    on.check_not_held(broken);
    BOOST_TEST(on.extend(broken, on.long_ttl).status == extend_status::not_held);
    BOOST_TEST(on.release(broken).status == release_status::not_held);
    on.check_held(bystander);
    on.grant(next);
    on.give_back(next);
    on.give_back(bystander);
    BOOST_TEST(on.break_key("k").empty());
}

COLOCK_CONTRACT_CASE(adapter, break_removes_every_shared_holder, &capabilities::list, &capabilities::shared)
{
    const auto first = on.shared("k"), second = on.shared("k"), writer = on.exclusive("k");
    on.grant(first);
    on.grant(second);
    BOOST_TEST(on.break_key("k").size() == 2U);
    on.check_not_held(first);
    on.check_not_held(second);
    on.grant(writer);
    on.give_back(writer);
}

COLOCK_CONTRACT_CASE(adapter, purge_spares_what_lives, &capabilities::list)
{
    const auto live = on.exclusive("live"), expired = on.exclusive("expired", on.short_ttl());
    on.grant(live);
    on.grant(expired);
    BOOST_TEST(on.purge().empty());
    on.check_held(expired);
    on.pass_time(on.short_ttl());
    // A backend that lets its keys expire by itself has nothing to return.
    for (const auto& removed : on.purge())
        BOOST_TEST(removed.key == "expired");
    on.check_held(live);
    BOOST_TEST(on.purge().empty());
    on.give_back(live);
}

COLOCK_CONTRACT_CASE(adapter, purge_removes_at_most_its_limit, &capabilities::list)
{
    for (int i = 0; i < 5; ++i)
        on.grant(on.exclusive("k" + std::to_string(i), on.short_ttl()));
    on.pass_time(on.short_ttl());
    BOOST_TEST(on.purge(2).size() <= 2U);
    BOOST_TEST(on.purge().size() <= 5U);
    BOOST_TEST(on.purge().empty());
}

COLOCK_CONTRACT_CASE(adapter, purge_spares_the_live_holders_of_a_key, &capabilities::list, &capabilities::shared)
{
    const auto expired = on.shared("k", 0, on.short_ttl()), live = on.shared("k");
    on.grant(expired);
    on.grant(live);
    on.pass_time(on.short_ttl());
    BOOST_TEST(on.purge().size() <= 1U);
    on.check_held(live);
    on.refuse(on.one_attempt("k"));
    on.give_back(live);
}

// Keys, and other processes.

COLOCK_CONTRACT_CASE(adapter, any_key_is_one_key)
{
    const std::vector<std::string> odd{"with space", " leading", "trailing ", "a/b/c", "/", "//", ".", "..", "../up",
        "a*", "*", "a?", "[a-z]", "a\\*", "{tag}", "{", "}", "{}", "%s%n", "%00", "$key", "a.b", "a:b", "a|b", "a'b",
        "a\"b", "tab\tnew\nline\r", "\x01\x1f\x7f", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92", "\xff\xfe", "0", "-1",
        "zookeeper", "_id", std::string(512, 'k'), std::string(511, 'k'), std::string(512, '/')};
    std::vector<claim_ptr> claims;
    for (const auto& key : odd) {
        BOOST_TEST_CONTEXT("key " << key)
        {
            claims.push_back(on.exclusive(key));
            on.grant(claims.back());
            on.refuse(on.one_attempt(key));
        }
    }
    if (on.able().list) {
        for (const auto& key : odd) {
            BOOST_TEST_CONTEXT("key " << key)
            {
                CHECK_KEYS(on.inspect(key), {key});
                CHECK_KEYS(on.list({.key = key}), {key});
                BOOST_TEST(keys_of(on.list({.key_prefix = key})).contains(key));
                for (const auto& found : on.list({.key_prefix = key}))
                    BOOST_TEST(found.key.starts_with(key));
            }
        }
        BOOST_TEST(on.list().size() == odd.size());
    }
    for (const auto& claim : claims)
        on.give_back(claim);
}

COLOCK_CONTRACT_CASE(adapter, any_key_can_be_shared, &capabilities::shared)
{
    for (const auto& key : {"a/b c", "{tag}*", "\xc3\xa4", "%"}) {
        BOOST_TEST_CONTEXT("key " << key)
        {
            const auto first = on.shared(key), second = on.shared(key);
            on.grant(first);
            on.grant(second);
            on.refuse(on.one_attempt(key));
            on.give_back(first);
            on.give_back(second);
        }
    }
}

COLOCK_CONTRACT_CASE(adapter, processes_exclude_each_other)
{
    const auto other = on.another();
    const auto mine = on.exclusive("k"), others = on.exclusive("k");
    on.grant(mine);
    other.refuse(others);
    on.give_back(mine);
    other.grant(others);
    on.refuse(on.one_attempt("k"));
    other.give_back(others);
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
    // Closing is no end: it stays usable.
    const auto claim = on.exclusive("k");
    on.grant(claim);
    on.give_back(claim);
}

} // namespace colock::contract
