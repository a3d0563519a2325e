// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "one_server.hpp"
#include "support/storm.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// Of a session; it is held no longer than that.
constexpr auto lease = 2s;

std::string in_path(const std::string& key)
{
    return '/' + key + '/';
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_storms, one_server)

BOOST_AUTO_TEST_CASE(a_crowd_whose_links_and_server_fail_at_random_is_granted_each_lock_one_at_a_time)
{
    crowd all(random_mix::first_seed());
    std::vector<locker> lockers;
    std::vector<std::unique_ptr<way>> ways;
    std::vector<running<void>> faults;
    for (int i = 0; i < 4; ++i) {
        auto& over = *ways.emplace_back(std::make_unique<way>(server->port()));
        lockers.push_back(add(lease, zookeeper_url(over.link.port())));
        faults.push_back(start(io, hurt(over, all.draw, lease, in_path)));
    }
    faults.push_back(start(io, hurt(*server, all.draw, lease)));
    live_through(io, all, lockers, ways, std::move(faults));
    check_end();
}

BOOST_AUTO_TEST_CASE(a_crowd_on_several_threads_is_granted_each_lock_one_at_a_time_while_its_links_are_cut)
{
    dice draw(random_mix::first_seed());
    progress on;
    std::vector<locker> all;
    std::vector<std::future<void>> working;
    several_threads pool;
    for (int i = 0; i < 4; ++i) {
        auto how = options(10s, zookeeper_url(link.port()));
        // Sessions end in the midst of it, too.
        if (i % 2 == 0)
            how.idle_timeout = 0ms;
        const auto& by = all.emplace_back(zookeeper::make_adapter(pool.io.get_executor(), how));
        for (int j = 0; j < 6; ++j) {
            working.push_back(asio::co_spawn(
                asio::make_strand(pool.io), visit_until_enough(by, on, dice(draw.seed())), asio::use_future));
        }
    }
    for (std::uint64_t cuts = 1; cuts <= 3; ++cuts) {
        const auto before = on.grants.load();
        wait_until([&] { return on.grants > before + 50; });
        link.refuse(true);
        link.refuse(false);
        wait_until([&] { return all[1].stats().reconnects >= cuts && all[3].stats().reconnects >= cuts; });
    }
    on.enough = true;
    for (auto& each : working) {
        BOOST_TEST_REQUIRE((each.wait_for(60s) == std::future_status::ready));
        each.get();
    }
    for (const auto& by : all)
        BOOST_TEST(asio::co_spawn(pool.io, by.shutdown(10s), asio::use_future).get().clean());
    for (const auto& wrong : on.inside.wrong())
        BOOST_ERROR(wrong);
    BOOST_TEST(nodes().empty());
}

/// Whatever is under way, and whether its lockers go before it or after it.
BOOST_AUTO_TEST_CASE(a_context_may_go_at_any_moment_of_a_storm)
{
    auto draw = dice(random_mix::first_seed());
    way over(server->port());
    for (int round = 0; round < 15; ++round) {
        crowd those(draw.seed());
        std::vector<locker> all;
        std::optional<asio::io_context> own(std::in_place);
        for (int i = 0; i < 3; ++i) {
            auto how = options(2s, zookeeper_url(over.link.port()));
            // What the ones before have left stands in nobody's way.
            how.url += '/' + std::to_string(round);
            how.idle_timeout = draw.once_in(2) ? 50ms : 0ms;
            all.emplace_back(zookeeper::make_adapter(own->get_executor(), how));
            for (int j = 0; j < 5; ++j)
                asio::co_spawn(*own, those.stay(all.back(), over), asio::detached);
        }
        own->run_for(draw.time_below(300ms));
        switch (draw.below(4)) {
        case 0:
            over.link.refuse(true);
            break;
        case 1:
            over.link.silence(true);
            break;
        case 2:
            those.is_safe = false;
            for (const auto each : sessions_of(server->port(), chroot())) {
                try {
                    end_session(server->port(), each);
                } catch (const std::runtime_error&) {
                    // It was over before that.
                }
            }
            break;
        default:
            break;
        }
        own->run_for(draw.time_below(300ms));
        if (draw.once_in(2))
            all.clear();
        if (draw.once_in(3))
            own->poll_one();
        own.reset();
        over.link.refuse(false);
        over.link.silence(false);
    }
    until([&] { return nodes().empty(); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
