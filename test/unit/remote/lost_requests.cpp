// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/lost_requests.hpp"

#include <boost/test/unit_test.hpp>

using namespace colock::remote;

namespace {

std::vector<lost_requests::connection_to_close> connections_to_close(lost_requests& known, std::string_view process)
{
    known.on_connected_to(process);
    return known.connections_to_close();
}

std::vector<connection_number> numbers_of(const std::vector<lost_requests::connection_to_close>& to_close)
{
    std::vector<connection_number> numbers;
    for (const auto& each : to_close)
        numbers.push_back(each.number);
    return numbers;
}

} // namespace

BOOST_AUTO_TEST_SUITE(remote_lost_requests)

BOOST_AUTO_TEST_CASE(lost_request_may_arrive_until_the_server_has_closed_its_connection)
{
    lost_requests known;
    BOOST_TEST(!known.may_arrive(1));
    known.add(1, {.id = 71, .process = "a"});
    BOOST_TEST(known.may_arrive(1));
    BOOST_TEST(!known.may_arrive(2));
    const auto to_close = connections_to_close(known, "a");
    BOOST_TEST_REQUIRE(to_close.size() == 1U);
    BOOST_TEST(to_close[0].number == 1U);
    BOOST_TEST(to_close[0].id == 71);
    // The request to close the connection is not a proof.
    BOOST_TEST(known.may_arrive(1));
    known.on_closed_by_server(1);
    BOOST_TEST(!known.may_arrive(1));
    BOOST_TEST(connections_to_close(known, "a").empty());
}

BOOST_AUTO_TEST_CASE(replaced_server_process_proves_its_connections_dead)
{
    lost_requests known;
    known.add(1, {.id = 71, .process = "a"});
    known.add(2, {.id = 71, .process = "b"});
    known.add(3, {.id = 71});
    // Nothing is proven for a connection whose process is not known.
    BOOST_TEST(numbers_of(connections_to_close(known, "b")) == (std::vector<connection_number>{2, 3}),
        boost::test_tools::per_element());
    BOOST_TEST(!known.may_arrive(1));
    BOOST_TEST(known.may_arrive(2));
    BOOST_TEST(known.may_arrive(3));
    // A server that does not report its process proves nothing.
    BOOST_TEST(connections_to_close(known, "").size() == 2U);
    BOOST_TEST(known.may_arrive(2));
}

BOOST_AUTO_TEST_CASE(connection_that_cannot_be_closed_is_tried_once_and_stays_unproven)
{
    lost_requests known;
    known.add(1, {.id = 71, .process = "a"});
    known.on_close_refused(1);
    known.on_close_refused(9);
    BOOST_TEST(connections_to_close(known, "a").empty());
    BOOST_TEST(known.may_arrive(1));
    // The server process has been replaced.
    known.on_connected_to("b");
    BOOST_TEST(!known.may_arrive(1));
}

BOOST_AUTO_TEST_CASE(forgotten_connection_stays_unproven)
{
    lost_requests known;
    for (connection_number each = 1; each <= 1030; ++each)
        known.add(each, {.id = 1, .process = "a"});
    BOOST_TEST(connections_to_close(known, "a").size() == 1024U);
    BOOST_TEST(known.may_arrive(1));
    BOOST_TEST(known.may_arrive(6));
    known.on_closed_by_server(7);
    BOOST_TEST(!known.may_arrive(7));
    known.on_connected_to("b");
    BOOST_TEST(known.may_arrive(6));
    BOOST_TEST(!known.may_arrive(8));
}

BOOST_AUTO_TEST_CASE(answer_settles_earlier_requests_on_the_same_connection)
{
    lost_requests known;
    known.add(1, {.id = 71, .process = "a"});
    unsettled_requests claim;
    BOOST_TEST(!claim.settle(2, known));
    claim.add(1);
    BOOST_TEST(!claim.settle(2, known));
    BOOST_TEST(!claim.empty());
    BOOST_TEST(claim.settle(1, known));
    BOOST_TEST(claim.empty());
    // No unanswered request was left.
    BOOST_TEST(!claim.settle(1, known));
}

BOOST_AUTO_TEST_CASE(claim_is_settled_after_its_last_unanswered_request)
{
    lost_requests known;
    known.add(1, {.id = 71, .process = "a"});
    known.add(2, {.id = 72, .process = "a"});
    unsettled_requests claim;
    claim.add(1);
    claim.add(2);
    known.on_closed_by_server(1);
    BOOST_TEST(!claim.settle(3, known));
    BOOST_TEST(!claim.empty());
    known.on_closed_by_server(2);
    BOOST_TEST(claim.settle(3, known));
}

BOOST_AUTO_TEST_SUITE_END()
