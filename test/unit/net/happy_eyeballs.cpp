// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/happy_eyeballs.hpp"
#include "net/resolve.hpp"
#include "support/jump.hpp"
#include "support/run.hpp"
#include "support/sockets.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;
using asio::ip::tcp;
using remote::happy_eyeballs;

namespace {

/// A listener whose kernel queue accepts connections.
struct listener
{
    explicit listener(asio::io_context& io, int backlog = 16) : socket(io, tcp::v4())
    {
        socket.bind({asio::ip::address_v4::loopback(), 0});
        socket.listen(backlog);
    }
    [[nodiscard]] tcp::endpoint where() const { return socket.local_endpoint(); }

    tcp::acceptor socket;
};

/// A listener that never answers, because its listen queue is full.
struct black_hole
{
    black_hole()
    {
        for (auto& each : queue_fillers) {
            each.emplace(never_run);
            each->async_connect(where(), [](const boost::system::error_code&) {});
        }
    }
    [[nodiscard]] tcp::endpoint where() const { return full.where(); }

    asio::io_context never_run;
    listener full{never_run, 0};
    std::optional<tcp::socket> queue_fillers[8];
};

/// Returns an endpoint that refuses connections.
tcp::endpoint refusing_endpoint()
{
    return {asio::ip::address_v4::loopback(), free_port()};
}

std::size_t winner_of(asio::io_context& io, const std::vector<tcp::endpoint>& endpoints,
    const std::function<void(happy_eyeballs&)>& meanwhile = {})
{
    const auto started = std::make_shared<happy_eyeballs>(io.get_executor());
    std::optional<std::size_t> winner;
    started->run(endpoints, [&](std::size_t which) { winner = which; });
    if (meanwhile)
        meanwhile(*started);
    virtual_clock::advance(io, 1s, 125ms);
    run_until(io, [&] { return winner.has_value(); });
    return *winner;
}

struct clock_fixture
{
    virtual_clock clock;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(remote_happy_eyeballs, clock_fixture)

BOOST_AUTO_TEST_CASE(first_address_that_accepts_a_connection_wins)
{
    asio::io_context io;
    const listener first(io);
    const listener second(io);
    const black_hole hole;
    BOOST_TEST(winner_of(io, {second.where(), first.where()}) < 2U);
    BOOST_TEST(winner_of(io, {first.where(), hole.where()}) == 0U);
    BOOST_TEST(winner_of(io, {hole.where(), first.where()}) == 1U);
    BOOST_TEST(winner_of(io, {hole.where(), refusing_endpoint(), hole.where(), first.where()}) == 3U);
    BOOST_TEST(winner_of(io, {refusing_endpoint(), refusing_endpoint(), first.where()}) == 2U);
}

BOOST_AUTO_TEST_CASE(silent_address_delays_the_next_by_the_recommended_time)
{
    asio::io_context io;
    const black_hole hole;
    listener last(io);
    last.socket.non_blocking(true);
    const auto try_accept = [&] {
        boost::system::error_code failed;
        static_cast<void>(last.socket.accept(failed));
        return !failed;
    };
    const auto started = std::make_shared<happy_eyeballs>(io.get_executor());
    started->run({hole.where(), hole.where(), last.where()}, [](std::size_t) {});
    virtual_clock::advance(io, 375ms, 125ms);
    BOOST_TEST(!try_accept());
    // The kernel accepts a local connection before `connect` returns.
    jump(io, 125ms);
    BOOST_TEST(try_accept());
}

BOOST_AUTO_TEST_CASE(last_address_may_be_silent_after_one_that_refuses)
{
    asio::io_context io;
    const black_hole hole;
    const auto started = std::make_shared<happy_eyeballs>(io.get_executor());
    std::optional<std::size_t> winner;
    started->run({refusing_endpoint(), hole.where()}, [&](std::size_t which) { winner = which; });
    // The timer of the first attempt is due while the last one runs.
    virtual_clock::advance(io, 1s, 125ms);
    BOOST_TEST(!winner.has_value());
    started->stop();
    run_until(io, [&] { return winner.has_value(); });
    BOOST_TEST(*winner == 0U);
}

BOOST_AUTO_TEST_CASE(order_is_unchanged_without_a_winner)
{
    asio::io_context io;
    const black_hole hole;
    BOOST_TEST(winner_of(io, {refusing_endpoint(), refusing_endpoint()}) == 0U);
    BOOST_TEST(winner_of(io, {}) == 0U);
    // A single address is not tried, because there is no other to choose.
    BOOST_TEST(winner_of(io, {hole.where()}) == 0U);
    BOOST_TEST(winner_of(io, {hole.where(), hole.where()}, [](happy_eyeballs& attempts) { attempts.stop(); }) == 0U);
    io.poll();
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(addresses_of_a_name_start_with_the_winner)
{
    const std::vector<tcp::endpoint> three{{asio::ip::make_address("10.0.0.1"), 1},
        {asio::ip::make_address("10.0.0.2"), 1}, {asio::ip::make_address("10.0.0.3"), 1}};
    const auto found = tcp::resolver::results_type::create(three.begin(), three.end(), "redis.example", "1");
    const auto rotated = remote::rotated_to(1, found);
    BOOST_TEST_REQUIRE(rotated.size() == 3U);
    auto next = rotated.begin();
    for (const auto which : {1U, 2U, 0U}) {
        BOOST_TEST((next->endpoint() == three[which]));
        BOOST_TEST(next->host_name() == "redis.example");
        ++next;
    }
}

BOOST_AUTO_TEST_CASE(context_destroyed_during_a_race_leaves_nothing)
{
    const black_hole hole;
    const auto captured = std::make_shared<int>();
    {
        asio::io_context io;
        const auto started = std::make_shared<happy_eyeballs>(io.get_executor());
        started->run({hole.where(), hole.where()}, [captured](std::size_t) {});
        io.poll();
    }
    BOOST_TEST(captured.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
