// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "memory/store.hpp"
#include "support/driver.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <set>
#include <string>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// A store whose operations use times that the test chooses.
struct timed_store
{
    virtual_clock clock;
    const std::shared_ptr<memory::store> locks = std::make_shared<memory::store>(memory::options{});
    const lease_clock::time_point start = lease_clock::now();

    create_outcome create(const claim_ptr& claim, lease_clock::duration after = 0s) const
    {
        claim->set_operation_start(start + after);
        return locks->create(claim);
    }
    release_status release(claim& claim, lease_clock::duration after) const
    {
        claim.set_operation_start(start + after);
        return locks->release(claim);
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(memory_store_times, timed_store)

BOOST_AUTO_TEST_CASE(lock_is_expired_at_exactly_its_ttl)
{
    const auto holder = driver::exclusive("k", 10s);
    BOOST_TEST(create(holder).status == create_status::granted);
    BOOST_TEST(create(driver::one_attempt("k"), 10s - 1ns).status == create_status::busy);
    holder->set_operation_start(start + 10s - 1ns);
    BOOST_TEST(locks->is_valid(*holder));
    holder->set_operation_start(start + 10s);
    BOOST_TEST(!locks->is_valid(*holder));
    BOOST_TEST(create(driver::one_attempt("k"), 10s).status == create_status::granted);
}

BOOST_AUTO_TEST_CASE(ttl_counts_from_the_time_of_the_request)
{
    const auto holder = driver::exclusive("k", 10s);
    virtual_clock::skip(3s);
    create(holder);
    const auto busy = create(driver::exclusive("k"), 3s);
    BOOST_TEST((busy.retry_after == 7s));
    holder->set_operation_start(start + 4s);
    BOOST_TEST((locks->extend(*holder, 20s) == extend_status::extended));
    BOOST_TEST((create(driver::one_attempt("k"), 5s).retry_after == 19s));
}

BOOST_AUTO_TEST_CASE(first_expiry_of_several_holders_frees_a_place)
{
    for (const bool longest_first : {true, false}) {
        const std::string key = longest_first ? "a" : "b";
        const auto lasting = driver::shared(key, 2, 1h), brief = driver::shared(key, 2, 10s);
        create(longest_first ? lasting : brief);
        create(longest_first ? brief : lasting);
        BOOST_TEST(create(driver::shared(key, 2), 9s).status == create_status::busy);
        BOOST_TEST(create(driver::shared(key, 2), 11s).status == create_status::granted);
    }
}

BOOST_AUTO_TEST_CASE(busy_outcome_of_a_queued_claim_names_the_holder)
{
    auto owner = std::make_shared<owner_data>();
    owner->owner = "bob";
    owner->host = "far";
    const claim_ptr holder(new plain_claim({.key = "k", .owner = owner}));
    create(holder);
    const auto busy = create(driver::exclusive("k"));
    BOOST_TEST(busy.holder == "bob");
    BOOST_TEST(busy.holder_host == "far");
    // A single attempt must not allocate memory, so it does not report the holder.
    BOOST_TEST(create(driver::one_attempt("k")).holder.empty());
}

BOOST_AUTO_TEST_CASE(status_contains_the_times_of_creation_and_last_renewal)
{
    using std::chrono::system_clock;
    const auto wall = system_clock::now();
    const auto near = [&](const auto& time, lease_clock::duration after) {
        return time && *time >= wall + after - 1s && *time < wall + after + 10s;
    };
    const auto holder = driver::exclusive("k", 24h);
    create(holder);
    virtual_clock::skip(1h);
    const auto check_renewed = [&](lease_clock::duration renewed) {
        const auto seen = locks->listing({.filter = {.key = "k"}}).locks;
        BOOST_TEST_REQUIRE(seen.size() == 1U);
        // The virtual clock was moved, but the wall clock was not.
        BOOST_TEST(near(seen[0].created, -1h));
        BOOST_TEST(near(seen[0].renewed, renewed - 1h));
    };
    check_renewed(0s);
    holder->set_operation_start(start + 20min);
    BOOST_TEST((locks->extend(*holder, 24h) == extend_status::extended));
    check_renewed(20min);
    // The claim is created again, as after a lost answer.
    BOOST_TEST(create(holder, 40min).status == create_status::granted);
    check_renewed(40min);
}

BOOST_AUTO_TEST_CASE(waiter_is_woken_if_the_expiry_comes_nearer)
{
    const auto holder = driver::exclusive("k", 1h), waiting = driver::exclusive("k");
    create(holder);
    create(waiting);
    bool woken_early = false;
    locks->wait(*waiting, [&](wait_outcome) { woken_early = true; });
    holder->set_operation_start(start);
    BOOST_TEST((locks->extend(*holder, 2h) == extend_status::extended));
    BOOST_TEST(!woken_early);
    BOOST_TEST((locks->extend(*holder, 10s) == extend_status::extended));
    BOOST_TEST(woken_early);
    BOOST_TEST((create(waiting, 1s).retry_after == 9s));
}

BOOST_AUTO_TEST_CASE(key_is_removed_with_its_last_holder)
{
    const auto expired = driver::shared("k", 0, 10s), released = driver::shared("k", 0, 1h);
    create(expired);
    create(released);
    virtual_clock::skip(1min);
    BOOST_TEST(release(*released, 1min) == release_status::released);
    BOOST_TEST(locks->key_count() == 0U);
}

BOOST_AUTO_TEST_CASE(group_index_follows_the_locks)
{
    const auto member = [](std::string key, lock_mode mode = lock_mode::exclusive) {
        return plain_claim_ptr(new plain_claim({.key = std::move(key),
            .mode = mode,
            .ttl = 10s,
            .owner = std::make_shared<const owner_data>(owner_data{.group = "g"})}));
    };
    const auto a = member("a"), queued = member("a"), b = member("b", lock_mode::shared),
               c = member("b", lock_mode::shared);
    create(driver::exclusive("none"));
    BOOST_TEST(locks->group_count() == 0U);
    for (const auto& each : {a, b, c})
        create(each);
    create(queued);
    BOOST_TEST(locks->group_count() >= 1U);
    release(*b, 1s);
    release(*c, 1s);
    // This release grants the lock to the queued claim; the next one releases it.
    release(*a, 1s);
    BOOST_TEST(locks->group_count() == 1U);
    release(*queued, 1s);
    BOOST_TEST(locks->group_count() == 0U);
    create(a);
    virtual_clock::skip(11s);
    BOOST_TEST(locks->listing({.action = listing_action::purge}).locks.size() == 1U);
    BOOST_TEST(locks->group_count() == 0U);
    create(a, 11s);
    create(queued, 11s);
    BOOST_TEST(locks->listing({.action = listing_action::break_key, .filter = {.key = "a"}}).locks.size() == 1U);
    BOOST_TEST(locks->group_count() == 1U);
    queued->slot.reset();
    BOOST_TEST(locks->group_count() == 0U);
    create(a, 11s);
    locks->clear();
    BOOST_TEST(locks->group_count() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(memory_table)

BOOST_AUTO_TEST_CASE(keys_with_the_same_hash_are_distinguished)
{
    memory::table keys;
    auto& first = keys.add(7, "a");
    auto& second = keys.add(7, "b");
    BOOST_TEST(keys.find(7, "a") == &first);
    BOOST_TEST(keys.find(7, "b") == &second);
    BOOST_TEST(!keys.find(7, "c"));
    BOOST_TEST(!keys.find(8, "a"));
    keys.remove(first);
    BOOST_TEST(!keys.find(7, "a"));
    BOOST_TEST(keys.find(7, "b") == &second);
    BOOST_TEST(keys.size() == 1U);
}

BOOST_AUTO_TEST_CASE(table_grows_and_cursors_stay_valid)
{
    memory::table keys;
    const auto at_first = keys.bucket_count();
    constexpr std::size_t count = 1000;
    for (std::size_t n = 0; n < count; ++n)
        keys.add(n, std::to_string(n));
    BOOST_TEST(keys.size() == count);
    BOOST_TEST(keys.bucket_count() >= count);
    std::set<std::string> seen;
    for (std::size_t bucket = 0; bucket < keys.bucket_count(); ++bucket) {
        for (const auto* at = keys.bucket(bucket); at; at = at->next) {
            seen.insert(at->key);
            // The table splits a bucket into two when it grows. The lower one keeps its number.
            BOOST_TEST_REQUIRE(at->hash % at_first == bucket % at_first);
        }
    }
    BOOST_TEST(seen.size() == count);
    for (std::size_t n = 0; n < count; ++n)
        keys.remove(*keys.find(n, std::to_string(n)));
    BOOST_TEST(keys.size() == 0U);
    BOOST_TEST(keys.add(5, "again").holders.empty());
}

BOOST_AUTO_TEST_SUITE_END()
