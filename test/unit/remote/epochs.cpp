// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/epochs.hpp"

#include <boost/test/unit_test.hpp>

using namespace colock::remote;

namespace {

std::vector<epoch> numbers_of(const std::vector<epochs::suspect>& suspects)
{
    std::vector<epoch> numbers;
    for (const auto& each : suspects)
        numbers.push_back(each.number);
    return numbers;
}

} // namespace

BOOST_AUTO_TEST_SUITE(remote_epochs)

BOOST_AUTO_TEST_CASE(what_was_lost_may_arrive_until_the_server_has_closed_it)
{
    epochs known;
    BOOST_TEST(known.settled(1));
    known.lost(1, {.id = 71, .process = "a"});
    BOOST_TEST(!known.settled(1));
    BOOST_TEST(known.settled(2));
    const auto suspects = known.to_close("a");
    BOOST_TEST_REQUIRE(suspects.size() == 1U);
    BOOST_TEST(suspects[0].number == 1U);
    BOOST_TEST(suspects[0].id == 71);
    // To ask is no proof.
    BOOST_TEST(!known.settled(1));
    known.closed(1);
    BOOST_TEST(known.settled(1));
    BOOST_TEST(known.to_close("a").empty());
}

BOOST_AUTO_TEST_CASE(a_process_that_is_gone_has_taken_its_connections_with_it)
{
    epochs known;
    known.lost(1, {.id = 71, .process = "a"});
    known.lost(2, {.id = 71, .process = "b"});
    known.lost(3, {.id = 71});
    // Of the one whose process is not known nothing is proven.
    BOOST_TEST(numbers_of(known.to_close("b")) == (std::vector<epoch>{2, 3}), boost::test_tools::per_element());
    BOOST_TEST(known.settled(1));
    BOOST_TEST(!known.settled(2));
    BOOST_TEST(!known.settled(3));
    // Nor is it by a server that does not tell who it is.
    BOOST_TEST(known.to_close("").size() == 2U);
    BOOST_TEST(!known.settled(2));
}

BOOST_AUTO_TEST_CASE(one_that_may_not_be_closed_is_asked_for_once_and_stays_in_doubt)
{
    epochs known;
    known.lost(1, {.id = 71, .process = "a"});
    known.refused(1);
    known.refused(9);
    BOOST_TEST(known.to_close("a").empty());
    BOOST_TEST(!known.settled(1));
    // Its process ends.
    static_cast<void>(known.to_close("b"));
    BOOST_TEST(known.settled(1));
}

BOOST_AUTO_TEST_CASE(of_what_was_forgotten_nothing_is_proven)
{
    epochs known;
    for (epoch each = 1; each <= 1030; ++each)
        known.lost(each, {.id = 1, .process = "a"});
    BOOST_TEST(known.to_close("a").size() == 1024U);
    BOOST_TEST(!known.settled(1));
    BOOST_TEST(!known.settled(6));
    known.closed(7);
    BOOST_TEST(known.settled(7));
    static_cast<void>(known.to_close("b"));
    BOOST_TEST(!known.settled(6));
    BOOST_TEST(known.settled(8));
}

BOOST_AUTO_TEST_CASE(a_forked_child_asks_for_none_of_its_parents)
{
    epochs known;
    known.lost(1, {.id = 71, .process = "a"});
    known.inherit(2);
    BOOST_TEST(known.to_close("a").empty());
    BOOST_TEST(known.inherited(2));
    BOOST_TEST(!known.inherited(3));
}

BOOST_AUTO_TEST_CASE(an_answer_disproves_what_went_before_it_on_the_same_connection)
{
    epochs known;
    known.lost(1, {.id = 71, .process = "a"});
    doubts claim;
    BOOST_TEST(!claim.disproved_by(2, known));
    claim.add(1);
    BOOST_TEST(!claim.disproved_by(2, known));
    BOOST_TEST(!claim.empty());
    BOOST_TEST(claim.disproved_by(1, known));
    BOOST_TEST(claim.empty());
    // Nothing was left to disprove.
    BOOST_TEST(!claim.disproved_by(1, known));
}

BOOST_AUTO_TEST_CASE(all_doubts_go_before_a_claim_is_out_of_doubt)
{
    epochs known;
    known.lost(1, {.id = 71, .process = "a"});
    known.lost(2, {.id = 72, .process = "a"});
    doubts claim;
    claim.add(1);
    claim.add(2);
    known.closed(1);
    BOOST_TEST(!claim.disproved_by(3, known));
    BOOST_TEST(!claim.empty());
    known.closed(2);
    BOOST_TEST(claim.disproved_by(3, known));
}

BOOST_AUTO_TEST_SUITE_END()
