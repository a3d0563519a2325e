// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// What is no Redis server may be at the other end: a wrong port, a broken proxy, anyone between without TLS.

#include "fixture.hpp"
#include "redis/batch.hpp"
#include "redis/framing.hpp"
#include "redis/link.hpp"
#include "support/peer.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/asio/ip/address_v4.hpp>
#include <boost/redis/resp3/parser.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

using namespace std::string_literals;

std::string repeated(std::string_view text, std::size_t times)
{
    std::string all;
    all.reserve(text.size() * times);
    for (std::size_t i = 0; i < times; ++i)
        all += text;
    return all;
}

const std::string greeting = "%2\r\n$2\r\nid\r\n:5\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";

/// As a Redis server sends them: most kinds of reply that we read.
const std::vector<std::string> orderly{
    greeting + "$29\r\nrun_id:a\r\nredis_version:7.0.0\r\n:1\r\n+OK\r\n:1700000000000001\r\n",
    "+OK\r\n:1700000000000001\r\n_\r\n*3\r\n:0\r\n:59999\r\n$3\r\nabc\r\n",
    "-ERR unknown command\r\n!21\r\nSYNTAX invalid syntax\r\n$0\r\n\r\n",
    ">3\r\n$9\r\nsubscribe\r\n$1\r\nk\r\n:1\r\n+PONG\r\n>3\r\n$7\r\nmessage\r\n$1\r\nk\r\n$0\r\n\r\n",
    "*2\r\n$1\r\n0\r\n*2\r\n*2\r\n$1\r\na\r\n:7\r\n*0\r\n,1.5\r\n#t\r\n(12345678901234567890\r\n=7\r\ntxt:abc\r\n",
    "~2\r\n+a\r\n+b\r\n%0\r\n$11\r\n\r\n$\r\n;0\r\n|1\r\n+odd\r here \n\r\r\n",
};

const std::vector<std::string> disorderly{
    "$\r\n",
    "=\r\n",
    "!\r\n",
    "*1\r\n$\r\n",
    ";0\r\n",
    ";5\r\nabcde\r\n",
    "$?\r\n;0\r\n",
    "$?\r\n;3\r\nabc\r\n",
    "$-2\r\nxx\r\n",
    "$18446744073709551615\r\nxxxx",
    "$18446744073709551614\r\nxxxx",
    "$9223372036854775807\r\nxxxx",
    "*18446744073709551615\r\n",
    "%9223372036854775808\r\n+a\r\n",
    "*\r\n",
    "%\r\n",
    "|1\r\n+a\r\n+b\r\n+OK\r\n",
    "\r\n",
    "\n",
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "SSH-2.0-OpenSSH_9.2p1\r\n",
    "\x16\x03\x01\x02"s,
    "\0\0\0\0"s,
    "$3\r\nabcde\r\n",
    "$3x\r\nabc\r\n",
    "*1 \r\n",
    "+" + std::string(70'000, 'a') + "\r\n",
};

/// Whether all of it is let through, in pieces of `size`.
bool accepted(std::string_view bytes, std::size_t size)
{
    redis::detail::framing frames;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
        if (!frames.accept(bytes.substr(at, size)))
            return false;
    }
    return true;
}

/// Some bytes of `text` are others, doubled, or gone; or it goes on with a piece of another.
class mutator
{
public:
    explicit mutator(std::uint32_t seed) : random_(seed) {}

    [[nodiscard]] std::size_t below(std::size_t limit)
    {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
    }
    [[nodiscard]] std::string next()
    {
        auto text = orderly[below(orderly.size())];
        for (auto changes = 1 + below(4); changes > 0 && !text.empty(); --changes)
            change(text);
        return text;
    }

private:
    void change(std::string& text)
    {
        // What frames are made of, and what could be taken for it.
        constexpr std::string_view frames = "$=!*%~>|;+-:_,#(?\r\n0123456789\0\xff"
                                            "x";
        const auto at = below(text.size());
        switch (below(6)) {
        case 0:
            text[at] = frames[below(frames.size())];
            return;
        case 1:
            text.insert(at, 1, frames[below(frames.size())]);
            return;
        case 2:
            text.erase(at, 1 + below(8));
            return;
        case 3:
            text.insert(at, text, below(text.size()), 1 + below(16));
            return;
        case 4: {
            const auto& odd = disorderly[below(disorderly.size() - 1)];
            text.insert(at, odd);
            return;
        }
        default: {
            const auto& other = orderly[below(orderly.size())];
            text.replace(at, std::string::npos, other, below(other.size()));
        }
        }
    }

    std::mt19937 random_;
};

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
    reader into;
    error_code code;
    while (!bytes.empty() && boost::redis::resp3::parse(parser, bytes, into, code) && !code) {
        bytes.remove_prefix(parser.get_consumed());
        parser.reset();
    }
    return into.replies;
}

/// A connection that sends a request with three replies, reads messages as well, and lives until the peer ends it.
void run_a_link(asio::io_context& io, std::uint16_t port)
{
    using namespace redis::detail;
    const settings config(redis::options{.url = "redis://127.0.0.1:" + std::to_string(port)});
    const auto on = std::make_shared<link>(io.get_executor(), config, endpoint{"127.0.0.1", std::to_string(port)},
        false, asio::ssl::context(asio::ssl::context::tls_client), 1);
    boost::redis::request request;
    request.get_config() = once;
    for (int i = 0; i < 3; ++i)
        request.push("PING");
    std::vector<reply> replies(3);
    std::size_t complete = 0;
    using event = boost::redis::any_adapter::parse_event;
    int open = 3;
    on->exec(request,
        boost::redis::any_adapter(
            boost::redis::any_adapter::impl_t([&](event what, const boost::redis::resp3::node_view& node, error_code&) {
                if (what == event::node)
                    replies[complete].add(node);
                else if (what == event::done)
                    ++complete;
            })),
        [&](error_code, std::size_t) { --open; });
    const std::function<void(error_code)> listen = [&](error_code code) {
        on->messages().clear();
        if (code)
            --open;
        else
            on->receive(listen);
    };
    on->receive(listen);
    on->run([&](error_code) {
        on->close();
        --open;
    });
    run_until(io, [&] { return open == 0; });
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_hostile)

BOOST_AUTO_TEST_CASE(frames_are_followed_however_they_are_cut)
{
    for (const std::size_t size : {1u, 2u, 3u, 7u, 1'000'000u}) {
        for (std::size_t i = 0; i < orderly.size(); ++i)
            BOOST_TEST(accepted(orderly[i], size), orderly[i]);
        // What a payload holds is nobody's business.
        BOOST_TEST(accepted("$11\r\n\r\n$\r\n;0\r\n|1\r\n+odd\r here \n\r\r\n+OK\r\n", size));
        BOOST_TEST(accepted("+" + std::string(60'000, 'a') + "\r\n+OK\r\n", size));
        for (const auto& each : disorderly) {
            BOOST_TEST(!accepted(each, size), each.substr(0, 60));
            BOOST_TEST(!accepted(orderly[0] + each, size), each.substr(0, 60));
        }
    }
    redis::detail::framing frames;
    BOOST_TEST(!frames.accept("?"));
    BOOST_TEST(!frames.accept("+OK\r\n"));
}

BOOST_AUTO_TEST_CASE(what_is_let_through_is_parsed)
{
    for (std::size_t i = 0; i < orderly.size(); ++i)
        BOOST_TEST(parse_all(orderly[i]) > 2u);
    mutator some(20'260'101);
    std::size_t let_through = 0;
    for (int i = 0; i < 200'000; ++i) {
        const auto text = some.next();
        if (!accepted(text, 1 + some.below(64)))
            continue;
        ++let_through;
        parse_all(text);
    }
    BOOST_TEST(let_through > 10'000u);
}

BOOST_AUTO_TEST_CASE(a_connection_survives_whatever_it_reads)
{
    asio::io_context io;
    mutator some(4'711);
    std::string said;
    peer server(io, [&](peer::talk& with) -> asio::awaitable<void> {
        co_await with.hear();
        // In two pieces, cut anywhere.
        const auto cut = said.empty() ? 0 : some.below(said.size());
        co_await with.say(said.substr(0, cut));
        co_await with.say(said.substr(cut));
    });
    for (const auto& each : disorderly) {
        said = each;
        run_a_link(io, server.port());
    }
    for (int i = 0; i < 2'000; ++i) {
        said = some.next();
        run_a_link(io, server.port());
    }
    BOOST_TEST(server.connections() == 2'000u + disorderly.size());
}

BOOST_AUTO_TEST_CASE(what_is_no_redis_server_is_an_error_and_grants_nothing)
{
    std::vector<std::string> cases = disorderly;
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

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
