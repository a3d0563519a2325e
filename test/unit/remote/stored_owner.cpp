// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/adapter/stored_owner.hpp"
#include "remote/adapter/stored_time.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

using namespace colock;
using remote::parse_stored_owner;

BOOST_AUTO_TEST_SUITE(remote_stored_owner)

BOOST_AUTO_TEST_CASE(stored_owner_is_read_back)
{
    const owner_data owner{"o", "h", "", "g"};
    std::string stored = "before";
    remote::append_stored_owner(stored, owner, 1'795'000'000'123);
    BOOST_TEST(stored.starts_with("before"));
    auto parsed = parse_stored_owner(std::string_view(stored).substr(6));
    BOOST_TEST_REQUIRE(parsed.has_value());
    BOOST_TEST(parsed->created == 1'795'000'000'123);
    BOOST_TEST((parsed->owner == owner));

    lock_status status;
    fill(status, std::move(*parsed));
    BOOST_TEST(status.owner == "o");
    BOOST_TEST(status.host == "h");
    BOOST_TEST(status.comment.empty());
    BOOST_TEST(status.group == "g");
    BOOST_TEST((status.created.value().time_since_epoch() == std::chrono::milliseconds(1'795'000'000'123)));
}

BOOST_AUTO_TEST_CASE(time_before_1970_or_after_the_range_of_the_clock_is_clamped)
{
    using std::chrono::system_clock;
    lock_status status;
    remote::fill(status, {.created = 0xfffffffffff});
    BOOST_TEST((status.created.value() > system_clock::time_point::max() - std::chrono::milliseconds(1)));
    BOOST_TEST((remote::stored_time(std::numeric_limits<std::int64_t>::min()) == system_clock::time_point()));
}

BOOST_AUTO_TEST_CASE(size_is_known_before_writing)
{
    for (const auto& owner : {owner_data{}, owner_data{"o", "host", "for you", "group"}}) {
        std::string stored;
        remote::append_stored_owner(stored, owner, 1);
        BOOST_TEST(stored.size() == remote::stored_owner_size(owner));
    }
}

BOOST_AUTO_TEST_CASE(data_of_other_programs_are_rejected)
{
    for (const auto* strange : {"", "short", "not eleven hex digits", "-0000000001"})
        BOOST_TEST(!parse_stored_owner(strange).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
