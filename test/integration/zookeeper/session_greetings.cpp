// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Greetings of a server: incomplete, in pieces, and of servers that a session cannot use.
#include "fixture.hpp"
#include "support/handler_time.hpp"
#include "support/peer.hpp"
#include "support/sockets.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(zookeeper_session_greetings)

namespace {

using namespace std::string_literals;

/// A greeting with a timeout of 10 s, for session 1, with a password.
const std::string whole_greeting =
    "\0\0\0\x25\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\x01\0\0\0\x10"s + std::string(16, 'p') + "\0"s;

std::shared_ptr<session> start_session(
    client& other, std::uint16_t port, const std::shared_ptr<session_event_log>& events)
{
    auto made = session::make(asio::make_strand(other.io->get_executor()),
        {.target = {.servers = {{"127.0.0.1", std::to_string(port)}}}, .session_timeout = 2s}, events);
    made->start();
    return made;
}

} // namespace

BOOST_AUTO_TEST_CASE(server_of_another_protocol_is_recognized)
{
    client one(free_port());
    const peer other_server(*one.io, [](peer::talk& with) -> asio::awaitable<void> {
        co_await with.hear();
        co_await with.say("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: "
                          "close\r\n\r\n400 Bad Request");
        while (co_await with.hear()) {
        }
    });
    one.zk_session->abandon();
    const auto events = std::make_shared<session_event_log>();
    const auto lost = start_session(one, other_server.port(), events);
    one.until([&] { return !events->unreachable.empty(); });
    BOOST_TEST(events->unreachable.front() == "the peer is not a ZooKeeper server");
    BOOST_TEST(events->connections == 0);
    lost->abandon();
}

BOOST_AUTO_TEST_CASE(a_greeting_may_come_in_pieces)
{
    for (const std::size_t first : {1U, 3U, 4U, 17U, 24U, 40U}) {
        client one(free_port());
        const peer server(*one.io, [&](peer::talk& with) -> asio::awaitable<void> {
            co_await with.hear();
            co_await with.say(whole_greeting.substr(0, first));
            asio::steady_timer pause(co_await asio::this_coro::executor, 20ms);
            co_await pause.async_wait(asio::deferred);
            co_await with.say(whole_greeting.substr(first));
            while (co_await with.hear()) {
            }
        });
        const auto events = std::make_shared<session_event_log>();
        const auto opened = start_session(one, server.port(), events);
        one.until([&] { return opened->life().connected(); });
        BOOST_TEST(server.connections() == 1U);
        BOOST_TEST(events->unreachable.empty());
        opened->abandon();
    }
}

BOOST_AUTO_TEST_CASE(incomplete_greeting_ends_the_connection)
{
    for (const bool ends : {false, true}) {
        client one(free_port());
        int connection_count = 0;
        const peer server(*one.io, [&](peer::talk& with) -> asio::awaitable<void> {
            const bool is_first = ++connection_count == 1;
            co_await with.hear();
            co_await with.say(is_first ? whole_greeting.substr(0, 30) : whole_greeting);
            if (is_first && ends)
                co_return;
            while (co_await with.hear()) {
            }
        });
        const auto events = std::make_shared<session_event_log>();
        const auto opened = start_session(one, server.port(), events);
        BOOST_TEST((longest_handler(*one.io, [&] { return opened->life().connected(); }) < max_handler_time));
        BOOST_TEST(connection_count == 2);
        for (const auto& why : events->unreachable)
            BOOST_TEST(why != "the peer is not a ZooKeeper server");
        opened->abandon();
    }
}

/// The driver first connects to a server of another protocol, and to a ZooKeeper server at a later attempt.
BOOST_AUTO_TEST_CASE(server_is_found_after_servers_of_other_protocols)
{
    const std::string nonsense[] = {
        std::string(41, '\0'),
        // A greeting without a timeout and a session id means that the session has expired. A new session cannot have
        // expired.
        "\0\0\0\x25"s + std::string(19, '\0') + "\x10"s + std::string(17, '\0'),
        // A read-only server.
        "\0\0\0\x25\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\x01\0\0\0\x10"s + std::string(16, 'p') + "\x01"s,
        "+OK ready, but not for clients of ZooKeeper, of any version",
        "220 ready",
    };
    for (const auto& text : nonsense) {
        for (const std::size_t piece : {5U, 100U}) {
            client one(free_port());
            faulty_proxy link(shared_zookeeper());
            peer other_server(*one.io, [&](peer::talk& with) -> asio::awaitable<void> {
                co_await with.hear();
                for (std::size_t at = 0; at < text.size(); at += piece) {
                    co_await with.say(text.substr(at, piece));
                    asio::steady_timer pause(co_await asio::this_coro::executor, 5ms);
                    co_await pause.async_wait(asio::deferred);
                }
            });
            link.lead_to(other_server.port());
            const auto events = std::make_shared<session_event_log>();
            const auto opened = start_session(one, link.port(), events);
            one.until([&] { return !events->unreachable.empty(); });
            BOOST_TEST(events->unreachable.front() == "the peer is not a ZooKeeper server");
            BOOST_TEST(events->connections == 0);
            link.lead_to(shared_zookeeper());
            BOOST_TEST((longest_handler(*one.io, [&] { return events->connections == 1; }) < max_handler_time));
            std::optional<bool> proven;
            opened->close(10s, [&](bool got) { proven = got; });
            one.until([&] { return proven.has_value(); });
            BOOST_TEST(*proven);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
