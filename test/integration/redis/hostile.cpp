// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The peer is not a Redis server, or it is too old: a wrong port, a broken proxy, or an attacker on a connection
// without TLS.

#include "fixture.hpp"
#include "redis/connection/server_connection.hpp"
#include "redis/pipeline/batch.hpp"
#include "support/peer.hpp"
#include "support/print.hpp"
#include "unit/redis/streams.hpp"

#include <colock/locker.hpp>

#include <boost/asio/ip/address_v4.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

std::string repeated(std::string_view text, std::size_t times)
{
    std::string all;
    all.reserve(text.size() * times);
    for (std::size_t i = 0; i < times; ++i)
        all += text;
    return all;
}

/// Runs a connection until the peer closes it. Sends a request with three replies, and also receives messages.
void run_connection(asio::io_context& io, std::uint16_t port)
{
    using namespace redis::detail;
    const settings config(redis::options{.url = "redis://127.0.0.1:" + std::to_string(port)});
    const auto env = std::make_shared<server_connection>(io.get_executor(), config,
        endpoint{"127.0.0.1", std::to_string(port)}, false, asio::ssl::context(asio::ssl::context::tls_client), 1);
    boost::redis::request commands;
    for (int i = 0; i < 3; ++i)
        commands.push("PING");
    int open = 2;
    env->exec(std::move(commands), [](const reply_list&) {});
    const std::function<void(error_code)> listen = [&](error_code code) {
        env->received().messages.clear();
        if (code)
            --open;
        else
            env->receive(listen);
    };
    env->receive(listen);
    env->run([&](error_code) {
        env->close();
        --open;
    });
    run_until(io, [&] { return open == 0; });
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_hostile)

BOOST_AUTO_TEST_CASE(connection_survives_any_input, *boost::unit_test::enable_if<redis::detail::validates_replies>())
{
    asio::io_context io;
    mutator mutations(4'711);
    std::string reply_bytes;
    peer server(io, [&](peer::talk& with) -> asio::awaitable<void> {
        co_await with.hear();
        // The bytes are sent in two pieces, cut at a random position.
        const auto cut = reply_bytes.empty() ? 0 : mutations.below(reply_bytes.size());
        co_await with.say(reply_bytes.substr(0, cut));
        co_await with.say(reply_bytes.substr(cut));
    });
    for (const auto& each : invalid_streams) {
        reply_bytes = each;
        run_connection(io, server.port());
    }
    for (int i = 0; i < 2'000; ++i) {
        reply_bytes = mutations.next();
        run_connection(io, server.port());
    }
    BOOST_TEST(server.connections() == 2'000u + invalid_streams.size());
}

BOOST_AUTO_TEST_CASE(
    peer_other_than_redis_causes_an_error, *boost::unit_test::enable_if<redis::detail::validates_replies>())
{
    std::vector<std::string> cases = invalid_streams;
    cases.insert(cases.end(),
        {"$-1\r\n*-1\r\n", "-\r\n", ":\r\n", ":abc\r\n", "#x\r\n", ",nan\r\n", "_\r\n", repeated("*1\r\n", 100'000),
            repeated(">0\r\n", 100'000), "*1000000000\r\n" + repeated("+a\r\n", 1'000), repeated("+OK\r\n", 50),
            ">2\r\n$7\r\nmessage\r\n$1\r\nx\r\n", "%1\r\n$2\r\nid\r\n*0\r\n*0\r\n", greeting,
            "%2\r\n$2\r\nid\r\n$3\r\nabc\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$0\r\n\r\n:1\r\n",
            "%1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$0\r\n\r\n:1\r\n+OK\r\n*0\r\n", "+" + std::string(8 << 20, 'a')});
    asio::io_context io;
    std::vector<std::unique_ptr<peer>> servers;
    std::vector<std::unique_ptr<locker>> lockers;
    std::vector<running<std::optional<lock>>> all;
    for (const auto& each : cases) {
        servers.push_back(std::make_unique<peer>(io, [&each](peer::talk& with) -> asio::awaitable<void> {
            co_await with.hear();
            co_await with.say(each);
            while (co_await with.hear()) {
            }
        }));
        lockers.push_back(std::make_unique<locker>(redis::make_adapter(io.get_executor(),
            {.url = "redis://127.0.0.1:" + std::to_string(servers.back()->port()), .operation_timeout = 1s})));
        all.push_back(start(io, lockers.back()->try_acquire("k", {.ttl = 5s})));
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
        BOOST_TEST_CONTEXT(cases[i].substr(0, 60))
        {
            BOOST_CHECK_THROW(all[i].get(io), error);
        }
    }
    for (auto& each : servers)
        each->close();
    for (auto& each : lockers)
        run_coro(io, each->shutdown(0s));
}

namespace {

/// A server that reports the given version and closes the connection at the next request.
peer::service server_of(std::string version)
{
    const auto info = "redis_version:" + version + "\r\n";
    const auto reply_bytes = greeting + "$" + std::to_string(info.size()) + "\r\n" + info + "\r\n";
    return [reply_bytes](peer::talk& with) -> asio::awaitable<void> {
        co_await with.hear("INFO");
        co_await with.say(reply_bytes);
        co_await with.hear("EVAL");
    };
}

} // namespace

BOOST_AUTO_TEST_CASE(server_older_than_6_2_is_refused)
{
    struct
    {
        const char* version;
        bool refused;
    } const cases[] = {{"5.0.14", true}, {"6.0.16", true}, {"6.1.240", true}, {"6.2.0", false}, {"6.10.1", false},
        {"7.0.15", false}, {"10.0.0", false},
        // A server with an unknown version may be new enough.
        {"", false}, {"unstable", false}};
    for (const auto& each : cases) {
        BOOST_TEST_CONTEXT(each.version)
        {
            asio::io_context io;
            peer server(io, server_of(each.version));
            // A refusal ends the acquire at once. A server that is accepted closes the connection again and again.
            locker locks(redis::make_adapter(
                io.get_executor(), {.url = server.url(), .operation_timeout = each.refused ? 20s : 1s}));
            try {
                static_cast<void>(run_coro(io, locks.try_acquire("k")));
                BOOST_ERROR("was granted");
            } catch (const error& failed) {
                const auto expected = each.refused ? errc::misconfigured_backend : errc::unavailable;
                BOOST_TEST(failed.code() == expected, failed.what());
            }
            server.close();
            run_coro(io, locks.shutdown(0s));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
