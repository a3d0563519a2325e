// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/command.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <stdexcept>
#include <utility>

#include <mongoc/mongoc.h>

namespace colock::inline v0::mongo::detail {

std::ostream& operator<<(std::ostream& to, answer::kind what)
{
    return to << static_cast<int>(what);
}

} // namespace colock::inline v0::mongo::detail

using namespace colock::mongo::detail;
using kind = answer::kind;

BOOST_AUTO_TEST_SUITE(mongo_commands)

BOOST_AUTO_TEST_CASE(refused_command_leaves_the_connection_usable)
{
    const auto got = judge_failure(MONGOC_ERROR_SERVER, 59, "no such command");
    BOOST_TEST(got.outcome == kind::refused);
    BOOST_TEST(got.code == 59);
    BOOST_TEST(got.text == "no such command");
    BOOST_TEST(!got.ends_connection);
}

BOOST_AUTO_TEST_CASE(former_primary_makes_the_outcome_unknown)
{
    for (const unsigned code : {11600u, 11602u, 10107u, 13435u, 13436u, 189u, 91u, 10058u}) {
        const auto got = judge_failure(MONGOC_ERROR_SERVER, code, "");
        BOOST_TEST(got.outcome == kind::unknown);
        BOOST_TEST(got.ends_connection);
    }
}

BOOST_AUTO_TEST_CASE(unmet_write_concern_makes_the_outcome_unknown)
{
    const auto got = judge_failure(MONGOC_ERROR_WRITE_CONCERN, 64, "waiting for replication timed out");
    BOOST_TEST(got.outcome == kind::unknown);
    BOOST_TEST(got.code == 64);
    BOOST_TEST(!got.ends_connection);
}

BOOST_AUTO_TEST_CASE(lost_connection_makes_the_outcome_unknown)
{
    BOOST_TEST(judge_failure(MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "").outcome == kind::unknown);
    BOOST_TEST(judge_failure(MONGOC_ERROR_PROTOCOL, MONGOC_ERROR_PROTOCOL_INVALID_REPLY, "").outcome == kind::unknown);
    BOOST_TEST(judge_failure(MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "").ends_connection);
}

BOOST_AUTO_TEST_CASE(failed_server_selection_is_unsent)
{
    const auto got = judge_failure(MONGOC_ERROR_SERVER_SELECTION, MONGOC_ERROR_SERVER_SELECTION_FAILURE, "");
    BOOST_TEST(got.outcome == kind::unsent);
    BOOST_TEST(got.ends_connection);
}

BOOST_AUTO_TEST_CASE(cause_of_a_failed_connection_is_reported_without_a_server_error)
{
    auto unsent = judge_failure(MONGOC_ERROR_SERVER_SELECTION, MONGOC_ERROR_SERVER_SELECTION_FAILURE, "no server");
    unsent.set_cause({}, false);
    BOOST_TEST(unsent.text == "no server");
    unsent.set_cause(boost::asio::error::connection_refused, false);
    BOOST_TEST(unsent.outcome == kind::unsent);
    BOOST_TEST(unsent.cause == boost::asio::error::connection_refused);
    BOOST_TEST(unsent.text == "Connection refused");
    auto refused = judge_failure(MONGOC_ERROR_SERVER, 91, "shutting down");
    refused.set_cause(boost::asio::error::eof, true);
    BOOST_TEST(refused.text == "shutting down");
    BOOST_TEST(!refused.cause);
}

BOOST_AUTO_TEST_CASE(command_that_may_have_arrived_is_unknown)
{
    auto silent = judge_failure(MONGOC_ERROR_SERVER_SELECTION, MONGOC_ERROR_SERVER_SELECTION_FAILURE, "no server");
    silent.set_cause(boost::asio::error::timed_out, true);
    BOOST_TEST(silent.outcome == kind::unknown);
}

BOOST_AUTO_TEST_CASE(lost_connection_without_a_sent_command_has_no_unknown_outcome)
{
    auto lost = judge_failure(MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "socket error");
    lost.set_cause(boost::asio::error::eof, true);
    BOOST_TEST(lost.outcome == kind::unknown);
    lost.set_cause(boost::asio::error::eof, false);
    BOOST_TEST(lost.outcome == kind::unsent);
    // A server that is stepping down has received the command.
    auto interrupted = judge_failure(MONGOC_ERROR_SERVER, 189, "stepping down");
    interrupted.set_cause(boost::asio::error::eof, false);
    BOOST_TEST(interrupted.outcome == kind::unknown);
}

BOOST_AUTO_TEST_CASE(a_document_moves_and_is_printed)
{
    auto first = document::from_json(R"({"a": 1, "b": {"c": "text"}})");
    auto second = std::move(first);
    BOOST_TEST(second.to_json() == R"({ "a" : 1, "b" : { "c" : "text" } })");
    // The text is longer than one that the document can hold without an allocation.
    auto large = document::from_json(R"({"a": ")" + std::string(1000, 'x') + R"("})");
    second = std::move(large);
    BOOST_TEST(second.to_json().size() > 1000);
    BOOST_CHECK_THROW(static_cast<void>(document::from_json("{")), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
