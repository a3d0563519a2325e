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

list_outcome asked_of_three(const statuses& a, const statuses& b, const statuses& c)
{
    std::optional<list_outcome> result;
    list_merger counts(3, [&](list_outcome outcome) { result = std::move(outcome); });
    for (const auto& each : {a, b, c}) {
        BOOST_TEST(!result);
        counts.add({each, nullptr});
    }
    BOOST_TEST_REQUIRE(result.has_value());
    return *result;
}

lock_status held(std::optional<std::chrono::milliseconds> remaining = {})
{
    lock_status told;
    told.key = "k";
    told.owner = "somebody";
    told.host = "somewhere";
    told.comment = "something";
    told.group = "g";
    told.remaining = remaining;
    return told;
}

} // namespace

BOOST_AUTO_TEST_SUITE(quorum_census)

BOOST_AUTO_TEST_CASE(a_lock_needs_a_majority_that_tells_of_it)
{
    BOOST_TEST(asked_of_three({held()}, {}, {}).locks.empty());
    BOOST_TEST(asked_of_three({held()}, {}, {held()}).locks.size() == 1U);
    BOOST_TEST(asked_of_three({held()}, {held()}, {held()}).locks.size() == 1U);
    BOOST_TEST(asked_of_three({held(), held()}, {}, {}).locks.empty());
}

BOOST_AUTO_TEST_CASE(holders_of_another_description_are_others)
{
    const auto other = [](std::string lock_status::* part, std::string text) {
        auto told = held();
        told.*part = std::move(text);
        return told;
    };
    for (const auto part :
        {&lock_status::key, &lock_status::owner, &lock_status::host, &lock_status::comment, &lock_status::group})
        BOOST_TEST(asked_of_three({held()}, {other(part, "other")}, {}).locks.empty());
    // Where one part ends and the next begins is part of it.
    auto shifted = held();
    shifted.owner += shifted.host;
    shifted.host.clear();
    BOOST_TEST(asked_of_three({held()}, {shifted}, {}).locks.empty());
}

BOOST_AUTO_TEST_CASE(the_shortest_time_that_is_told_counts)
{
    const auto remaining = [](const list_outcome& told) {
        BOOST_TEST_REQUIRE(told.locks.size() == 1U);
        return told.locks[0].remaining;
    };
    BOOST_TEST((remaining(asked_of_three({held(3s)}, {held(2s)}, {held(4s)})) == 2s));
    BOOST_TEST((remaining(asked_of_three({held(2s)}, {held(3s)}, {})) == 2s));
    BOOST_TEST((remaining(asked_of_three({held()}, {held(3s)}, {})) == 3s));
    BOOST_TEST((remaining(asked_of_three({held(3s)}, {held()}, {})) == 3s));
    BOOST_TEST(!remaining(asked_of_three({held()}, {held()}, {})));
}

BOOST_AUTO_TEST_CASE(without_a_majority_of_answers_nothing_is_told)
{
    for (const bool two_fail : {false, true}) {
        std::optional<list_outcome> result;
        list_merger counts(3, [&](list_outcome outcome) { result = std::move(outcome); });
        counts.add({{held()}, nullptr});
        counts.add({{}, make_failure(errc::unavailable, "away")});
        counts.add(
            two_fail ? list_outcome{{}, make_failure(errc::unavailable, "away")} : list_outcome{{held()}, nullptr});
        BOOST_TEST_REQUIRE(result.has_value());
        BOOST_TEST((result->error != nullptr) == two_fail);
        BOOST_TEST(result->locks.size() == (two_fail ? 0U : 1U));
    }
}

BOOST_AUTO_TEST_SUITE_END()
