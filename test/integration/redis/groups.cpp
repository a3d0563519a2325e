// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The index of a group.
#include "served.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

constexpr auto index_name = "{colock}#g:g";

plain_claim_ptr member(std::string key, lock_mode mode = lock_mode::exclusive,
    std::chrono::milliseconds ttl = driver::long_ttl, std::string group = "g")
{
    return new plain_claim({.key = std::move(key),
        .mode = mode,
        .ttl = ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.group = std::move(group)})});
}

long long remaining_ms(served& f, const std::string& key)
{
    return std::stoll(f.raw({"PTTL", key}));
}

long long wall_ms()
{
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_commands)

BOOST_AUTO_TEST_CASE(index_holds_only_group_locks_and_is_removed_with_the_last)
{
    served f;
    const auto alone = driver::exclusive("alone");
    f.test_driver->grant(alone);
    BOOST_TEST(f.raw({"KEYS", "{colock}#g:*"}).empty());
    std::vector<plain_claim_ptr> all{member("a"), member("b", lock_mode::shared), member("b", lock_mode::shared)};
    for (const auto& each : all)
        f.test_driver->grant(each);
    BOOST_TEST(f.raw({"ZCARD", index_name}) == "3");
    BOOST_TEST(f.raw({"ZSCORE", index_name, all[0]->token().hex() + "{colock}:a"}) != "(nil)");
    for (const auto& each : all)
        f.test_driver->release_held(each);
    BOOST_TEST(f.raw({"EXISTS", index_name}) == "0");
    // Releases in one batch.
    std::vector<plain_claim_ptr> eight;
    for (int i = 0; i < 8; ++i)
        eight.push_back(member("k" + std::to_string(i)));
    f.test_driver->grant_all(eight);
    BOOST_TEST(f.raw({"ZCARD", index_name}) == "8");
    std::vector<running<release_outcome>> released;
    for (const auto& each : eight)
        released.push_back(start(f.io, f.test_driver->backend().release(sent_now(each), release_guarantee::released)));
    for (auto& each : released)
        BOOST_TEST((each.get(f.io).status == release_status::released));
    BOOST_TEST(f.raw({"EXISTS", index_name}) == "0");
    // Claims that are abandoned, and the intent of a writer that waited for readers.
    const auto reader = member("r", lock_mode::shared), writer = member("r");
    f.test_driver->grant(reader);
    f.test_driver->check_refused(writer);
    BOOST_TEST(f.raw({"ZCARD", index_name}) == "1");
    f.test_driver->abandon(reader);
    f.test_driver->grant(writer);
    f.test_driver->abandon(writer);
    BOOST_TEST(f.raw({"EXISTS", index_name}) == "0");
    f.test_driver->release_held(alone);
}

BOOST_AUTO_TEST_CASE(an_index_lasts_as_long_as_the_longest_of_its_locks)
{
    served f;
    const auto brief = member("a", lock_mode::exclusive, 1min), longer = member("b", lock_mode::shared, 10min),
               eternal = member("c", lock_mode::exclusive, 0ms), passing = member("d", lock_mode::exclusive, 100ms);
    f.test_driver->grant(brief);
    const auto first = remaining_ms(f, index_name);
    BOOST_TEST((first > remaining_ms(f, "{colock}:a") && first <= 61'000));
    f.test_driver->grant(longer);
    BOOST_TEST(remaining_ms(f, index_name) > 10 * 60'000);
    f.test_driver->grant(eternal);
    BOOST_TEST(remaining_ms(f, index_name) == -1);
    f.test_driver->release_held(eternal);
    BOOST_TEST(remaining_ms(f, index_name) > 10 * 60'000 - 5'000);
    BOOST_TEST((f.test_driver->extend(brief, 1h).status == extend_status::extended));
    BOOST_TEST(remaining_ms(f, index_name) > 59 * 60'000);
    BOOST_TEST((f.test_driver->extend(longer, 2h).status == extend_status::extended));
    BOOST_TEST(remaining_ms(f, index_name) > 119 * 60'000);
    BOOST_TEST(f.test_driver->extend_group("g", 3h).size() == 2U);
    BOOST_TEST(remaining_ms(f, index_name) > 179 * 60'000);
    // An expired member that was not released is removed when another member is added.
    f.test_driver->grant(passing);
    BOOST_TEST(f.raw({"ZCARD", index_name}) == "3");
    run_until(f.io, [&] { return f.raw({"ZCOUNT", index_name, "-inf", std::to_string(wall_ms())}) == "1"; });
    f.test_driver->release_held(brief);
    f.test_driver->grant(brief);
    BOOST_TEST(f.raw({"ZCARD", index_name}) == "2");
    f.test_driver->release_held(brief);
    f.test_driver->release_held(longer);
    BOOST_TEST(f.raw({"EXISTS", index_name}) == "0");
}

BOOST_AUTO_TEST_CASE(broken_locks_leave_the_index_and_held_ones_stay)
{
    served f;
    const auto limited = member("a", lock_mode::exclusive, 1min), eternal = member("b", lock_mode::exclusive, 0ms),
               reader = member("c", lock_mode::shared, 0ms), second = member("c", lock_mode::shared, 1min);
    for (const auto& each : {limited, eternal, reader, second})
        f.test_driver->grant(each);
    BOOST_TEST(f.test_driver->break_key("b").size() == 1U);
    BOOST_TEST(f.raw({"ZCARD", index_name}) == "3");
    BOOST_TEST(remaining_ms(f, index_name) == -1);
    BOOST_TEST(f.test_driver->break_key("c").size() == 2U);
    BOOST_TEST(f.raw({"ZCARD", index_name}) == "1");
    BOOST_TEST((remaining_ms(f, index_name) > 0 && remaining_ms(f, index_name) <= 61'000));
    BOOST_TEST(f.test_driver->break_key("a").size() == 1U);
    BOOST_TEST(f.raw({"EXISTS", index_name}) == "0");
    // A lock without a group, stored by another adapter.
    f.raw({"SET", "{colock}:d", stored_holder('d')});
    BOOST_TEST(f.test_driver->break_key("d").size() == 1U);
}

BOOST_AUTO_TEST_CASE(adoption_that_is_refused_leaves_the_reader_its_time)
{
    served f;
    const auto limited = driver::shared("a", 0, 1min), eternal = driver::shared("b", 0, 0ms);
    f.test_driver->grant(limited);
    f.test_driver->grant(eternal);
    f.raw({"SET", index_name, "another program's"});
    for (const auto& [held, key] : {std::pair(limited, "a"), std::pair(eternal, "b")}) {
        const auto next = member(key, lock_mode::shared, 1s);
        BOOST_TEST((f.test_driver->adopt(f.test_driver->export_ticket(held), next).status == create_status::failed));
        BOOST_TEST(f.raw({"ZCARD", std::string("{colock}:") + key}) == "1");
    }
    BOOST_TEST(remaining_ms(f, "{colock}:a") > 50'000);
    BOOST_TEST(remaining_ms(f, "{colock}:b") == -1);
    f.test_driver->check_held(limited);
    f.test_driver->check_held(eternal);
    // The group's reader without ttl is refused after its key was made to last.
    BOOST_TEST((f.test_driver->create(member("a", lock_mode::shared, 0ms)).status == create_status::failed));
    BOOST_TEST(remaining_ms(f, "{colock}:a") > 50'000);
}

BOOST_AUTO_TEST_CASE(releases_of_a_group_are_batched_once_the_server_knows_the_script)
{
    served f;
    for (const auto* group : {"g", ""}) {
        for (int round = 0; round < 6; ++round) {
            std::vector<plain_claim_ptr> eight;
            for (int i = 0; i < 8; ++i)
                eight.push_back(member("k" + std::to_string(i), lock_mode::exclusive, driver::long_ttl, group));
            f.test_driver->grant_all(eight);
            f.raw({"CONFIG", "RESETSTAT"});
            std::vector<running<release_outcome>> released;
            for (const auto& each : eight)
                released.push_back(
                    start(f.io, f.test_driver->backend().release(sent_now(each), release_guarantee::released)));
            for (auto& each : released)
                BOOST_TEST((each.get(f.io).status == release_status::released));
        }
        BOOST_TEST(f.raw({"INFO", "commandstats"}).find("cmdstat_eval:") == std::string::npos);
        BOOST_TEST(calls_of(f, "evalsha") < 8);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
