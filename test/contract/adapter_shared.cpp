// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Shared locks and semaphores.
#include "contract.hpp"

#include <vector>

namespace colock::contract {

COLOCK_CONTRACT_CASE(adapter, shared_holders_share_and_exclude_exclusive_ones, &capabilities::shared)
{
    const auto first = env.shared("k"), second = env.shared("k"), writer = env.one_attempt("k");
    env.grant(first);
    env.grant(second);
    env.check_refused(writer);
    env.release_held(first);
    env.check_refused(writer);
    env.release_held(second);
    env.grant(writer);
    env.check_refused(env.one_attempt("k", lock_mode::shared));
    env.release_held(writer);
    const auto third = env.shared("k");
    env.grant(third);
    env.release_held(third);
}

COLOCK_CONTRACT_CASE(adapter, a_shared_holder_is_found_again, &capabilities::shared)
{
    const auto first = env.shared("k", 2), second = env.shared("k", 2);
    env.grant(first);
    env.grant(first);
    env.grant(second);
    env.grant(second);
    env.release_held(first);
    env.check_not_held(first);
    BOOST_TEST(env.release(first).status == release_status::not_held);
    env.check_held(second);
    env.release_held(second);
}

COLOCK_CONTRACT_CASE(adapter, each_shared_holder_has_its_own_expiry, &capabilities::shared, &capabilities::expires)
{
    const auto brief = env.shared("k", 0, env.short_ttl()), lasting = env.shared("k");
    env.grant(brief);
    env.grant(lasting);
    env.pass_time(env.short_ttl());
    env.check_not_held(brief);
    env.check_held(lasting);
    env.check_refused(env.one_attempt("k"));
    BOOST_TEST(env.extend(brief, env.long_ttl).status == extend_status::not_held);
    BOOST_TEST(env.release(brief).status == release_status::not_held);
    env.release_held(lasting);
}

COLOCK_CONTRACT_CASE(
    adapter, extending_one_shared_holder_leaves_the_others, &capabilities::shared, &capabilities::expires)
{
    const auto brief = env.shared("k", 0, env.short_ttl()), extended = env.shared("k", 0, env.short_ttl());
    env.grant(brief);
    env.grant(extended);
    BOOST_TEST(env.extend(extended, env.long_ttl).status == extend_status::extended);
    env.pass_time(env.short_ttl());
    env.check_not_held(brief);
    env.check_held(extended);
    BOOST_TEST(env.extend(extended, env.short_ttl()).status == extend_status::extended);
    env.pass_time(env.short_ttl());
    env.check_not_held(extended);
}

COLOCK_CONTRACT_CASE(
    adapter, crashed_reader_does_not_block_a_writer_forever, &capabilities::shared, &capabilities::expires)
{
    const auto crashed = env.shared("k", 0, env.short_ttl()), writer = env.exclusive("k");
    env.grant(crashed);
    env.check_refused(writer);
    env.pass_time(env.short_ttl());
    env.grant(writer);
    env.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, readers_queue_behind_a_waiting_writer, &capabilities::shared)
{
    const auto reader = env.shared("k"), writer = env.exclusive("k"), late = env.shared("k");
    env.grant(reader);
    env.check_refused(writer);
    env.check_refused(late);
    env.check_refused(env.one_attempt("k", lock_mode::shared));
    env.release_held(reader);
    env.grant(writer);
    env.check_refused(late);
    env.release_held(writer);
    env.grant(late);
    env.release_held(late);
}

COLOCK_CONTRACT_CASE(adapter, a_single_attempt_of_a_writer_stops_no_readers, &capabilities::shared)
{
    const auto reader = env.shared("k"), late = env.shared("k");
    env.grant(reader);
    env.check_refused(env.one_attempt("k"));
    env.grant(late);
    env.release_held(reader);
    env.release_held(late);
}

COLOCK_CONTRACT_CASE(adapter, a_writer_that_gave_up_stops_no_readers, &capabilities::shared)
{
    const auto reader = env.shared("k"), writer = env.exclusive("k"), late = env.shared("k");
    env.grant(reader);
    env.check_refused(writer);
    env.check_refused(late);
    env.abandon(writer);
    env.grant(late);
    env.release_held(reader);
    env.release_held(late);
}

COLOCK_CONTRACT_CASE(adapter, a_semaphore_admits_up_to_each_claims_own_limit, &capabilities::semaphore)
{
    const auto first = env.shared("k", 2), second = env.shared("k", 2);
    const auto third = env.shared("k", 3), unlimited = env.shared("k");
    const auto single = [](std::size_t limit) -> claim_ptr {
        return new plain_claim({.key = "k", .mode = lock_mode::shared, .max_holders = limit, .keeps_place = false});
    };
    env.grant(first);
    env.grant(second);
    env.check_refused(single(1));
    env.check_refused(single(2));
    env.grant(third);
    env.check_refused(single(3));
    env.grant(unlimited);
    env.release_held(first);
    env.release_held(second);
    const auto again = single(3);
    env.grant(again);
    env.check_refused(env.one_attempt("k"));
    env.release_held(again);
    env.release_held(third);
    env.release_held(unlimited);
}

COLOCK_CONTRACT_CASE(
    adapter, an_expired_holder_frees_its_place_in_a_semaphore, &capabilities::semaphore, &capabilities::expires)
{
    const auto brief = env.shared("k", 2, env.short_ttl()), lasting = env.shared("k", 2), next = env.shared("k", 2);
    env.grant(brief);
    env.grant(lasting);
    env.check_refused(next);
    env.pass_time(env.short_ttl());
    env.grant(next);
    env.release_held(lasting);
    env.release_held(next);
}

} // namespace colock::contract
