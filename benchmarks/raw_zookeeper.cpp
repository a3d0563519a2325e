// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "alternation.hpp"
#include "zookeeper.hpp"

#include "zookeeper/session/session.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

namespace zk = colock::zookeeper::detail;

/// Ignores all events.
class ignored_events final : public zk::session_events
{
    void on_connected() noexcept override {}
    void on_suspended() noexcept override {}
    void on_unreachable(const colock::zookeeper::detail::connection_failure&) noexcept override {}
    void on_lease_ended() noexcept override {}
    void on_expired() noexcept override {}
    void on_history_lost() noexcept override {}
    void on_denied() noexcept override {}
    void on_changed(std::string_view) noexcept override {}
    void on_log(std::string_view) noexcept override {}
};

/// \param start starts the request, and receives the completion
template <class Start>
asio::awaitable<zk::reply> answer_of(Start start)
{
    return asio::async_initiate<const asio::use_awaitable_t<>, void(zk::reply)>(
        [](auto handler, Start begin) {
            begin(zk::reply_handler(
                [then = std::move(handler)](zk::reply reply) mutable { std::move(then)(std::move(reply)); }));
        },
        asio::use_awaitable, std::move(start));
}

void expect(const zk::reply& reply, bool may_exist = false)
{
    if (!reply.ok() && !(may_exist && reply.outcome == zk::status::node_exists))
        throw std::runtime_error("the raw loop was refused by code " + std::to_string(reply.code));
}

/// Data and a node name of the same size as those of colock's nodes.
const std::string node_data(80, 'd');
const std::string node_name = std::string(32, '0') + "-x-";

std::string folder_of(std::size_t key)
{
    return "/colock/raw/" + workload::name(key);
}

asio::awaitable<void> make_folder(zk::requests& requests, std::size_t key)
{
    expect(co_await answer_of([&requests, folder = folder_of(key)](zk::reply_handler done) {
        requests.create(folder, {}, zk::node_kind::container, std::move(done));
    }),
        true);
}

asio::awaitable<void> drive(zk::requests& requests, const workload& load, progress& counted, std::size_t key)
{
    for (std::size_t each = key; each < load.keys; each += load.in_flight)
        co_await make_folder(requests, each);
    for (; !counted.stopping; key = load.next(key)) {
        const auto reply =
            co_await answer_of([&requests, path = folder_of(key) + '/' + node_name](zk::reply_handler done) {
                requests.create(path, node_data, zk::node_kind::ephemeral_sequential, std::move(done));
            });
        // The server deletes empty containers once a minute.
        if (reply.outcome == zk::status::no_node) {
            co_await make_folder(requests, key);
            continue;
        }
        expect(reply);
        expect(co_await answer_of(
            [&requests, &path = reply.text](zk::reply_handler done) { requests.remove(path, std::move(done)); }));
        ++counted.pairs;
    }
}

asio::awaitable<void> connect(zk::session& talk)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    const auto limit = std::chrono::steady_clock::now() + 10s;
    while (!talk.connected()) {
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error("the raw loop cannot connect");
        timer.expires_after(1ms);
        co_await timer.async_wait();
    }
    for (const char* const folder : {"/colock", "/colock/raw"})
        expect(co_await answer_of([&talk, folder](zk::reply_handler done) {
            talk.get_requests().create(folder, {}, zk::node_kind::persistent, std::move(done));
        }),
            true);
}

/// A session that is connected while this object exists.
struct raw_session
{
    explicit raw_session(const workload& at)
        : talk(zk::session::make(io.get_executor(), {.target = {.servers = {{at.host, at.port}}}}, events))
    {
        talk->start();
        run_until_done(io, connect(*talk));
    }
    raw_session(const raw_session&) = delete;
    raw_session& operator=(const raw_session&) = delete;
    ~raw_session()
    {
        talk->close(5s, [](bool) {});
        io.restart();
        io.run();
    }

    asio::io_context io{1};
    std::shared_ptr<ignored_events> events = std::make_shared<ignored_events>();
    std::shared_ptr<zk::session> talk;
};

asio::awaitable<void> time_writes(zk::requests& requests, std::size_t count, std::vector<double>& taken)
{
    using clock = std::chrono::steady_clock;
    while (taken.size() < count) {
        const auto start = clock::now();
        expect(co_await answer_of(
            [&requests](zk::reply_handler done) { requests.write("/colock/raw", node_data, std::move(done)); }));
        taken.push_back(std::chrono::duration<double, std::milli>(clock::now() - start).count());
    }
}

} // namespace

rate run_raw_nodes(const workload& load)
{
    raw_session raw(load);
    return run_workers(raw.io, load,
        [&](progress& counted, std::size_t number) { return drive(raw.talk->get_requests(), load, counted, number); });
}

std::vector<double> time_raw_writes(const workload& at, std::size_t count)
{
    raw_session raw(at);
    std::vector<double> times;
    run_until_done(raw.io, time_writes(raw.talk->get_requests(), count, times));
    return times;
}

} // namespace bench
