// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "unit/redis/streams.hpp"
#include "redis/connection/framing.hpp"
#include "redis/pipeline/batch.hpp"

#include <boost/redis/resp3/parser.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace colock::testing {
namespace {

/// Tells whether all bytes are accepted in pieces of `size`.
bool accepted(std::string_view bytes, std::size_t size)
{
    redis::detail::framing frames;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
        if (!frames.accept(bytes.substr(at, size)))
            return false;
    }
    return true;
}

/// Parses as the driver does, with one reader for every reply.
struct reader
{
    void on_init() { read.clear(); }
    void on_node(const boost::redis::resp3::node_view& node, error_code&) { read.add(node); }
    void on_done() { ++replies; }

    redis::detail::reply read;
    std::size_t replies = 0;
};

std::size_t parse_all(std::string_view bytes)
{
    boost::redis::resp3::parser parser;
    reader counter;
    error_code error;
    while (!bytes.empty() && boost::redis::resp3::parse(parser, bytes, counter, error) && !error) {
        bytes.remove_prefix(parser.get_consumed());
        parser.reset();
    }
    return counter.replies;
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_streams)

BOOST_AUTO_TEST_CASE(frames_are_checked_in_pieces_of_any_size)
{
    for (const std::size_t size : {1u, 2u, 3u, 7u, 1'000'000u}) {
        for (std::size_t i = 0; i < valid_streams.size(); ++i)
            BOOST_TEST(accepted(valid_streams[i], size), valid_streams[i]);
        // The payload may have any content.
        BOOST_TEST(accepted("$11\r\n\r\n$\r\n;0\r\n|1\r\n+odd\r here \n\r\r\n+OK\r\n", size));
        BOOST_TEST(accepted("+" + std::string(60'000, 'a') + "\r\n+OK\r\n", size));
        for (const auto& each : invalid_streams) {
            BOOST_TEST(!accepted(each, size), each.substr(0, 60));
            BOOST_TEST(!accepted(valid_streams[0] + each, size), each.substr(0, 60));
        }
    }
    redis::detail::framing frames;
    BOOST_TEST(!frames.accept("?"));
    BOOST_TEST(!frames.accept("+OK\r\n"));
}

BOOST_AUTO_TEST_CASE(reply_with_too_many_values_is_refused)
{
    const auto lists = [](std::size_t count, std::string_view each, std::size_t values) {
        std::string text;
        for (std::size_t i = 0; i < count; ++i) {
            text += each;
            for (std::size_t j = 0; j < values; ++j)
                text += "_\r\n";
        }
        return text;
    };
    constexpr std::size_t piece = 65'536;
    // More values than in the largest list of a semaphore's holders that has been observed.
    BOOST_TEST(accepted(lists(1, "*1000000\r\n", 1'000'000) + lists(1, "%500000\r\n", 1'000'000), piece));
    BOOST_TEST(accepted(lists(3'000'000, "+OK\r\n", 0), piece));
    BOOST_TEST(!accepted(lists(1, "*3000000\r\n", 2'200'000), piece));
    BOOST_TEST(!accepted("*2500\r\n" + lists(2'200, "*1000\r\n", 1'000), piece));
    BOOST_TEST(!accepted("*2\r\n" + lists(2, "%600000\r\n", 1'200'000), piece));
    BOOST_TEST(!accepted("*3000000\r\n" + lists(2'200'000, "$1\r\na\r\n", 0), piece));
}

BOOST_AUTO_TEST_CASE(accepted_input_is_parsed)
{
    for (std::size_t i = 0; i < valid_streams.size(); ++i)
        BOOST_TEST(parse_all(valid_streams[i]) > 2u);
    mutator variants(20'260'101);
    std::size_t accepted_count = 0;
    for (int i = 0; i < 200'000; ++i) {
        const auto text = variants.next();
        if (!accepted(text, 1 + variants.below(64)))
            continue;
        ++accepted_count;
        parse_all(text);
    }
    BOOST_TEST(accepted_count > 10'000u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
