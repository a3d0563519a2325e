// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/list_merger.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <vector>

using namespace colock;
using namespace colock::quorum;
using namespace std::chrono_literals;

namespace {

using statuses = std::vector<lock_status>;

list_outcome merge_of_three(const statuses& a, const statuses& b, const statuses& c)
{
    list_merger merger(3);
    for (const auto& each : {a, b, c})
        merger.add({each, nullptr});
    return std::move(merger).result();
}

lock_status held(std::optional<std::chrono::milliseconds> remaining = {})
{
    lock_status result;
    result.key = "k";
    result.owner = "somebody";
    result.host = "somewhere";
    result.comment = "something";
    result.group = "g";
    result.remaining = remaining;
    return result;
}

} // namespace

BOOST_AUTO_TEST_SUITE(quorum_list_merger)

BOOST_AUTO_TEST_CASE(lock_must_be_listed_by_a_majority)
{
    BOOST_TEST(merge_of_three({held()}, {}, {}).locks.empty());
    BOOST_TEST(merge_of_three({held()}, {}, {held()}).locks.size() == 1U);
    BOOST_TEST(merge_of_three({held()}, {held()}, {held()}).locks.size() == 1U);
    BOOST_TEST(merge_of_three({held(), held()}, {}, {}).locks.empty());
}

BOOST_AUTO_TEST_CASE(holders_with_different_descriptions_differ)
{
    const auto other = [](std::string lock_status::* part, std::string text) {
        auto result = held();
        result.*part = std::move(text);
        return result;
    };
    for (const auto part :
        {&lock_status::key, &lock_status::owner, &lock_status::host, &lock_status::comment, &lock_status::group})
        BOOST_TEST(merge_of_three({held()}, {other(part, "other")}, {}).locks.empty());
    // The boundaries between the parts are significant.
    auto shifted = held();
    shifted.owner += shifted.host;
    shifted.host.clear();
    BOOST_TEST(merge_of_three({held()}, {shifted}, {}).locks.empty());
}

BOOST_AUTO_TEST_CASE(shortest_remaining_time_is_reported)
{
    const auto remaining = [](const list_outcome& result) {
        BOOST_TEST_REQUIRE(result.locks.size() == 1U);
        return result.locks[0].remaining;
    };
    BOOST_TEST((remaining(merge_of_three({held(3s)}, {held(2s)}, {held(4s)})) == 2s));
    BOOST_TEST((remaining(merge_of_three({held(2s)}, {held(3s)}, {})) == 2s));
    BOOST_TEST((remaining(merge_of_three({held()}, {held(3s)}, {})) == 3s));
    BOOST_TEST((remaining(merge_of_three({held(3s)}, {held()}, {})) == 3s));
    BOOST_TEST(!remaining(merge_of_three({held()}, {held()}, {})));
}

BOOST_AUTO_TEST_CASE(list_fails_without_answers_of_a_majority)
{
    for (const bool two_fail : {false, true}) {
        list_merger merger(3);
        merger.add({{held()}, nullptr});
        merger.add({{}, make_failure(errc::unavailable, "away")});
        merger.add(
            two_fail ? list_outcome{{}, make_failure(errc::unavailable, "away")} : list_outcome{{held()}, nullptr});
        const auto result = std::move(merger).result();
        BOOST_TEST((result.error != nullptr) == two_fail);
        BOOST_TEST(result.locks.size() == (two_fail ? 0U : 1U));
    }
}

BOOST_AUTO_TEST_SUITE_END()
