// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace colock::contract {

// Several locks in one step.

namespace {

using claims = std::vector<plain_claim_ptr>;

claims make_exclusive_claims(const std::vector<std::string>& keys, std::chrono::milliseconds ttl = driver::long_ttl)
{
    claims made;
    for (const auto& key : keys)
        made.push_back(driver::exclusive(key, ttl));
    return made;
}

void give_all_back(const subject& on, const claims& held)
{
    for (const auto& each : held)
        on.release_held(each);
}

} // namespace

COLOCK_CONTRACT_CASE(adapter, several_free_locks_are_granted_together, &capabilities::several)
{
    const auto all = make_exclusive_claims({"a", "b", "c"});
    for (const auto fence : on.grant_all(all))
        BOOST_TEST((fence > 0) == on.able().fence);
    for (const auto& each : all) {
        on.check_held(each);
        on.refuse(on.one_attempt(each->key()));
        on.release_held(each);
        on.check_not_held(each);
    }
    BOOST_TEST(on.grant_all({}).empty());
    const auto alone = make_exclusive_claims({"a"});
    on.grant_all(alone);
    on.release_held(alone.front());
}

COLOCK_CONTRACT_CASE(adapter, one_busy_lock_of_several_prevents_all_grants, &capabilities::several)
{
    const std::vector<std::string> keys{"a", "b", "c"};
    for (std::size_t taken = 0; taken < keys.size(); ++taken) {
        const auto holder = on.exclusive(keys[taken], on.short_ttl() * 100);
        on.grant(holder);
        const auto all = make_exclusive_claims(keys);
        const auto outcome = on.refuse_all(all);
        BOOST_TEST(outcome.which == taken);
        BOOST_TEST((outcome.why.status == create_status::busy));
        BOOST_TEST((outcome.why.retry_after <= on.short_ttl() * 100));
        for (std::size_t i = 0; i < keys.size(); ++i) {
            on.check_not_held(all[i]);
            if (i == taken)
                continue;
            const auto other = on.one_attempt(keys[i]);
            on.grant(other);
            on.release_held(other);
        }
        on.check_held(holder);
        on.release_held(holder);
        on.grant_all(all);
        give_all_back(on, all);
    }
}

COLOCK_CONTRACT_CASE(adapter, refusal_of_several_names_the_holder, &capabilities::several)
{
    const plain_claim_ptr holder = new plain_claim({.key = "b",
        .ttl = driver::long_ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = "someone"})});
    on.grant(holder);
    const auto all = make_exclusive_claims({"a", "b"});
    const auto why = on.refuse_all(all).why;
    BOOST_TEST(why.holder == "someone");
    BOOST_TEST((why.retry_after > driver::long_ttl / 2));
    on.release_held(holder);
}

COLOCK_CONTRACT_CASE(adapter, fences_of_several_exceed_all_earlier_fences, &capabilities::several, &capabilities::fence)
{
    const std::vector<std::string> keys{"a", "b", "c"};
    std::vector<std::uint64_t> before(keys.size());
    for (int i = 0; i < 3; ++i) {
        const auto all = make_exclusive_claims(keys);
        const auto fences = on.grant_all(all);
        for (std::size_t k = 0; k < keys.size(); ++k)
            BOOST_TEST(fences[k] > before[k]);
        give_all_back(on, all);
        for (std::size_t k = 0; k < keys.size(); ++k) {
            const auto single = on.exclusive(keys[k]);
            before[k] = on.grant(single);
            BOOST_TEST(before[k] > fences[k]);
            on.release_held(single);
        }
    }
}

COLOCK_CONTRACT_CASE(adapter, several_held_locks_are_granted_again, &capabilities::several)
{
    const auto all = make_exclusive_claims({"a", "b", "c"});
    const auto first = on.grant_all(all);
    BOOST_TEST(on.extend(all[1], on.short_ttl()).status == extend_status::extended);
    const auto second = on.grant_all(all);
    for (std::size_t i = 0; i < all.size(); ++i)
        BOOST_TEST(second[i] >= first[i]);
    // The locks have a new TTL.
    on.pass_time(on.short_ttl() * 11 / 10);
    for (const auto& each : all)
        on.check_held(each);
    give_all_back(on, all);
    // One of them is already held by a separate request.
    on.grant(all[0]);
    on.grant_all(all);
    for (const auto& each : all) {
        on.check_held(each);
        on.release_held(each);
        on.check_not_held(each);
    }
}

COLOCK_CONTRACT_CASE(adapter, several_refused_claims_keep_their_earlier_grants, &capabilities::several)
{
    const auto all = make_exclusive_claims({"a", "b"});
    const auto holder = on.exclusive("b");
    on.grant(holder);
    on.grant(all[0]);
    BOOST_TEST(on.refuse_all(all).which == 1U);
    on.check_held(all[0]);
    on.release_held(all[0]);
    on.release_held(holder);
}

COLOCK_CONTRACT_CASE(adapter, several_wait_for_readers_to_leave, &capabilities::several, &capabilities::shared)
{
    const auto reader = on.shared("b"), second = on.shared("b");
    on.grant(reader);
    on.grant(second);
    const auto all = make_exclusive_claims({"a", "b"});
    BOOST_TEST(on.refuse_all(all).which == 1U);
    on.release_held(reader);
    BOOST_TEST(on.refuse_all(all).which == 1U);
    on.release_held(second);
    on.grant_all(all);
    give_all_back(on, all);
}

/// A claim that kept its queue place for one key while it lacks another key could cause a deadlock.
COLOCK_CONTRACT_CASE(adapter, several_refused_claims_leave_no_queue_place_and_block_nobody, &capabilities::several)
{
    const auto mode = on.able().shared ? lock_mode::shared : lock_mode::exclusive;
    const auto holder = mode == lock_mode::shared ? on.shared("b") : on.exclusive("b");
    on.grant(holder);
    const auto all = make_exclusive_claims({"a", "b"});
    BOOST_TEST(on.refuse_all(all).which == 1U);
    if (mode == lock_mode::shared) {
        const auto second = on.shared("b");
        on.grant(second);
        on.release_held(second);
    }
    on.release_held(holder);
    const auto next = on.exclusive("b");
    on.grant(next);
    on.release_held(next);
    for (const auto& each : all)
        on.check_not_held(each);
}

COLOCK_CONTRACT_CASE(
    adapter, several_are_granted_after_the_holders_have_expired, &capabilities::several, &capabilities::expires)
{
    const auto expired = on.exclusive("a", on.short_ttl());
    on.grant(expired);
    const auto reader = on.able().shared ? on.shared("b", 0, on.short_ttl()) : on.exclusive("b", on.short_ttl());
    on.grant(reader);
    const auto another = on.able().shared ? on.shared("b", 0, on.short_ttl()) : on.exclusive("d", on.short_ttl());
    on.grant(another);
    on.pass_time(on.short_ttl());
    const auto all = make_exclusive_claims({"a", "b", "c"});
    on.grant_all(all);
    on.check_not_held(expired);
    on.check_not_held(reader);
    give_all_back(on, all);
}

COLOCK_CONTRACT_CASE(adapter, each_of_several_has_its_own_ttl, &capabilities::several, &capabilities::expires)
{
    const auto brief = on.exclusive("a", on.short_ttl()), lasting = on.exclusive("b");
    on.grant_all({brief, lasting});
    on.pass_time(on.short_ttl());
    on.check_not_held(brief);
    on.check_held(lasting);
    on.release_held(lasting);
    if (!on.able().no_ttl)
        return;
    const auto eternal = on.exclusive("b", 0ms);
    on.grant_all({brief, eternal});
    on.pass_time(on.short_ttl());
    on.check_not_held(brief);
    on.check_held(eternal);
    on.release_held(eternal);
}

COLOCK_CONTRACT_CASE(adapter, several_refused_claims_can_be_created_one_by_one, &capabilities::several)
{
    const auto holder = on.exclusive("b");
    on.grant(holder);
    const auto all = make_exclusive_claims({"a", "b"});
    BOOST_TEST(on.refuse_all(all).which == 1U);
    on.grant(all[0]);
    on.refuse(all[1]);
    on.release_held(holder);
    on.grant(all[1]);
    // Locks that were granted together can also be requested one by one.
    give_all_back(on, all);
    const auto together = make_exclusive_claims({"a", "b"});
    const auto fences = on.grant_all(together);
    for (std::size_t i = 0; i < together.size(); ++i)
        BOOST_TEST(on.grant(together[i]) >= fences[i]);
    give_all_back(on, together);
}

COLOCK_CONTRACT_CASE(adapter, concurrent_requests_for_the_same_keys_are_never_both_granted, &capabilities::several)
{
    const auto other = on.another();
    for (int round = 0; round < 20; ++round) {
        const auto mine = make_exclusive_claims({"a", "b", "c"}), theirs = make_exclusive_claims({"c", "b", "a"});
        std::vector<create_status> answers;
        for (const auto* each : {&mine, &theirs}) {
            std::vector<claim_ptr> sent;
            for (const auto& claim : *each)
                sent.push_back(testing::sent_now(claim));
            auto& backend = each == &mine ? on.backend() : other.backend();
            backend.start_create_all(
                std::move(sent), [&](create_all_outcome outcome) { answers.push_back(outcome.status); });
        }
        testing::run_until(on.io(), [&] { return answers.size() == 2; });
        BOOST_TEST(std::count(answers.begin(), answers.end(), create_status::granted) == 1);
        std::size_t held = 0;
        for (const auto& each : mine)
            held += on.valid(each).valid ? 1 : 0;
        BOOST_TEST((held == 0U || held == 3U));
        for (const auto& each : mine)
            on.abandon(each);
        for (const auto& each : theirs)
            other.abandon(each);
    }
}

} // namespace colock::contract
