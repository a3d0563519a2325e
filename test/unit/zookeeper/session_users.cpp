// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/session_users.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>

namespace colock::inline v0::zookeeper::detail {

BOOST_AUTO_TEST_SUITE(zookeeper_session_users)

BOOST_AUTO_TEST_CASE(nodes_of_two_losses_are_taken_one_by_one)
{
    session_users some;
    some.mark_lost();
    BOOST_TEST(!some.has_lost());
    some.note_granted("a");
    some.note_granted("b");
    some.forget_granted("b");
    some.mark_lost();
    some.note_granted("c");
    some.note_granted("d");
    // The lock of this node is lost already, so nothing changes.
    some.forget_granted("a");
    some.mark_lost();
    some.note_granted("held");

    std::set<std::string> taken;
    for (auto node = some.take_lost(); !node.empty(); node = some.take_lost())
        BOOST_TEST(taken.insert(node).second);
    BOOST_TEST((taken == std::set<std::string>{"a", "c", "d"}));
    BOOST_TEST(!some.has_lost());
}

BOOST_AUTO_TEST_CASE(clear_forgets_everything)
{
    session_users some;
    const auto session_ref = some.enter();
    BOOST_TEST(some.is_used());
    some.note_granted("a");
    some.mark_lost();
    some.note_granted("b");
    some.clear();
    BOOST_TEST(!some.is_used());
    BOOST_TEST(!some.has_lost());
    some.mark_lost();
    BOOST_TEST(some.take_lost() == "");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::zookeeper::detail
