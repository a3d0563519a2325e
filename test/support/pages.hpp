// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace colock::testing {

/// Calls `page_at` with the cursor of each page until there is no other page, and returns the pages.
template <class PageAt>
auto all_pages(PageAt page_at)
{
    std::vector<decltype(page_at(std::string()))> pages;
    std::string cursor;
    do {
        pages.push_back(page_at(cursor));
        if constexpr (requires { pages.back().error; })
            BOOST_TEST_REQUIRE(!pages.back().error);
        cursor = pages.back().next;
    } while (!cursor.empty());
    return pages;
}

/// Returns the number of locks on the pages. Checks that no page has more than `max_size`.
template <class Pages>
std::size_t count_locks(const Pages& pages, std::size_t max_size)
{
    std::size_t count = 0;
    for (const auto& page : pages) {
        BOOST_TEST(page.locks.size() <= max_size);
        count += page.locks.size();
    }
    return count;
}

/// Returns how often each key is on the pages. Checks that no key occurs twice.
template <class Pages>
std::map<std::string, int> distinct_keys(const Pages& pages)
{
    std::map<std::string, int> times;
    for (const auto& page : pages) {
        for (const auto& each : page.locks)
            ++times[each.key];
    }
    BOOST_TEST(std::ranges::all_of(times, [](const auto& each) { return each.second == 1; }));
    return times;
}

} // namespace colock::testing
