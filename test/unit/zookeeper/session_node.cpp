// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_node.hpp"

#include <boost/test/unit_test.hpp>

namespace colock::inline v0::zookeeper::detail {

BOOST_AUTO_TEST_SUITE(zookeeper_session_node)

BOOST_AUTO_TEST_CASE(node_shows_whether_the_newest_answered_beat_is_missing)
{
    const auto found = [](node_stat stat) { return reply{.outcome = status::ok, .stat = stat}; };
    const node_stat newest{.created_in = 7, .modified_in = 30, .version = 3};
    session_node node;
    // No beat was answered, so none can be missing.
    BOOST_TEST(!node.exists());
    BOOST_TEST(!node.has_lost_history({.outcome = status::no_node}));
    node.note_beat({.created_in = 7, .modified_in = 7});
    node.note_beat(newest);
    BOOST_TEST(node.exists());
    BOOST_TEST(!node.has_lost_history(found(newest)));
    BOOST_TEST(node.has_lost_history({.outcome = status::no_node}));
    BOOST_TEST(node.has_lost_history(found({.created_in = 8, .modified_in = 30, .version = 3})));
    BOOST_TEST(node.has_lost_history(found({.created_in = 7, .modified_in = 20, .version = 2})));
    BOOST_TEST(node.has_lost_history(found({.created_in = 7, .modified_in = 31, .version = 3})));
    // The answer to a later beat was lost.
    BOOST_TEST(!node.has_lost_history(found({.created_in = 7, .modified_in = 40, .version = 4})));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::zookeeper::detail
