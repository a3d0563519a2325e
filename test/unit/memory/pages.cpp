// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/pages.hpp"
#include "fixture.hpp"
#include "memory/store.hpp"
#include "support/driver.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Maximum number of locks in a page, so that a page does not block the event loop.
constexpr std::size_t max_page_size = 300;

struct filled_store
{
    virtual_clock clock;
    std::shared_ptr<memory::store> locks = std::make_shared<memory::store>(memory::options{});
    std::vector<claim_ptr> claims{};

    void take(int count, const std::string& prefix, std::chrono::milliseconds ttl = driver::long_ttl)
    {
        for (int i = 0; i < count; ++i) {
            claims.push_back(sent_now(driver::exclusive(prefix + std::to_string(i), ttl)));
            BOOST_REQUIRE(locks->create(claims.back()).status == create_status::granted);
        }
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(memory_pages, filled_store)

BOOST_AUTO_TEST_CASE(pages_are_small_and_contain_each_lock_once)
{
    take(20'000, "k");
    const auto pages = all_pages([&](const std::string& cursor) { return locks->listing({.cursor = cursor}); });
    BOOST_TEST(count_locks(pages, max_page_size) == claims.size());
    BOOST_TEST(distinct_keys(pages).size() == claims.size());
}

BOOST_AUTO_TEST_CASE(page_without_live_locks_examines_few_keys)
{
    take(20'000, "k", 1s);
    virtual_clock::skip(10s);
    const auto pages = all_pages([&](const std::string& cursor) { return locks->listing({.cursor = cursor}); });
    BOOST_TEST(count_locks(pages, 0) == 0U);
    BOOST_TEST(pages.size() > 5U);
}

BOOST_AUTO_TEST_CASE(growth_between_pages_loses_and_repeats_no_lock)
{
    take(2000, "k");
    int page_number = 0;
    const auto pages = all_pages([&](const std::string& cursor) {
        auto page = locks->listing({.cursor = cursor});
        std::erase_if(page.locks, [](const lock_status& each) { return !each.key.starts_with('k'); });
        if (page_number < 5)
            take(3000 << page_number, "later" + std::to_string(page_number) + ":");
        ++page_number;
        return page;
    });
    BOOST_TEST(distinct_keys(pages).size() == 2000U);
}

BOOST_AUTO_TEST_CASE(purge_removes_everything_in_small_steps)
{
    take(100, "live");
    take(5000, "k", 1s);
    virtual_clock::skip(10s);
    const auto steps = all_pages(
        [&](const std::string& cursor) { return locks->listing({.action = listing_action::purge, .cursor = cursor}); });
    BOOST_TEST(count_locks(steps, max_page_size) == 5000U);
    BOOST_TEST(distinct_keys(steps).size() == 5000U);
    BOOST_TEST(locks->key_count() == 100U);
}

BOOST_AUTO_TEST_CASE(invalid_cursor_is_rejected)
{
    take(10, "k");
    for (const std::string cursor : {"x", "memory:0", "-1", "0 ", " 0", "0.0", "256", "18446744073709551615",
             "18446744073709551616", "99999999999999999999"})
    {
        for (const auto action : {listing_action::list, listing_action::purge}) {
            const auto page = locks->listing({.action = action, .cursor = cursor});
            BOOST_TEST_REQUIRE(page.error, cursor);
            BOOST_TEST((page.error->code == errc::invalid_options));
            BOOST_TEST(page.locks.empty());
        }
    }
    BOOST_TEST(locks->listing({.cursor = "0"}).locks.size() == 10U);
}

BOOST_AUTO_TEST_SUITE_END()
