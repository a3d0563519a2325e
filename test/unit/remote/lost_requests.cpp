// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/lost_requests.hpp"

#include <boost/test/unit_test.hpp>

using namespace colock::remote;

namespace {

std::vector<lost_requests::connection_to_close> connections_to_close(lost_requests& lost, std::string_view process)
{
    lost.on_connected_to(process);
    return lost.connections_to_close();
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
    lost_requests lost;
    BOOST_TEST(!lost.may_arrive(1));
    lost.add(1, {.id = 71, .process = "a"});
    BOOST_TEST(lost.may_arrive(1));
    BOOST_TEST(!lost.may_arrive(2));
    const auto to_close = connections_to_close(lost, "a");
    BOOST_TEST_REQUIRE(to_close.size() == 1U);
    BOOST_TEST(to_close[0].number == 1U);
    BOOST_TEST(to_close[0].id == 71);
    // The request to close the connection is not a proof.
    BOOST_TEST(lost.may_arrive(1));
    lost.on_closed_by_server(1);
    BOOST_TEST(!lost.may_arrive(1));
    BOOST_TEST(connections_to_close(lost, "a").empty());
}

BOOST_AUTO_TEST_CASE(replaced_server_process_proves_its_connections_dead)
{
    lost_requests lost;
    lost.add(1, {.id = 71, .process = "a"});
    lost.add(2, {.id = 71, .process = "b"});
    lost.add(3, {.id = 71});
    // Nothing is proven for a connection whose process is not known.
    BOOST_TEST(numbers_of(connections_to_close(lost, "b")) == (std::vector<connection_number>{2, 3}),
        boost::test_tools::per_element());
    BOOST_TEST(!lost.may_arrive(1));
    BOOST_TEST(lost.may_arrive(2));
    BOOST_TEST(lost.may_arrive(3));
    // A server that does not report its process proves nothing.
    BOOST_TEST(connections_to_close(lost, "").size() == 2U);
    BOOST_TEST(lost.may_arrive(2));
}

BOOST_AUTO_TEST_CASE(connection_that_cannot_be_closed_is_tried_once_and_stays_unproven)
{
    lost_requests lost;
    lost.add(1, {.id = 71, .process = "a"});
    lost.on_close_refused(1);
    lost.on_close_refused(9);
    BOOST_TEST(connections_to_close(lost, "a").empty());
    BOOST_TEST(lost.may_arrive(1));
    // The server process has been replaced.
    lost.on_connected_to("b");
    BOOST_TEST(!lost.may_arrive(1));
}

BOOST_AUTO_TEST_CASE(forgotten_connection_stays_unproven)
{
    lost_requests lost;
    for (connection_number each = 1; each <= 1030; ++each)
        lost.add(each, {.id = 1, .process = "a"});
    BOOST_TEST(connections_to_close(lost, "a").size() == 1024U);
    BOOST_TEST(lost.may_arrive(1));
    BOOST_TEST(lost.may_arrive(6));
    lost.on_closed_by_server(7);
    BOOST_TEST(!lost.may_arrive(7));
    lost.on_connected_to("b");
    BOOST_TEST(lost.may_arrive(6));
    BOOST_TEST(!lost.may_arrive(8));
}

BOOST_AUTO_TEST_CASE(answer_settles_earlier_requests_on_the_same_connection)
{
    lost_requests lost;
    lost.add(1, {.id = 71, .process = "a"});
    unsettled_requests claim;
    BOOST_TEST(!claim.settle(2, lost));
    claim.add(1);
    BOOST_TEST(!claim.settle(2, lost));
    BOOST_TEST(!claim.empty());
    BOOST_TEST(claim.settle(1, lost));
    BOOST_TEST(claim.empty());
    // No unanswered request was left.
    BOOST_TEST(!claim.settle(1, lost));
}

BOOST_AUTO_TEST_CASE(claim_is_settled_after_its_last_unanswered_request)
{
    lost_requests lost;
    lost.add(1, {.id = 71, .process = "a"});
    lost.add(2, {.id = 72, .process = "a"});
    unsettled_requests claim;
    claim.add(1);
    claim.add(2);
    lost.on_closed_by_server(1);
    BOOST_TEST(!claim.settle(3, lost));
    BOOST_TEST(!claim.empty());
    lost.on_closed_by_server(2);
    BOOST_TEST(claim.settle(3, lost));
}

BOOST_AUTO_TEST_SUITE_END()
