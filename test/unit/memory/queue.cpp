// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "memory/store.hpp"
#include "support/driver.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"

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
    const auto fence = env.grant(holder);
    env.check_refused(next);
    env.check_refused(later);
    const auto next_woken = start_wait(next), later_woken = start_wait(later);
    BOOST_TEST(!*next_woken);

    env.release_held(holder);
    BOOST_TEST(*next_woken);
    BOOST_TEST(!*later_woken);
    // The lock is held before the next create fetches the grant.
    env.check_held(next);
    env.check_refused(driver::one_attempt("k"));
    BOOST_TEST(env.grant(next) > fence);
    env.release_held(next);
    BOOST_TEST(*later_woken);
    env.release_held(later);
    BOOST_TEST(env.list().empty());
}

BOOST_AUTO_TEST_CASE(ttl_of_a_direct_grant_starts_at_the_hand_over_and_again_at_its_create)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k", ttl);
    env.grant(holder);
    env.check_refused(next);
    virtual_clock::skip(1min);
    env.release_held(holder);
    virtual_clock::skip(ttl - 1s);
    env.check_held(next);
    const auto fence = env.inspect("k").at(0).fence;
    BOOST_TEST(env.grant(next) == fence);
    virtual_clock::skip(ttl - 1s);
    env.check_held(next);
    virtual_clock::skip(1s);
    env.check_not_held(next);
}

BOOST_AUTO_TEST_CASE(unfetched_grant_expires_after_its_ttl)
{
    const auto holder = driver::exclusive("k"), dead = driver::exclusive("k", ttl), next = driver::exclusive("k");
    env.grant(holder);
    env.check_refused(dead);
    env.check_refused(next);
    env.release_held(holder);
    const auto retry_after = env.check_refused(next).retry_after;
    BOOST_TEST((retry_after > ttl - 1s && retry_after <= ttl));
    virtual_clock::skip(retry_after);
    env.grant(next);
    // The create is too late, so the claim queues again at the end.
    env.check_refused(dead);
    env.abandon(dead);
    env.release_held(next);
}

BOOST_AUTO_TEST_CASE(destroyed_claim_leaves_the_queue)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    auto dead = driver::exclusive("k");
    env.grant(holder);
    env.check_refused(dead);
    env.check_refused(next);
    dead.reset();
    env.release_held(holder);
    env.grant(next);
    env.release_held(next);
}

BOOST_AUTO_TEST_CASE(destroyed_claim_releases_its_unfetched_grant)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    auto dead = driver::exclusive("k", 0ms);
    env.grant(holder);
    env.check_refused(dead);
    env.check_refused(next);
    env.release_held(holder);
    env.check_held(dead);
    const auto next_woken = start_wait(next);
    dead.reset();
    BOOST_TEST(*next_woken);
    env.release_held(next);
    BOOST_TEST(env.list().empty());
}

BOOST_AUTO_TEST_CASE(destroyed_exclusive_claim_unblocks_the_shared_claims_behind_it)
{
    const auto reader = driver::shared("k"), next_reader = driver::shared("k");
    auto writer = driver::exclusive("k");
    env.grant(reader);
    env.check_refused(writer);
    env.check_refused(next_reader);
    const auto next_woken = start_wait(next_reader);
    writer.reset();
    BOOST_TEST(*next_woken);
    env.grant(next_reader);
    env.release_held(next_reader);
    env.release_held(reader);
}

BOOST_AUTO_TEST_CASE(all_shared_claims_at_the_front_are_granted)
{
    const auto writer = driver::exclusive("k"), second_writer = driver::exclusive("k");
    const auto first = driver::shared("k"), second = driver::shared("k"), third = driver::shared("k");
    env.grant(writer);
    env.check_refused(first);
    env.check_refused(second);
    env.check_refused(second_writer);
    env.check_refused(third);
    env.release_held(writer);
    env.check_held(first);
    env.check_held(second);
    env.check_not_held(second_writer);
    env.check_not_held(third);
    env.release_held(second);
    env.check_not_held(second_writer);
    env.release_held(first);
    env.check_held(second_writer);
    env.release_held(second_writer);
    env.check_held(third);
    env.release_held(third);
}

BOOST_AUTO_TEST_CASE(semaphore_grants_up_to_its_limit)
{
    const auto writer = driver::exclusive("k");
    const std::vector waiting{driver::shared("k", 2), driver::shared("k", 2), driver::shared("k", 2)};
    env.grant(writer);
    for (const auto& claim : waiting)
        env.check_refused(claim);
    env.release_held(writer);
    env.check_held(waiting[0]);
    env.check_held(waiting[1]);
    env.check_not_held(waiting[2]);
    env.release_held(waiting[1]);
    env.check_held(waiting[2]);
    env.release_held(waiting[0]);
    env.release_held(waiting[2]);
}

BOOST_AUTO_TEST_CASE(semaphore_claim_overtakes_claims_with_reached_limits)
{
    const auto first = driver::shared("k", 1), small = driver::shared("k", 1), larger = driver::shared("k", 3);
    const auto writer = driver::exclusive("k"), behind = driver::shared("k", 4);
    env.grant(first);
    env.check_refused(small);
    // The larger limit is granted at once; the claim with the smaller limit still waits.
    env.grant(larger);
    env.check_not_held(small);
    const auto full = driver::shared("k", 2);
    env.check_refused(full);
    const auto full_woken = start_wait(full), small_woken = start_wait(small);
    env.release_held(larger);
    // The claim is queued behind the smaller limit, but receives the lock nevertheless.
    BOOST_TEST(*full_woken);
    BOOST_TEST(!*small_woken);
    env.check_held(full);
    // No claim overtakes an exclusive claim, whatever the limit.
    env.check_refused(writer);
    env.check_refused(behind);
    env.release_held(first);
    env.check_not_held(behind);
    env.release_held(full);
    env.check_held(small);
    env.check_not_held(writer);
    env.abandon(writer);
    env.check_held(behind);
    env.release_held(small);
    env.release_held(behind);
    BOOST_TEST(env.list().empty());
}

BOOST_AUTO_TEST_CASE(expiry_wakes_no_waiter_and_the_next_operation_grants_to_the_front)
{
    const auto holder = driver::exclusive("k", ttl), front = driver::exclusive("k"), behind = driver::exclusive("k");
    env.grant(holder);
    env.check_refused(front);
    env.check_refused(behind);
    const auto front_woken = start_wait(front);
    virtual_clock::skip(2 * ttl);
    BOOST_TEST(!*front_woken);
    env.check_refused(behind);
    BOOST_TEST(*front_woken);
    env.release_held(front);
    env.release_held(behind);
}

BOOST_AUTO_TEST_CASE(retry_after_is_the_time_to_the_relevant_expiry)
{
    const auto near = [](lease_clock::duration actual, lease_clock::duration expected) {
        return actual > expected - 1s && actual <= expected;
    };
    const auto brief = driver::shared("k", 0, ttl), longer = driver::shared("k", 0, 3 * ttl);
    env.grant(brief);
    env.grant(longer);
    BOOST_TEST(near(env.check_refused(driver::one_attempt("k")).retry_after, 3 * ttl));
    const claim_ptr semaphore =
        new plain_claim({.key = "k", .mode = lock_mode::shared, .max_holders = 2, .keeps_place = false});
    BOOST_TEST(near(env.check_refused(semaphore).retry_after, ttl));
    env.extend(longer, 0ms);
    BOOST_TEST(env.check_refused(driver::one_attempt("k")).retry_after.count() == 0);
    env.release_held(brief);
    env.release_held(longer);
}

BOOST_AUTO_TEST_CASE(a_wait_of_a_claim_that_does_not_queue_ends_at_once)
{
    const auto holder = driver::exclusive("k"), not_queued = driver::exclusive("k");
    env.grant(holder);
    BOOST_TEST(*start_wait(holder));
    BOOST_TEST(*start_wait(not_queued));
    env.release_held(holder);
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_keeps_the_place)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    env.grant(holder);
    env.check_refused(next);
    const auto next_woken = start_wait(next);
    env.backend().cancel_wait(*next);
    // A cancellation without a wait has no effect.
    env.backend().cancel_wait(*next);
    env.backend().cancel_wait(*holder);
    env.release_held(holder);
    BOOST_TEST(!*next_woken);
    env.check_held(next);
    env.release_held(next);
}

BOOST_AUTO_TEST_CASE(a_completion_may_use_the_adapter)
{
    const auto holder = driver::exclusive("k"), next = driver::exclusive("k"), last = driver::exclusive("k");
    env.grant(holder);
    env.check_refused(next);
    env.check_refused(last);
    std::vector<std::string> log;
    auto& backend = env.backend();
    backend.start_wait(next, lease_clock::time_point::max(), [&](wait_outcome) {
        backend.start_create(next, [&](create_outcome created) {
            log.push_back(created.status == create_status::granted ? "granted" : "not granted");
            backend.start_release(
                next, release_guarantee::released, [&](release_outcome) { log.push_back("released"); });
        });
    });
    backend.start_wait(last, lease_clock::time_point::max(), [&](wait_outcome) { log.push_back("last woken"); });
    env.release_held(holder);
    const std::vector<std::string> expected{"granted", "last woken", "released"};
    BOOST_TEST(log == expected, boost::test_tools::per_element());
    env.release_held(last);
}

BOOST_AUTO_TEST_CASE(break_notifies_each_holder_and_grants_to_the_front)
{
    const auto first = driver::shared("k"), second = driver::shared("k"), writer = driver::exclusive("k");
    const auto behind = driver::exclusive("k");
    env.grant(first);
    env.grant(second);
    env.check_refused(writer);
    env.check_refused(behind);
    const auto writer_woken = start_wait(writer);
    BOOST_TEST(env.break_key("k").size() == 2U);
    BOOST_TEST(first->losses == std::vector{lost_reason::broken}, boost::test_tools::per_element());
    BOOST_TEST(second->losses == std::vector{lost_reason::broken}, boost::test_tools::per_element());
    BOOST_TEST(writer->losses.empty());
    BOOST_TEST(*writer_woken);
    // A grant that has not been fetched is broken too. Its claim queues again with its next create.
    BOOST_TEST(env.break_key("k").size() == 1U);
    env.check_held(behind);
    env.check_refused(writer);
    env.release_held(behind);
    env.release_held(writer);
}

BOOST_AUTO_TEST_CASE(destroying_the_adapter_destroys_waits_and_claims)
{
    auto holder = driver::exclusive("k"), next = driver::exclusive("k");
    const std::vector watches{driver::watch(holder), driver::watch(next)};
    {
        driver brief(io, memory::make_adapter(io.get_executor()));
        brief.grant(holder);
        brief.check_refused(next);
        // The completion owns its claim, like the completions of the core.
        brief.backend().start_wait(next, lease_clock::time_point::max(), [next](wait_outcome) {});
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
    other.check_refused(next);
    bool was_woken = false;
    other.backend().start_wait(
        next, lease_clock::time_point::max(), [&was_woken, next](wait_outcome) { was_woken = true; });
    next.reset();
    BOOST_TEST(!watch.expired());
    brief.reset();
    BOOST_TEST(watch.expired());
    BOOST_TEST(!was_woken);
}

BOOST_AUTO_TEST_SUITE_END()
