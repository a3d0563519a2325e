// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/line_memory.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>

namespace colock::zookeeper::detail {

namespace {

/// Takes turns in a folder, with a distance between two transactions.
struct visitor
{
    line_memory lines{};
    line_memory::node last{};
    std::int64_t distance = 1;

    bool enter(line_memory::node which, bool counted = false)
    {
        last = which;
        return lines.entered("/f", which, counted ? 1 : 0);
    }
    bool enter_next() { return enter({last.number + 1, last.created_in + distance}); }
    void leave() { lines.left("/f", last.created_in); }
    /// Counted, and gone.
    void visit(line_memory::node which)
    {
        BOOST_TEST(enter(which, true));
        leave();
    }
    void visit_next_ones(int times)
    {
        for (int i = 0; i < times; ++i) {
            BOOST_TEST(enter_next());
            leave();
        }
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_line_memory)

BOOST_AUTO_TEST_CASE(who_follows_one_that_was_alone_and_has_gone_is_alone)
{
    visitor f;
    BOOST_TEST(!f.enter({10, 1000}));
    f.leave();
    BOOST_TEST(!f.enter({11, 1001}));
    f.visit({12, 1002});
    BOOST_TEST(f.enter({13, 1003}));
    // That one is still there.
    BOOST_TEST(!f.enter({14, 1004}));
    f.leave();
    BOOST_TEST(!f.enter({15, 1005}));
}

BOOST_AUTO_TEST_CASE(a_count_is_more_certain_than_a_number)
{
    visitor f;
    f.visit({10, 1000});
    BOOST_TEST(!f.lines.entered("/f", {11, 1001}, 2));
    f.lines.left("/f", 1001);
    BOOST_TEST(!f.enter({12, 1002}));
}

BOOST_AUTO_TEST_CASE(another_number_says_that_somebody_was_there)
{
    for (const auto number : {9, 10, 12, 0, -1}) {
        visitor f;
        f.visit({10, 1000});
        BOOST_TEST(!f.enter({number, 1001}), number);
        // What was known is forgotten.
        BOOST_TEST(!f.enter({11, 1002}), number);
    }
}

/// A folder that was made anew has had as many nodes, each by a transaction of its own.
BOOST_AUTO_TEST_CASE(as_many_transactions_as_its_number_may_have_made_another_folder)
{
    for (const std::int64_t passed : {1, 11}) {
        visitor f;
        f.visit({10, 1000});
        BOOST_TEST(f.enter({11, 1000 + passed}), passed);
    }
    for (const std::int64_t passed : {std::int64_t{12}, std::int64_t{1} << 32, std::int64_t{0}, std::int64_t{-1}}) {
        visitor f;
        f.visit({10, 1000});
        BOOST_TEST(!f.enter({11, 1000 + passed}), passed);
    }
}

/// The server gives it again and again.
BOOST_AUTO_TEST_CASE(the_highest_number_follows_none)
{
    constexpr auto highest = std::numeric_limits<std::int32_t>::max();
    visitor f;
    f.visit({highest - 2, 1000});
    BOOST_TEST(f.enter({highest - 1, 1001}));
    f.leave();
    BOOST_TEST(!f.enter({highest, 1002}));
    f.visit({highest, 1003});
    BOOST_TEST(!f.enter({highest, 1004}));
    f.visit({highest, 1005});
    BOOST_TEST(!f.enter({std::numeric_limits<std::int32_t>::min(), 1006}));
    f.visit({-5, 1007});
    BOOST_TEST(!f.enter({-4, 1008}));
}

BOOST_AUTO_TEST_CASE(only_the_one_that_was_seen_there_leaves)
{
    visitor f;
    BOOST_TEST(f.enter({10, 1000}, true));
    f.lines.left("/f", 999);
    f.lines.left("/g", 1000);
    BOOST_TEST(!f.enter({11, 1001}));
}

BOOST_AUTO_TEST_CASE(each_folder_is_known_by_its_name)
{
    line_memory lines;
    lines.left("/f", 1);
    BOOST_TEST(!lines.expects("/f"));
    BOOST_TEST(lines.entered("/f", {10, 1000}, 1));
    lines.left("/f", 1000);
    // However many there are, and whichever share a place.
    for (int i = 0; i < 5000; ++i)
        BOOST_TEST(!lines.entered("/" + std::to_string(i), {11, 1001}, 0));
    BOOST_TEST(lines.entered("/f", {11, 1001}, 0));
    for (int i = 0; i < 5000; ++i)
        static_cast<void>(lines.entered("/" + std::to_string(i), {11, 1001}, 1));
    lines.left("/f", 1001);
    BOOST_TEST(!lines.entered("/f", {12, 1002}, 0));
}

BOOST_AUTO_TEST_CASE(what_was_so_several_times_is_expected)
{
    visitor f;
    f.visit({100, 1000});
    f.visit_next_ones(3);
    BOOST_TEST(!f.lines.expects("/f"));
    f.visit_next_ones(1);
    BOOST_TEST(f.lines.expects("/f"));
    BOOST_TEST(!f.lines.expects("/g"));
    BOOST_TEST(f.enter_next());
    BOOST_TEST(!f.lines.expects("/f"));
    f.leave();
    BOOST_TEST(f.lines.expects("/f"));
    // A guess that was wrong: not so soon again.
    BOOST_TEST(!f.enter({200, 2000}));
    f.visit({201, 2001});
    f.visit_next_ones(3);
    BOOST_TEST(!f.lines.expects("/f"));
    f.visit_next_ones(1);
    BOOST_TEST(f.lines.expects("/f"));
    f.lines.clear();
    BOOST_TEST(!f.lines.expects("/f"));
}

BOOST_AUTO_TEST_CASE(nothing_is_expected_where_so_much_else_happens_that_it_could_not_be_proven)
{
    visitor f;
    f.distance = 60;
    f.visit({100, 1000});
    f.visit_next_ones(19);
    BOOST_TEST(!f.lines.expects("/f"));
    f.visit_next_ones(1);
    BOOST_TEST(f.lines.expects("/f"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::zookeeper::detail
