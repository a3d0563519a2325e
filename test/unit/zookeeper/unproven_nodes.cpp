// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/unproven_nodes.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <set>
#include <string>

namespace colock::inline v0::zookeeper::detail {

namespace {

using names = std::set<std::string>;

struct nodes_fixture
{
    names next(std::size_t max_count = 100)
    {
        names found;
        nodes.for_next(max_count, [&](const std::string& node) { found.insert(node); });
        return found;
    }
    names verified()
    {
        nodes.begin_verification();
        return next();
    }

    const claim_ptr holder{new claim({.key = "k"})};
    unproven_nodes nodes;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_unproven_nodes, nodes_fixture)

BOOST_AUTO_TEST_CASE(answered_beat_proves_what_was_noted_before_it_was_sent)
{
    nodes.note_granted("a", holder);
    nodes.note_removed("b");
    BOOST_TEST(nodes.count_after_beat() == 2U);
    nodes.on_beat_sent();
    BOOST_TEST(nodes.count_after_beat() == 0U);
    nodes.note_granted("c", holder);
    nodes.on_beat_answered();
    BOOST_TEST((verified() == names{"c"}));
    BOOST_TEST(nodes.holder_of("c") == holder);
}

BOOST_AUTO_TEST_CASE(unanswered_beat_proves_nothing_and_the_next_beat_proves_all)
{
    nodes.note_granted("a", holder);
    nodes.on_beat_sent();
    nodes.note_removed("b");
    BOOST_TEST((verified() == names{"a", "b"}));
    nodes.on_beat_sent();
    nodes.note_removed("c");
    nodes.on_beat_sent();
    BOOST_TEST((verified() == names{"a", "b", "c"}));
    nodes.on_beat_sent();
    nodes.on_beat_answered();
    BOOST_TEST(verified().empty());
}

BOOST_AUTO_TEST_CASE(removal_replaces_the_grant_and_drops_its_claim)
{
    struct watched_claim final : claim
    {
        explicit watched_claim(bool& destroyed) : claim({.key = "k"}), is_destroyed(destroyed) {}
        ~watched_claim() override { is_destroyed = true; }
        bool& is_destroyed;
    };
    bool is_destroyed = false;
    nodes.note_granted("a", claim_ptr(new watched_claim(is_destroyed)));
    nodes.on_beat_sent();
    BOOST_TEST(!is_destroyed);
    nodes.note_removed("a");
    BOOST_TEST(is_destroyed);
    BOOST_TEST((verified() == names{"a"}));
    BOOST_TEST(!nodes.holder_of("a"));
}

BOOST_AUTO_TEST_CASE(removed_node_that_is_created_again_is_not_verified)
{
    nodes.note_removed("a");
    nodes.note_removed("b");
    nodes.on_beat_sent();
    nodes.forget("a");
    BOOST_TEST((verified() == names{"b"}));
}

BOOST_AUTO_TEST_CASE(each_node_is_verified_once_and_a_new_one_too)
{
    nodes.note_granted("a", holder);
    nodes.note_granted("b", holder);
    nodes.note_granted("c", holder);
    nodes.begin_verification();
    BOOST_TEST(next(2).size() == 2U);
    nodes.note_removed("d");
    BOOST_TEST(next().size() == 2U);
    BOOST_TEST(next().empty());
    // The session was resumed again.
    BOOST_TEST(verified().size() == 4U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::zookeeper::detail
