// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "../tools/built_backends.hpp"
#include "alternation.hpp"
#include "contention.hpp"
#include "zookeeper.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace asio = boost::asio;

namespace bench {
namespace {

/// Counters that the server reports.
struct server_counts
{
    explicit server_counts(const workload& at)
    {
        asio::io_context io;
        asio::ip::tcp::socket socket(io);
        asio::connect(socket, asio::ip::tcp::resolver(io).resolve(at.host, at.port));
        asio::write(socket, asio::buffer(std::string_view("mntr")));
        std::string text;
        boost::system::error_code error;
        asio::read(socket, asio::dynamic_buffer(text), error);
        requests = number(text, "\nzk_packets_received\t");
        events = number(text, "\nzk_packets_sent\t") - requests;
        lock_nodes = number(text, "\nzk_ephemerals_count\t") - number(text, "\nzk_global_sessions\t");
    }

    static double number(const std::string& text, std::string_view name)
    {
        const auto at = text.find(name);
        if (at == text.npos)
            throw std::runtime_error("the server does not answer to mntr");
        return std::stod(text.substr(at + name.size()));
    }

    double requests;
    /// Number of notifications that the server has sent.
    double events;
    /// Number of nodes that hold locks or wait for them. Each session has one more ephemeral node, for its beats.
    double lock_nodes;
};

void count_pairs(const workload& at, const options& settings, report& results)
{
    constexpr int pairs = 1000;
    asio::io_context io{1};
    const colock::locker locker(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
    const auto work = [](colock::locker one, int count) -> asio::awaitable<void> {
        for (int i = 0; i < count; ++i) {
            colock::lock lock = co_await one.acquire(workload::name(static_cast<std::size_t>(i % 10)));
            co_await lock.release();
        }
    };
    run_until_done(io, work(locker, 10));
    const server_counts before(at);
    run_until_done(io, work(locker, pairs));
    const server_counts after(at);
    // Heartbeats depend on time.
    results.add({"requests per acquire and release, uncontended", (after.requests - before.requests) / pairs, "", 2.1,
        kind::counted});
}

void count_hand_offs(
    const workload& at, const options& settings, report& results, std::size_t lockers, std::size_t waiters)
{
    constexpr std::uint64_t releases = 1000;
    contention waiting(settings.backend, lockers);
    waiting.hold();
    const auto node_count = static_cast<double>(lockers + 1);
    waiting.start_waiters(waiters / lockers, [&] { return server_counts(at).lock_nodes >= node_count; });
    const auto name =
        std::to_string(waiters) + " waiters of " + (lockers == 1 ? "one locker" : std::to_string(lockers) + " lockers");
    const server_counts before(at);
    waiting.pass_on(releases);
    const server_counts after(at);
    const auto per_release = [&](double count) { return count / static_cast<double>(waiting.releases()); };
    results.add({name + ", nodes while one holds", before.lock_nodes, "", node_count, kind::counted});
    // A hand-off takes five requests: create the node, list the children, set the watch, list the children again,
    // delete the node. With one locker, the releasing holder wakes the next waiter. Heartbeats depend on time.
    results.add({name + ", requests per hand-off", per_release(after.requests - before.requests), "",
        lockers > 1 ? 5.3 : 3.3, kind::counted});
    results.add({name + ", events per hand-off", per_release(after.events - before.events), "", 1.1, kind::counted});
    waiting.finish();
}

} // namespace

void measure_zookeeper_waiters(const workload& at, const options& settings, report& results)
{
    results.begin("ZooKeeper: what locks cost the server, counted over 1000 releases, each waiter waits again");
    count_pairs(at, settings, results);
    count_hand_offs(at, settings, results, 1, 64);
    count_hand_offs(at, settings, results, 1, 1000);
    count_hand_offs(at, settings, results, 10, 10);
}

} // namespace bench
