// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pubsub/shard_request.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

namespace colock::inline v0::redis::detail {

BOOST_AUTO_TEST_SUITE(redis_shard_request)

namespace {

reply error(std::string text)
{
    return {.type = reply::kind::error, .text = std::move(text)};
}

const reply no_channel = error("ERR wrong number of arguments for 'subscribe' command");
const reply moved = error("MOVED 7785 127.0.0.1:7001");

} // namespace

/// If this fails, the driver knows the commands. Once the oldest supported Boost does, `shard_request` can be replaced
/// by SSUBSCRIBE with a PING behind it.
BOOST_AUTO_TEST_CASE(driver_expects_one_reply_to_each_command)
{
    boost::redis::request commands;
    const shard_request request(commands, {"a"}, {"b", "c"});
    BOOST_TEST(commands.get_commands() == 6u);
    BOOST_TEST(commands.get_expected_responses() == 3u);
    BOOST_TEST(!request.is_answered());
}

BOOST_AUTO_TEST_CASE(request_ends_when_all_subscribes_were_refused)
{
    boost::redis::request commands;
    shard_request request(commands, {"a"}, {"b", "c"});
    // The second command was refused, too, so there are four replies.
    for (const auto& each : {moved, no_channel, no_channel}) {
        BOOST_TEST(request.accept(each));
        BOOST_TEST(!request.is_answered());
    }
    BOOST_TEST(request.accept(no_channel));
    BOOST_TEST(request.is_answered());
}

/// A PING was sent behind the request, and has received one of its replies.
BOOST_AUTO_TEST_CASE(reply_to_a_ping_takes_the_place_of_a_refusal)
{
    boost::redis::request commands;
    shard_request request(commands, {}, {"a"});
    BOOST_TEST(request.accept(moved));
    BOOST_TEST(!request.is_answered());
    BOOST_TEST(request.accept({.type = reply::kind::text, .text = "PONG"}));
    BOOST_TEST(request.is_answered());
}

BOOST_AUTO_TEST_CASE(other_refusals_are_not_accepted)
{
    boost::redis::request commands;
    shard_request request(commands, {}, {"a"});
    for (const auto* const text : {"CLUSTERDOWN Hash slot not served", "NOPERM this user has no permissions",
             "ERR unknown command 'SSUBSCRIBE', with args beginning with: 'a' "})
        BOOST_TEST(!request.accept(error(text)), text);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
