// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/session_users.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>

namespace colock::inline v0::zookeeper::detail {

BOOST_AUTO_TEST_SUITE(zookeeper_session_users)

BOOST_AUTO_TEST_CASE(nodes_of_two_losses_are_taken_one_by_one)
{
    session_users users;
    users.mark_lost();
    BOOST_TEST(!users.has_lost());
    users.note_granted("a");
    users.note_granted("b");
    users.forget_granted("b");
    users.mark_lost();
    users.note_granted("c");
    users.note_granted("d");
    // The lock of this node is lost already, so nothing changes.
    users.forget_granted("a");
    users.mark_lost();
    users.note_granted("held");

    std::set<std::string> taken;
    for (auto node = users.take_lost(); !node.empty(); node = users.take_lost())
        BOOST_TEST(taken.insert(node).second);
    BOOST_TEST((taken == std::set<std::string>{"a", "c", "d"}));
    BOOST_TEST(!users.has_lost());
}

BOOST_AUTO_TEST_CASE(clear_forgets_everything)
{
    session_users users;
    const auto session_ref = users.enter();
    BOOST_TEST(users.is_used());
    users.note_granted("a");
    users.mark_lost();
    users.note_granted("b");
    users.clear();
    BOOST_TEST(!users.is_used());
    BOOST_TEST(!users.has_lost());
    users.mark_lost();
    BOOST_TEST(users.take_lost() == "");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::zookeeper::detail
