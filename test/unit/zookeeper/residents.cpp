// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/session_users.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>

namespace colock::zookeeper::detail {

BOOST_AUTO_TEST_SUITE(zookeeper_residents)

BOOST_AUTO_TEST_CASE(what_two_losses_have_left_is_taken_one_by_one)
{
    session_users some;
    some.lose();
    BOOST_TEST(!some.any_lost());
    some.note_granted("a");
    some.note_granted("b");
    some.forget_granted("b");
    some.lose();
    some.note_granted("c");
    some.note_granted("d");
    // It is no more than what is lost.
    some.forget_granted("a");
    some.lose();
    some.note_granted("held");

    std::set<std::string> taken;
    for (auto node = some.take_lost(); !node.empty(); node = some.take_lost())
        BOOST_TEST(taken.insert(node).second);
    BOOST_TEST((taken == std::set<std::string>{"a", "c", "d"}));
    BOOST_TEST(!some.any_lost());
}

BOOST_AUTO_TEST_CASE(what_was_in_a_session_is_over_with_it)
{
    session_users some;
    const auto session_ref = some.enter();
    BOOST_TEST(some.any());
    some.note_granted("a");
    some.lose();
    some.note_granted("b");
    some.clear();
    BOOST_TEST(!some.any());
    BOOST_TEST(!some.any_lost());
    some.lose();
    BOOST_TEST(some.take_lost() == "");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::zookeeper::detail
