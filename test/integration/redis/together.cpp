// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "served.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>
#include <vector>

namespace colock::testing {

namespace {

/// Releases all locks concurrently and returns the outcomes.
std::vector<release_outcome> release_together(served& f, const std::vector<plain_claim_ptr>& held)
{
    std::vector<running<release_outcome>> under_way;
    for (const auto& each : held)
        under_way.push_back(start(f.io, f.test_driver->backend().release(sent_now(each), release_guarantee::released)));
    std::vector<release_outcome> ended;
    for (auto& each : under_way)
        ended.push_back(each.get(f.io));
    return ended;
}

/// Deletes lock 3, gives lock 7 to another holder, and stores a value of another program under the key of lock 11.
void lose_some(served& f)
{
    f.raw({"DEL", "{colock}:k3"});
    f.raw({"SET", "{colock}:k7", stored_holder('f')});
    f.raw({"DEL", "{colock}:k11"});
    f.raw({"RPUSH", "{colock}:k11", "of another program"});
}

std::vector<plain_claim_ptr> hold_many(served& f)
{
    std::vector<plain_claim_ptr> held;
    for (int i = 0; i < 20; ++i)
        f.test_driver->grant(held.emplace_back(driver::exclusive("k" + std::to_string(i))));
    return held;
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_commands)

BOOST_AUTO_TEST_CASE(acquires_in_one_batch_have_different_fences)
{
    served f;
    const auto before = f.test_driver->grant(driver::exclusive("busy"));
    f.raw({"CONFIG", "RESETSTAT"});
    constexpr std::size_t claim_count = 40;
    std::vector<running<create_outcome>> under_way;
    for (std::size_t i = 0; i < claim_count; ++i) {
        const auto key = i == 20 ? "busy" : "k" + std::to_string(i);
        const auto claim = i % 3 == 0 ? driver::shared(key) : driver::exclusive(key);
        under_way.push_back(start(f.io, f.test_driver->backend().create(sent_now(claim))));
    }
    std::set<std::uint64_t> fences;
    for (std::size_t i = 0; i < claim_count; ++i) {
        const auto outcome = under_way[i].get(f.io);
        BOOST_TEST((outcome.status == (i == 20 ? create_status::busy : create_status::granted)));
        if (outcome.status == create_status::granted)
            fences.insert(outcome.fence);
    }
    BOOST_TEST(fences.size() == claim_count - 1);
    BOOST_TEST(*fences.begin() > before);
    BOOST_TEST(*fences.rbegin() <= std::stoull(f.raw({"GET", "{colock}#fence"})));
    BOOST_TEST(calls_of(f, "incrby") < 10);
    // Later fences are higher.
    BOOST_TEST(f.test_driver->grant(driver::exclusive("later")) > *fences.rbegin());
}

BOOST_AUTO_TEST_CASE(batched_acquires_are_released_without_a_fence_counter)
{
    served f;
    f.test_driver->grant(driver::exclusive("first"));
    f.raw({"SET", "{colock}#fence", "not a number"});
    std::vector<running<create_outcome>> under_way;
    for (int i = 0; i < 5; ++i)
        under_way.push_back(
            start(f.io, f.test_driver->backend().create(sent_now(driver::exclusive("k" + std::to_string(i))))));
    for (int i = 0; i < 5; ++i) {
        BOOST_TEST((under_way[static_cast<std::size_t>(i)].get(f.io).status == create_status::failed));
        BOOST_TEST(f.raw({"EXISTS", "{colock}:k" + std::to_string(i)}) == "0");
    }
}

BOOST_AUTO_TEST_CASE(batched_releases_report_their_own_outcomes)
{
    served f;
    for (const bool flushed : {false, true, false}) {
        const auto held = hold_many(f);
        lose_some(f);
        if (flushed)
            f.raw({"SCRIPT", "FLUSH"});
        f.raw({"CONFIG", "RESETSTAT"});
        const auto ended = release_together(f, held);
        for (std::size_t i = 0; i < ended.size(); ++i) {
            const bool lost = i == 3 || i == 7 || i == 11;
            BOOST_TEST((ended[i].status == (lost ? release_status::not_held : release_status::released)));
            BOOST_TEST(f.raw({"EXISTS", "{colock}:k" + std::to_string(i)}) == (i == 7 || i == 11 ? "1" : "0"));
        }
        BOOST_TEST(calls_of(f, "evalsha") < 10);
        f.raw({"DEL", "{colock}:k7"});
        f.raw({"DEL", "{colock}:k11"});
    }
}

BOOST_AUTO_TEST_CASE(batched_hand_overs_report_their_own_outcomes)
{
    served f;
    for (const bool flushed : {false, true, false}) {
        auto held = hold_many(f);
        lose_some(f);
        if (flushed)
            f.raw({"SCRIPT", "FLUSH"});
        f.raw({"CONFIG", "RESETSTAT"});
        const auto before = std::stoull(f.raw({"GET", "{colock}#fence"}));
        std::vector<plain_claim_ptr> next;
        std::vector<running<hand_over_outcome>> under_way;
        for (std::size_t i = 0; i < held.size(); ++i) {
            next.push_back(driver::exclusive("k" + std::to_string(i), i % 2 == 0 ? 0ms : 60s));
            under_way.push_back(start(f.io, f.test_driver->backend().hand_over(sent_now(held[i]), sent_now(next[i]))));
        }
        std::set<std::uint64_t> fences;
        for (std::size_t i = 0; i < held.size(); ++i) {
            const auto outcome = under_way[i].get(f.io);
            const bool lost = i == 3 || i == 7 || i == 11;
            BOOST_TEST((outcome.released.status == (lost ? release_status::not_held : release_status::released)));
            const auto expected = i == 7    ? create_status::busy
                                  : i == 11 ? create_status::failed
                                            : create_status::granted;
            BOOST_TEST((outcome.created.status == expected));
            if (expected != create_status::granted)
                continue;
            BOOST_TEST(outcome.created.fence > before);
            fences.insert(outcome.created.fence);
            const auto left = std::stoll(f.raw({"PTTL", "{colock}:k" + std::to_string(i)}));
            BOOST_TEST((i % 2 == 0 ? left == -1 : left > 50'000));
            BOOST_TEST(f.raw({"GET", "{colock}:k" + std::to_string(i)}).starts_with(next[i]->token().hex()));
        }
        BOOST_TEST(fences.size() == held.size() - 2);
        BOOST_TEST(*fences.rbegin() <= std::stoull(f.raw({"GET", "{colock}#fence"})));
        BOOST_TEST(calls_of(f, "evalsha") < 15);
        f.raw({"DEL", "{colock}:k7"});
        f.raw({"DEL", "{colock}:k11"});
        next.erase(next.begin() + 11);
        next.erase(next.begin() + 7);
        for (const auto& each : release_together(f, next))
            BOOST_TEST((each.status == release_status::released));
    }
}

BOOST_AUTO_TEST_CASE(releases_and_hand_overs_of_one_batch_succeed)
{
    served f;
    const auto held = hold_many(f);
    std::vector<running<release_outcome>> released;
    std::vector<running<hand_over_outcome>> handed_over;
    std::vector<running<create_outcome>> created;
    for (std::size_t i = 0; i < held.size(); ++i) {
        if (i % 2 == 0) {
            released.push_back(
                start(f.io, f.test_driver->backend().release(sent_now(held[i]), release_guarantee::released)));
            created.push_back(
                start(f.io, f.test_driver->backend().create(sent_now(driver::exclusive(held[i]->key())))));
        } else {
            handed_over.push_back(start(f.io,
                f.test_driver->backend().hand_over(sent_now(held[i]), sent_now(driver::exclusive(held[i]->key())))));
        }
    }
    std::set<std::uint64_t> fences;
    for (auto& each : released)
        BOOST_TEST((each.get(f.io).status == release_status::released));
    for (auto& each : created) {
        const auto outcome = each.get(f.io);
        BOOST_TEST((outcome.status == create_status::granted));
        fences.insert(outcome.fence);
    }
    for (auto& each : handed_over) {
        const auto outcome = each.get(f.io);
        BOOST_TEST((outcome.created.status == create_status::granted));
        fences.insert(outcome.created.fence);
    }
    BOOST_TEST(fences.size() == held.size());
}

BOOST_AUTO_TEST_CASE(batched_hand_overs_are_released_without_a_fence_counter)
{
    served f;
    const auto held = hold_many(f);
    const auto count = f.raw({"GET", "{colock}#fence"});
    f.raw({"SET", "{colock}#fence", "not a number"});
    std::vector<running<hand_over_outcome>> under_way;
    for (const auto& each : held)
        under_way.push_back(
            start(f.io, f.test_driver->backend().hand_over(sent_now(each), sent_now(driver::exclusive(each->key())))));
    for (std::size_t i = 0; i < held.size(); ++i) {
        const auto outcome = under_way[i].get(f.io);
        BOOST_TEST((outcome.released.status == release_status::released));
        BOOST_TEST((outcome.created.status == create_status::failed));
        BOOST_TEST(f.raw({"EXISTS", "{colock}:k" + std::to_string(i)}) == "0");
    }
    f.raw({"SET", "{colock}#fence", count.c_str()});
}

BOOST_AUTO_TEST_CASE(demoted_master_reports_no_released_lock_as_lost)
{
    served f({.operation_timeout = 2s});
    const auto held = hold_many(f);
    f.raw({"REPLICAOF", "127.0.0.1", "1"});
    for (const auto& each : release_together(f, held))
        BOOST_TEST((each.status == release_status::failed));
    f.raw({"REPLICAOF", "NO", "ONE"});
    for (const auto& each : release_together(f, held))
        BOOST_TEST((each.status == release_status::released));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
