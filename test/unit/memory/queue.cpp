// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "memory/store.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"
#include "support/virtual_clock.hpp"

#include <colock/memory/adapter.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(memory_adapter_queue, memory_fixture)

BOOST_AUTO_TEST_CASE(a_release_grants_to_the_front_directly)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k"), later = driver::exclusive("k");
    const auto fence = on.grant(holder);
    on.refuse(next);
    on.refuse(later);
    const auto next_woken = start_wait(next), later_woken = start_wait(later);
    BOOST_TEST(!*next_woken);

    on.release_held(holder);
    BOOST_TEST(*next_woken);
    BOOST_TEST(!*later_woken);
    // The lock is held before the next create fetches the grant.
    on.check_held(next);
    on.refuse(driver::one_attempt("k"));
    BOOST_TEST(on.grant(next) > fence);
    on.release_held(next);
    BOOST_TEST(*later_woken);
    on.release_held(later);
    BOOST_TEST(on.list().empty());
}

BOOST_AUTO_TEST_CASE(ttl_of_a_direct_grant_starts_at_the_hand_over_and_again_at_its_create)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k", ttl);
    on.grant(holder);
    on.refuse(next);
    skip(1min);
    on.release_held(holder);
    skip(ttl - 1s);
    on.check_held(next);
    const auto fence = on.inspect("k").at(0).fence;
    BOOST_TEST(on.grant(next) == fence);
    skip(ttl - 1s);
    on.check_held(next);
    skip(1s);
    on.check_not_held(next);
}

BOOST_AUTO_TEST_CASE(unfetched_grant_expires_after_its_ttl)
{
    const auto holder = driver::exclusive("k"), dead = driver::exclusive("k", ttl), next = driver::exclusive("k");
    on.grant(holder);
    on.refuse(dead);
    on.refuse(next);
    on.release_held(holder);
    const auto retry_after = on.refuse(next).retry_after;
    BOOST_TEST((retry_after > ttl - 1s && retry_after <= ttl));
    skip(retry_after);
    on.grant(next);
    // The create is too late, so the claim queues again at the end.
    on.refuse(dead);
    on.abandon(dead);
    on.release_held(next);
}

BOOST_AUTO_TEST_CASE(destroyed_claim_leaves_the_queue)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    auto dead = driver::exclusive("k");
    on.grant(holder);
    on.refuse(dead);
    on.refuse(next);
    dead.reset();
    on.release_held(holder);
    on.grant(next);
    on.release_held(next);
}

BOOST_AUTO_TEST_CASE(destroyed_claim_releases_its_unfetched_grant)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    auto dead = driver::exclusive("k", 0ms);
    on.grant(holder);
    on.refuse(dead);
    on.refuse(next);
    on.release_held(holder);
    on.check_held(dead);
    const auto next_woken = start_wait(next);
    dead.reset();
    BOOST_TEST(*next_woken);
    on.release_held(next);
    BOOST_TEST(on.list().empty());
}

BOOST_AUTO_TEST_CASE(destroyed_exclusive_claim_unblocks_the_shared_claims_behind_it)
{
    const auto reader = driver::shared("k"), next_reader = driver::shared("k");
    auto writer = driver::exclusive("k");
    on.grant(reader);
    on.refuse(writer);
    on.refuse(next_reader);
    const auto next_woken = start_wait(next_reader);
    writer.reset();
    BOOST_TEST(*next_woken);
    on.grant(next_reader);
    on.release_held(next_reader);
    on.release_held(reader);
}

BOOST_AUTO_TEST_CASE(all_shared_claims_at_the_front_are_granted)
{
    const auto writer = driver::exclusive("k"), second_writer = driver::exclusive("k");
    const auto first = driver::shared("k"), second = driver::shared("k"), third = driver::shared("k");
    on.grant(writer);
    on.refuse(first);
    on.refuse(second);
    on.refuse(second_writer);
    on.refuse(third);
    on.release_held(writer);
    on.check_held(first);
    on.check_held(second);
    on.check_not_held(second_writer);
    on.check_not_held(third);
    on.release_held(second);
    on.check_not_held(second_writer);
    on.release_held(first);
    on.check_held(second_writer);
    on.release_held(second_writer);
    on.check_held(third);
    on.release_held(third);
}

BOOST_AUTO_TEST_CASE(semaphore_grants_up_to_its_limit)
{
    const auto writer = driver::exclusive("k");
    const std::vector waiting{driver::shared("k", 2), driver::shared("k", 2), driver::shared("k", 2)};
    on.grant(writer);
    for (const auto& claim : waiting)
        on.refuse(claim);
    on.release_held(writer);
    on.check_held(waiting[0]);
    on.check_held(waiting[1]);
    on.check_not_held(waiting[2]);
    on.release_held(waiting[1]);
    on.check_held(waiting[2]);
    on.release_held(waiting[0]);
    on.release_held(waiting[2]);
}

BOOST_AUTO_TEST_CASE(semaphore_claim_overtakes_claims_with_reached_limits)
{
    const auto first = driver::shared("k", 1), small = driver::shared("k", 1), larger = driver::shared("k", 3);
    const auto writer = driver::exclusive("k"), behind = driver::shared("k", 4);
    on.grant(first);
    on.refuse(small);
    // The larger limit is granted at once; the claim with the smaller limit still waits.
    on.grant(larger);
    on.check_not_held(small);
    const auto full = driver::shared("k", 2);
    on.refuse(full);
    const auto full_woken = start_wait(full), small_woken = start_wait(small);
    on.release_held(larger);
    // The claim is queued behind the smaller limit, but receives the lock nevertheless.
    BOOST_TEST(*full_woken);
    BOOST_TEST(!*small_woken);
    on.check_held(full);
    // No claim overtakes an exclusive claim, whatever the limit.
    on.refuse(writer);
    on.refuse(behind);
    on.release_held(first);
    on.check_not_held(behind);
    on.release_held(full);
    on.check_held(small);
    on.check_not_held(writer);
    on.abandon(writer);
    on.check_held(behind);
    on.release_held(small);
    on.release_held(behind);
    BOOST_TEST(on.list().empty());
}

BOOST_AUTO_TEST_CASE(expiry_wakes_no_waiter_and_the_next_operation_grants_to_the_front)
{
    const auto holder = driver::exclusive("k", ttl), front = driver::exclusive("k"), behind = driver::exclusive("k");
    on.grant(holder);
    on.refuse(front);
    on.refuse(behind);
    const auto front_woken = start_wait(front);
    skip(2 * ttl);
    BOOST_TEST(!*front_woken);
    on.refuse(behind);
    BOOST_TEST(*front_woken);
    on.release_held(front);
    on.release_held(behind);
}

BOOST_AUTO_TEST_CASE(retry_after_is_the_time_to_the_relevant_expiry)
{
    const auto near = [](lease_clock::duration actual, lease_clock::duration expected) {
        return actual > expected - 1s && actual <= expected;
    };
    const auto brief = driver::shared("k", 0, ttl), longer = driver::shared("k", 0, 3 * ttl);
    on.grant(brief);
    on.grant(longer);
    BOOST_TEST(near(on.refuse(driver::one_attempt("k")).retry_after, 3 * ttl));
    const claim_ptr semaphore =
        new plain_claim({.key = "k", .mode = lock_mode::shared, .max_holders = 2, .queues = false});
    BOOST_TEST(near(on.refuse(semaphore).retry_after, ttl));
    on.extend(longer, 0ms);
    BOOST_TEST(on.refuse(driver::one_attempt("k")).retry_after.count() == 0);
    on.release_held(brief);
    on.release_held(longer);
}

BOOST_AUTO_TEST_CASE(a_wait_of_a_claim_that_does_not_queue_ends_at_once)
{
    const auto holder = driver::exclusive("k"), not_queued = driver::exclusive("k");
    on.grant(holder);
    BOOST_TEST(*start_wait(holder));
    BOOST_TEST(*start_wait(not_queued));
    on.release_held(holder);
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_keeps_the_place)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    on.grant(holder);
    on.refuse(next);
    const auto next_woken = start_wait(next);
    on.backend().cancel_wait(*next);
    // A cancellation without a wait has no effect.
    on.backend().cancel_wait(*next);
    on.backend().cancel_wait(*holder);
    on.release_held(holder);
    BOOST_TEST(!*next_woken);
    on.check_held(next);
    on.release_held(next);
}

BOOST_AUTO_TEST_CASE(a_completion_may_use_the_adapter)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k"), last = driver::exclusive("k");
    on.grant(holder);
    on.refuse(next);
    on.refuse(last);
    std::vector<std::string> log;
    auto& backend = on.backend();
    backend.start_wait(next, lease_clock::time_point::max(), [&](woken) {
        backend.start_create(next, [&](create_outcome created) {
            log.push_back(created.status == create_status::granted ? "granted" : "not granted");
            backend.start_release(next, [&](release_outcome) { log.push_back("released"); });
        });
    });
    backend.start_wait(last, lease_clock::time_point::max(), [&](woken) { log.push_back("last woken"); });
    on.release_held(holder);
    const std::vector<std::string> expected{"granted", "last woken", "released"};
    BOOST_TEST(log == expected, boost::test_tools::per_element());
    on.release_held(last);
}

BOOST_AUTO_TEST_CASE(break_notifies_each_holder_and_grants_to_the_front)
{
    const auto first = driver::shared("k"), second = driver::shared("k"), writer = driver::exclusive("k");
    const auto behind = driver::exclusive("k");
    on.grant(first);
    on.grant(second);
    on.refuse(writer);
    on.refuse(behind);
    const auto writer_woken = start_wait(writer);
    BOOST_TEST(on.break_key("k").size() == 2U);
    BOOST_TEST(first->losses == std::vector{lost_reason::broken}, boost::test_tools::per_element());
    BOOST_TEST(second->losses == std::vector{lost_reason::broken}, boost::test_tools::per_element());
    BOOST_TEST(writer->losses.empty());
    BOOST_TEST(*writer_woken);
    // A grant that has not been fetched is broken too. Its claim queues again with its next create.
    BOOST_TEST(on.break_key("k").size() == 1U);
    on.check_held(behind);
    on.refuse(writer);
    on.release_held(behind);
    on.release_held(writer);
}

BOOST_AUTO_TEST_CASE(destroying_the_adapter_destroys_waits_and_claims)
{
    auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    const std::vector watches{driver::watch(holder), driver::watch(next)};
    {
        driver brief(io, memory::make_adapter(io.get_executor()));
        brief.grant(holder);
        brief.refuse(next);
        // The completion owns its claim, like the completions of the core.
        brief.backend().start_wait(next, lease_clock::time_point::max(), [next](woken) {});
        holder.reset();
        next.reset();
        BOOST_TEST(destroyed_count(watches) == 0);
    }
    BOOST_TEST(destroyed_count(watches) == 2);
}

BOOST_AUTO_TEST_CASE(context_shutdown_destroys_waits)
{
    auto brief = std::make_unique<asio::io_context>();
    const driver other(*brief, memory::make_adapter(brief->get_executor()));
    const auto holder = driver::exclusive("k");
    auto next = driver::exclusive("k");
    const auto watch = driver::watch(next);
    other.grant(holder);
    other.refuse(next);
    bool was_woken = false;
    other.backend().start_wait(next, lease_clock::time_point::max(), [&was_woken, next](woken) { was_woken = true; });
    next.reset();
    BOOST_TEST(!watch.expired());
    brief.reset();
    BOOST_TEST(watch.expired());
    BOOST_TEST(!was_woken);
}

BOOST_AUTO_TEST_SUITE_END()
