// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/command.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <stdexcept>
#include <utility>

#include <mongoc/mongoc.h>

namespace colock::mongo::detail {

std::ostream& operator<<(std::ostream& to, answer::kind what)
{
    return to << static_cast<int>(what);
}

} // namespace colock::mongo::detail

using namespace colock::mongo::detail;
using kind = answer::kind;

BOOST_AUTO_TEST_SUITE(mongo_commands)

BOOST_AUTO_TEST_CASE(what_the_server_refuses_has_not_happened_and_leaves_the_lane)
{
    const auto got = judge_failure(MONGOC_ERROR_SERVER, 59, "no such command");
    BOOST_TEST(got.what == kind::refused);
    BOOST_TEST(got.code == 59);
    BOOST_TEST(got.why == "no such command");
    BOOST_TEST(!got.spoils);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_no_primary_any_more_leaves_it_open)
{
    for (const unsigned code : {11600u, 11602u, 10107u, 13435u, 13436u, 189u, 91u, 10058u}) {
        const auto got = judge_failure(MONGOC_ERROR_SERVER, code, "");
        BOOST_TEST(got.what == kind::unknown);
        BOOST_TEST(got.spoils);
    }
}

BOOST_AUTO_TEST_CASE(a_write_concern_that_was_not_met_leaves_it_open)
{
    const auto got = judge_failure(MONGOC_ERROR_WRITE_CONCERN, 64, "waiting for replication timed out");
    BOOST_TEST(got.what == kind::unknown);
    BOOST_TEST(got.code == 64);
    BOOST_TEST(!got.spoils);
}

BOOST_AUTO_TEST_CASE(a_connection_that_ends_leaves_it_open)
{
    BOOST_TEST(judge_failure(MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "").what == kind::unknown);
    BOOST_TEST(judge_failure(MONGOC_ERROR_PROTOCOL, MONGOC_ERROR_PROTOCOL_INVALID_REPLY, "").what == kind::unknown);
    BOOST_TEST(judge_failure(MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "").spoils);
}

BOOST_AUTO_TEST_CASE(what_reached_no_server_was_not_sent)
{
    const auto got = judge_failure(MONGOC_ERROR_SERVER_SELECTION, MONGOC_ERROR_SERVER_SELECTION_FAILURE, "");
    BOOST_TEST(got.what == kind::unsent);
    BOOST_TEST(got.spoils);
}

BOOST_AUTO_TEST_CASE(a_connection_that_has_failed_is_blamed_for_what_no_server_has_said)
{
    auto unsent = judge_failure(MONGOC_ERROR_SERVER_SELECTION, MONGOC_ERROR_SERVER_SELECTION_FAILURE, "no server");
    unsent.blame({}, false);
    BOOST_TEST(unsent.why == "no server");
    unsent.blame(boost::asio::error::connection_refused, false);
    BOOST_TEST(unsent.what == kind::unsent);
    BOOST_TEST(unsent.cause == boost::asio::error::connection_refused);
    BOOST_TEST(unsent.why == "Connection refused");
    auto refused = judge_failure(MONGOC_ERROR_SERVER, 91, "shutting down");
    refused.blame(boost::asio::error::eof, true);
    BOOST_TEST(refused.why == "shutting down");
    BOOST_TEST(!refused.cause);
}

BOOST_AUTO_TEST_CASE(what_may_have_arrived_is_unknown_whatever_the_driver_says)
{
    auto silent = judge_failure(MONGOC_ERROR_SERVER_SELECTION, MONGOC_ERROR_SERVER_SELECTION_FAILURE, "no server");
    silent.blame(boost::asio::error::timed_out, true);
    BOOST_TEST(silent.what == kind::unknown);
}

BOOST_AUTO_TEST_CASE(a_document_moves_and_is_printed)
{
    auto first = document::from_json(R"({"a": 1, "b": {"c": "text"}})");
    auto second = std::move(first);
    BOOST_TEST(second.to_json() == R"({ "a" : 1, "b" : { "c" : "text" } })");
    // Longer than what fits without memory of its own.
    auto large = document::from_json(R"({"a": ")" + std::string(1000, 'x') + R"("})");
    second = std::move(large);
    BOOST_TEST(second.to_json().size() > 1000);
    BOOST_CHECK_THROW(static_cast<void>(document::from_json("{")), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
