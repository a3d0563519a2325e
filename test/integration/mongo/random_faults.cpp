// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/stress.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// Half of the duration of a long fault, which outlasts the shorter leases in the test.
constexpr auto lease = 1s;

/// Returns the text as encoded in BSON.
std::string in_words(const std::string& key)
{
    return std::string("\0", 1) + key + std::string("\0", 1);
}

struct storm : mongo_fixture
{
    [[nodiscard]] mongo::options by_way(const faulty_connection& over) const
    {
        auto how = options(mongodb_url(over.link.port()));
        how.operation_timeout = 1500ms;
        how.connect_timeout = 1s;
        return how;
    }
    [[nodiscard]] bool is_empty() const { return holders_at(server->port()).empty(); }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_random_faults, storm, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(mutual_exclusion_holds_while_links_and_server_fail_at_random)
{
    random_clients all(random_mix::first_seed());
    std::vector<locker> lockers;
    std::vector<std::unique_ptr<faulty_connection>> connections;
    std::vector<running<void>> faults;
    for (int i = 0; i < 4; ++i) {
        auto& over = *connections.emplace_back(std::make_unique<faulty_connection>(server->port()));
        lockers.push_back(add(by_way(over)));
        faults.push_back(start(io, inject_faults(over, all.draw, lease, in_words)));
    }
    faults.push_back(start(io, inject_faults(*server, all.draw, lease)));
    run_through_faults(io, all, lockers, connections, std::move(faults));
    until([&] { return is_empty(); });
    for (const auto& each : lockers)
        BOOST_TEST(run(each.shutdown(10s)).clean());
    BOOST_TEST(is_empty());
    io.restart();
    io.run_for(10s);
    BOOST_TEST(io.stopped(), "something keeps the context");
}

BOOST_AUTO_TEST_CASE(mutual_exclusion_holds_on_several_threads_while_links_are_cut)
{
    random_source draw(random_mix::first_seed());
    progress on;
    faulty_connection over(server->port());
    std::vector<locker> all;
    threaded_context pool;
    for (int i = 0; i < 4; ++i) {
        auto how = options(mongodb_url(over.link.port()));
        // The connections of these lockers are closed whenever they are idle.
        if (i % 2 == 0)
            how.idle_timeout = 0ms;
        all.emplace_back(mongo::make_adapter(pool.io.get_executor(), how));
    }
    run_in_threads(pool, on, all, draw, [&] {
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
    });
    BOOST_TEST(is_empty());
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_at_any_moment_of_random_faults)
{
    faulty_connection over(server->port());
    context_destruction_test those;
    those.make = [&](asio::io_context& own, int round, std::chrono::milliseconds idle_timeout) {
        auto how = by_way(over);
        how.collection = "round" + std::to_string(round);
        how.idle_timeout = idle_timeout;
        return mongo::make_adapter(own.get_executor(), how);
    };
    those.inject_fault = [&] { server->pause(); };
    those.end_fault = [&] { server->resume(); };
    those.run(over);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
