// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace colock::contract {

// Several locks in one step. Their keys have the same hash tag: a cluster grants only such keys in one step.

namespace {

using claims = std::vector<plain_claim_ptr>;

claims make_exclusive_claims(const std::vector<std::string>& keys, std::chrono::milliseconds ttl = driver::long_ttl)
{
    claims made;
    for (const auto& key : keys)
        made.push_back(driver::exclusive(key, ttl));
    return made;
}

void release_all(const fixture& env, const claims& held)
{
    for (const auto& each : held)
        env.release_held(each);
}

} // namespace

COLOCK_CONTRACT_CASE(adapter, several_free_locks_are_granted_together, &capabilities::create_all)
{
    const auto all = make_exclusive_claims({"{t}a", "{t}b", "{t}c"});
    for (const auto fence : env.grant_all(all))
        BOOST_TEST((fence > 0) == env.capabilities().fence);
    for (const auto& each : all) {
        env.check_held(each);
        env.check_refused(env.one_attempt(each->key()));
        env.release_held(each);
        env.check_not_held(each);
    }
    BOOST_TEST(env.grant_all({}).empty());
    const auto alone = make_exclusive_claims({"{t}a"});
    env.grant_all(alone);
    env.release_held(alone.front());
}

COLOCK_CONTRACT_CASE(adapter, one_busy_lock_of_several_prevents_all_grants, &capabilities::create_all)
{
    const std::vector<std::string> keys{"{t}a", "{t}b", "{t}c"};
    for (std::size_t taken = 0; taken < keys.size(); ++taken) {
        const auto holder = env.exclusive(keys[taken], env.short_ttl() * 100);
        env.grant(holder);
        const auto all = make_exclusive_claims(keys);
        const auto outcome = env.check_all_refused(all);
        BOOST_TEST(outcome.which == taken);
        BOOST_TEST((outcome.refusal.status == create_status::busy));
        BOOST_TEST((outcome.refusal.retry_after <= env.short_ttl() * 100));
        for (std::size_t i = 0; i < keys.size(); ++i) {
            env.check_not_held(all[i]);
            if (i == taken)
                continue;
            const auto other = env.one_attempt(keys[i]);
            env.grant(other);
            env.release_held(other);
        }
        env.check_held(holder);
        env.release_held(holder);
        env.grant_all(all);
        release_all(env, all);
    }
}

COLOCK_CONTRACT_CASE(adapter, refused_request_for_several_locks_names_the_holder, &capabilities::create_all)
{
    const plain_claim_ptr holder = new plain_claim({.key = "{t}b",
        .ttl = driver::long_ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = "someone", .host = "far"})});
    env.grant(holder);
    const auto all = make_exclusive_claims({"{t}a", "{t}b"});
    const auto why = env.check_all_refused(all).refusal;
    BOOST_TEST(why.holder == "someone");
    BOOST_TEST((why.holder_host.empty() || why.holder_host == "far"));
    // A lock that does not expire by itself has no time after which to try again.
    if (env.capabilities().expires)
        BOOST_TEST((why.retry_after > driver::long_ttl / 2));
    env.release_held(holder);
}

COLOCK_CONTRACT_CASE(
    adapter, fences_of_several_locks_exceed_all_earlier_fences, &capabilities::create_all, &capabilities::fence)
{
    const std::vector<std::string> keys{"{t}a", "{t}b", "{t}c"};
    std::vector<std::uint64_t> before(keys.size());
    for (int i = 0; i < 3; ++i) {
        const auto all = make_exclusive_claims(keys);
        const auto fences = env.grant_all(all);
        for (std::size_t k = 0; k < keys.size(); ++k)
            BOOST_TEST(fences[k] > before[k]);
        release_all(env, all);
        for (std::size_t k = 0; k < keys.size(); ++k) {
            const auto single = env.exclusive(keys[k]);
            before[k] = env.grant(single);
            BOOST_TEST(before[k] > fences[k]);
            env.release_held(single);
        }
    }
}

COLOCK_CONTRACT_CASE(adapter, several_held_locks_are_granted_again, &capabilities::create_all)
{
    const auto all = make_exclusive_claims({"{t}a", "{t}b", "{t}c"});
    const auto first = env.grant_all(all);
    BOOST_TEST(env.extend(all[1], env.short_ttl()).status == extend_status::extended);
    const auto second = env.grant_all(all);
    for (std::size_t i = 0; i < all.size(); ++i)
        BOOST_TEST(second[i] >= first[i]);
    // The locks have a new TTL.
    env.pass_time(env.short_ttl() * 11 / 10);
    for (const auto& each : all)
        env.check_held(each);
    release_all(env, all);
    // One of them is already held by a separate request.
    env.grant(all[0]);
    env.grant_all(all);
    for (const auto& each : all) {
        env.check_held(each);
        env.release_held(each);
        env.check_not_held(each);
    }
}

COLOCK_CONTRACT_CASE(adapter, several_refused_claims_keep_their_earlier_grants, &capabilities::create_all)
{
    const auto all = make_exclusive_claims({"{t}a", "{t}b"});
    const auto holder = env.exclusive("{t}b");
    env.grant(holder);
    env.grant(all[0]);
    BOOST_TEST(env.check_all_refused(all).which == 1U);
    env.check_held(all[0]);
    env.release_held(all[0]);
    env.release_held(holder);
}

COLOCK_CONTRACT_CASE(
    adapter, several_claims_wait_until_all_readers_have_released, &capabilities::create_all, &capabilities::shared)
{
    const auto reader = env.shared("{t}b"), second = env.shared("{t}b");
    env.grant(reader);
    env.grant(second);
    const auto all = make_exclusive_claims({"{t}a", "{t}b"});
    BOOST_TEST(env.check_all_refused(all).which == 1U);
    env.release_held(reader);
    BOOST_TEST(env.check_all_refused(all).which == 1U);
    env.release_held(second);
    env.grant_all(all);
    release_all(env, all);
}

/// A claim that kept its queue place for one key while it lacks another key could cause a deadlock.
COLOCK_CONTRACT_CASE(
    adapter, several_refused_claims_keep_no_queue_place_and_block_no_other_claim, &capabilities::create_all)
{
    const auto mode = env.capabilities().shared ? lock_mode::shared : lock_mode::exclusive;
    const auto holder = mode == lock_mode::shared ? env.shared("{t}b") : env.exclusive("{t}b");
    env.grant(holder);
    const auto all = make_exclusive_claims({"{t}a", "{t}b"});
    BOOST_TEST(env.check_all_refused(all).which == 1U);
    if (mode == lock_mode::shared) {
        const auto second = env.shared("{t}b");
        env.grant(second);
        env.release_held(second);
    }
    env.release_held(holder);
    const auto next = env.exclusive("{t}b");
    env.grant(next);
    env.release_held(next);
    for (const auto& each : all)
        env.check_not_held(each);
}

COLOCK_CONTRACT_CASE(adapter, several_locks_are_granted_after_the_holders_have_expired, &capabilities::create_all,
    &capabilities::expires)
{
    const auto expired = env.exclusive("{t}a", env.short_ttl());
    env.grant(expired);
    const auto reader =
        env.capabilities().shared ? env.shared("{t}b", 0, env.short_ttl()) : env.exclusive("{t}b", env.short_ttl());
    env.grant(reader);
    const auto another =
        env.capabilities().shared ? env.shared("{t}b", 0, env.short_ttl()) : env.exclusive("{t}d", env.short_ttl());
    env.grant(another);
    env.pass_time(env.short_ttl());
    const auto all = make_exclusive_claims({"{t}a", "{t}b", "{t}c"});
    env.grant_all(all);
    env.check_not_held(expired);
    env.check_not_held(reader);
    release_all(env, all);
}

COLOCK_CONTRACT_CASE(adapter, each_of_several_locks_has_its_own_ttl, &capabilities::create_all, &capabilities::expires)
{
    const auto brief = env.exclusive("{t}a", env.short_ttl()), lasting = env.exclusive("{t}b");
    env.grant_all({brief, lasting});
    env.pass_time(env.short_ttl());
    env.check_not_held(brief);
    env.check_held(lasting);
    env.release_held(lasting);
    if (!env.capabilities().no_ttl)
        return;
    const auto eternal = env.exclusive("{t}b", 0ms);
    env.grant_all({brief, eternal});
    env.pass_time(env.short_ttl());
    env.check_not_held(brief);
    env.check_held(eternal);
    env.release_held(eternal);
}

COLOCK_CONTRACT_CASE(adapter, several_refused_claims_can_be_created_one_by_one, &capabilities::create_all)
{
    const auto holder = env.exclusive("{t}b");
    env.grant(holder);
    const auto all = make_exclusive_claims({"{t}a", "{t}b"});
    BOOST_TEST(env.check_all_refused(all).which == 1U);
    env.grant(all[0]);
    env.check_refused(all[1]);
    env.release_held(holder);
    env.grant(all[1]);
    // Locks that were granted together can also be requested one by one.
    release_all(env, all);
    const auto together = make_exclusive_claims({"{t}a", "{t}b"});
    const auto fences = env.grant_all(together);
    for (std::size_t i = 0; i < together.size(); ++i)
        BOOST_TEST(env.grant(together[i]) >= fences[i]);
    release_all(env, together);
}

COLOCK_CONTRACT_CASE(adapter, concurrent_requests_for_the_same_keys_are_never_both_granted, &capabilities::create_all)
{
    const auto other = env.another();
    for (int round = 0; round < 20; ++round) {
        const auto mine = make_exclusive_claims({"{t}a", "{t}b", "{t}c"}),
                   theirs = make_exclusive_claims({"{t}c", "{t}b", "{t}a"});
        std::vector<create_status> answers;
        for (const auto* each : {&mine, &theirs}) {
            std::vector<claim_ptr> sent;
            for (const auto& claim : *each)
                sent.push_back(testing::sent_now(claim));
            auto& backend = each == &mine ? env.backend() : other.backend();
            backend.start_create_all(
                std::move(sent), [&](create_all_outcome outcome) { answers.push_back(outcome.status); });
        }
        testing::run_until(env.io(), [&] { return answers.size() == 2; });
        BOOST_TEST(std::count(answers.begin(), answers.end(), create_status::granted) == 1);
        std::size_t held = 0;
        for (const auto& each : mine)
            held += env.valid(each).valid ? 1 : 0;
        BOOST_TEST((held == 0U || held == 3U));
        for (const auto& each : mine)
            env.abandon(each);
        for (const auto& each : theirs)
            other.abandon(each);
    }
}

} // namespace colock::contract
