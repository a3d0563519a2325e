// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The Redis example of docs/fencing.md, compiled and tested.

#include "server.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/logger.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>
#include <tuple>

namespace colock::testing {

namespace {

namespace redis = boost::redis;

//[ redis
// Fences are compared as text: numbers in Lua are exact up to 2^53 only.
constexpr const char* write_if_not_older = R"(
local known = redis.call('HGET', KEYS[1], 'fence') or '0'
if #ARGV[1] < #known or (#ARGV[1] == #known and ARGV[1] < known) then return 0 end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2])
return 1)";

asio::awaitable<bool> write(redis::connection& to, std::string record, std::string value, std::uint64_t fence)
{
    redis::request asked;
    asked.push("EVAL", write_if_not_older, 1, record, fence, value);
    redis::response<int> answer;
    co_await to.async_exec(asked, answer, asio::deferred);
    co_return std::get<0>(answer).value() == 1; // 0: a later holder has written.
}
//]

} // namespace

BOOST_AUTO_TEST_SUITE(redis_lockers_and_faults)

BOOST_AUTO_TEST_CASE(paused_writer_is_rejected_by_its_fence)
{
    redis_server server;
    asio::io_context io;
    const locker locks(colock::redis::make_adapter(io.get_executor(), {.url = server.url()}));
    redis::connection records(io, redis::logger(redis::logger::level::disabled));
    redis::config where;
    where.addr = {"127.0.0.1", std::to_string(server.port())};
    records.async_run(where, asio::detached);
    const auto put = [&](const std::string& value, std::uint64_t fence) {
        return run_coro(io, write(records, "record", value, fence));
    };

    const auto paused = run_coro(io, locks.acquire("k"));
    BOOST_TEST(put("by the first", paused.fence()));
    static_cast<void>(run_coro(io, locks.break_lock("k")));
    const auto next = run_coro(io, locks.acquire("k"));
    BOOST_TEST(put("by the second", next.fence()));
    BOOST_TEST(!put("too late", paused.fence()));
    BOOST_TEST(put("once more", next.fence()));
    BOOST_TEST(server({"HGET", "record", "value"}) == "once more");

    // Fences that a double cannot distinguish, and one with more digits.
    constexpr std::uint64_t large = 9'007'199'254'740'993;
    BOOST_TEST(put("large", large));
    BOOST_TEST(!put("one less", large - 1));
    BOOST_TEST(put("longer", 10 * large));
    BOOST_TEST(!put("shorter", large));
    records.cancel();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
