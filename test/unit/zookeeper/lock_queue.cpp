// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/layout/lock_queue.hpp"

#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <vector>

using namespace colock::zookeeper::detail;

namespace {

using names = std::vector<std::string>;
using kind = queue_position::kind;

/// \param what "x-" or "s-" and the number
std::string node(char who, std::string_view what)
{
    return (std::string(32, who) + '-').append(what);
}

const std::string first_writer = node('a', "x-0000000001");
const std::string first_reader = node('b', "s-0000000002");
const std::string second_reader = node('c', "s-0000000003");
const std::string last_writer = node('d', "x-0000000004");
const std::string last_reader = node('e', "s-0000000005");
const names all{last_reader, second_reader, first_writer, "not one of ours", last_writer, first_reader};

queue_position find(const names& children, const std::string& own, std::size_t max_holders = 0)
{
    return lock_queue(layout::standard, children).find(own, max_holders);
}

names front(const names& children)
{
    const lock_queue queue(layout::standard, children);
    const auto found = queue.front();
    return {found.begin(), found.end()};
}

std::string predecessor_of(const std::string& own)
{
    const auto found = find(all, own);
    BOOST_TEST((found.type == kind::behind_one));
    return found.predecessor;
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_lock_queue)

BOOST_AUTO_TEST_CASE(exclusive_node_waits_for_the_node_before_it)
{
    BOOST_TEST((find(all, first_writer).type == kind::first));
    BOOST_TEST(predecessor_of(last_writer) == second_reader);
}

BOOST_AUTO_TEST_CASE(a_reader_waits_for_the_nearest_writer)
{
    BOOST_TEST(predecessor_of(first_reader) == first_writer);
    BOOST_TEST(predecessor_of(second_reader) == first_writer);
    BOOST_TEST(predecessor_of(last_reader) == last_writer);
    BOOST_TEST((find(names{first_reader, second_reader}, second_reader).type == kind::first));
}

BOOST_AUTO_TEST_CASE(missing_node_has_no_position)
{
    BOOST_TEST((find(names{}, first_writer).type == kind::absent));
    BOOST_TEST((find(names{first_reader}, first_writer).type == kind::absent));
    BOOST_TEST((find(names{""}, "").type == kind::absent));
}

BOOST_AUTO_TEST_CASE(a_semaphore_counts_the_readers_before_it)
{
    const names readers{first_reader, second_reader, last_reader};
    const auto position = [&](std::size_t limit) { return find(readers, last_reader, limit).type; };
    BOOST_TEST((position(3) == kind::first));
    BOOST_TEST((position(2) == kind::behind_some));
    BOOST_TEST((position(1) == kind::behind_some));
    // No place becomes free before the exclusive node is removed.
    const auto behind_writer = find(names{first_writer, first_reader}, first_reader, 9);
    BOOST_TEST((behind_writer.type == kind::behind_one));
    BOOST_TEST(behind_writer.predecessor == first_writer);
}

BOOST_AUTO_TEST_CASE(lowest_number_follows_the_highest)
{
    const auto before = node('a', "x-2147483647"), after = node('b', "x--2147483648");
    BOOST_TEST(find(names{before, after}, after).predecessor == before);
    BOOST_TEST((find(names{before, after}, before).type == kind::first));
}

BOOST_AUTO_TEST_CASE(front_is_one_writer_or_the_readers_before_all_writers)
{
    BOOST_TEST(front(all) == names{first_writer}, boost::test_tools::per_element());
    BOOST_TEST(
        front(names{last_reader, last_writer, second_reader, first_reader}) == (names{first_reader, second_reader}),
        boost::test_tools::per_element());
    BOOST_TEST(front(names{"nothing"}).empty());
}

BOOST_AUTO_TEST_CASE(nodes_of_a_claim_are_found_by_prefix)
{
    BOOST_TEST(
        names_with_prefix(std::string(32, 'd') + "-x-", all) == names{last_writer}, boost::test_tools::per_element());
    BOOST_TEST(names_with_prefix(std::string(32, 'f') + "-x-", all).empty());
}

BOOST_AUTO_TEST_SUITE_END()
