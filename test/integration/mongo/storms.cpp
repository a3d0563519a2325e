// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_scene.hpp"
#include "support/storm.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// Above the shorter of those that the crowd asks for, so that it ends while a fault lasts.
constexpr auto lease = 1s;

/// As BSON has it.
std::string in_words(const std::string& key)
{
    return std::string("\0", 1) + key + std::string("\0", 1);
}

struct storm : mongo_scene
{
    [[nodiscard]] mongo::options by_way(const way& over) const
    {
        auto how = options(mongodb_url(over.link.port()));
        how.operation_timeout = 1500ms;
        how.connect_timeout = 1s;
        return how;
    }
    [[nodiscard]] bool is_empty() const { return holders_at(server->port()).empty(); }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_storms, storm, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_crowd_whose_links_and_server_fail_at_random_is_granted_each_lock_one_at_a_time)
{
    crowd all(random_mix::first_seed());
    std::vector<locker> lockers;
    std::vector<std::unique_ptr<way>> ways;
    std::vector<running<void>> faults;
    for (int i = 0; i < 4; ++i) {
        auto& over = *ways.emplace_back(std::make_unique<way>(server->port()));
        lockers.push_back(add(by_way(over)));
        faults.push_back(start(io, hurt(over, all.draw, lease, in_words)));
    }
    faults.push_back(start(io, hurt(*server, all.draw, lease)));
    live_through(io, all, lockers, ways, std::move(faults));
    until([&] { return is_empty(); });
    for (const auto& each : lockers)
        BOOST_TEST(run(each.shutdown(10s)).clean());
    BOOST_TEST(is_empty());
    io.restart();
    io.run_for(10s);
    BOOST_TEST(io.stopped(), "something keeps the context");
}

BOOST_AUTO_TEST_CASE(a_crowd_on_several_threads_is_granted_each_lock_one_at_a_time_while_its_links_are_cut)
{
    dice draw(random_mix::first_seed());
    progress on;
    way over(server->port());
    std::vector<locker> all;
    std::vector<std::future<void>> working;
    several_threads pool;
    for (int i = 0; i < 4; ++i) {
        auto how = options(mongodb_url(over.link.port()));
        // Connections end in the midst of it, too.
        if (i % 2 == 0)
            how.idle_timeout = 0ms;
        const auto& by = all.emplace_back(mongo::make_adapter(pool.io.get_executor(), how));
        for (int j = 0; j < 6; ++j) {
            working.push_back(asio::co_spawn(
                asio::make_strand(pool.io), visit_until_enough(by, on, dice(draw.seed())), asio::use_future));
        }
    }
    const auto go_on = [&] {
        const auto before = on.grants.load();
        wait_until([&] { return on.grants > before + 50; });
    };
    for (int cuts = 0; cuts < 3; ++cuts) {
        go_on();
        over.link.refuse(true);
        over.link.refuse(false);
    }
    go_on();
    on.enough = true;
    for (auto& each : working) {
        BOOST_TEST_REQUIRE((each.wait_for(60s) == std::future_status::ready));
        each.get();
    }
    for (const auto& by : all)
        BOOST_TEST(asio::co_spawn(pool.io, by.shutdown(10s), asio::use_future).get().clean());
    for (const auto& wrong : on.inside.wrong())
        BOOST_ERROR(wrong);
    BOOST_TEST(is_empty());
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
            auto how = by_way(over);
            // What the ones before have left stands in nobody's way.
            how.collection = "round" + std::to_string(round);
            how.idle_timeout = draw.once_in(2) ? 50ms : 0ms;
            all.emplace_back(mongo::make_adapter(own->get_executor(), how));
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
            server->pause();
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
        server->resume();
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
