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

/// `inject_faults` injects faults of up to twice this duration. They outlast the shorter leases of the clients.
constexpr auto lease = 1s;

/// Returns the bytes of a BSON string value that is equal to the key.
std::string in_bson(const std::string& key)
{
    return std::string("\0", 1) + key + std::string("\0", 1);
}

struct random_faults_fixture : mongo_fixture
{
    [[nodiscard]] mongo::options options_through(const faulty_connection& connection) const
    {
        auto how = options(mongodb_url(connection.link.port()));
        how.operation_timeout = 1500ms;
        how.connect_timeout = 1s;
        return how;
    }
    [[nodiscard]] bool is_empty() const { return holders_at(server->port()).empty(); }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_random_faults, random_faults_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(mutual_exclusion_holds_while_links_and_server_fail_at_random)
{
    random_clients all(random_mix::first_seed());
    std::vector<locker> lockers;
    std::vector<std::unique_ptr<faulty_connection>> connections;
    std::vector<running<void>> faults;
    for (int i = 0; i < 4; ++i) {
        auto& over = *connections.emplace_back(std::make_unique<faulty_connection>(server->port()));
        lockers.push_back(add(options_through(over)));
        faults.push_back(start(io, inject_faults(over, all.draw, lease, in_bson)));
    }
    faults.push_back(start(io, inject_faults(*server, all.draw, lease)));
    run_through_faults(io, all, lockers, connections, std::move(faults));
    until([&] { return is_empty(); });
    for (const auto& each : lockers)
        BOOST_TEST(run(each.shutdown(10s)).clean());
    BOOST_TEST(is_empty());
    io.restart();
    io.run_for(10s);
    BOOST_TEST(io.stopped(), "work is left in the context");
}

BOOST_AUTO_TEST_CASE(mutual_exclusion_holds_on_several_threads_while_links_are_cut)
{
    random_source draw(random_mix::first_seed());
    progress env;
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
    run_in_threads(pool, env, all, draw, [&] {
        const auto wait_for_grants = [&] {
            const auto before = env.grants.load();
            wait_until([&] { return env.grants > before + 50; });
        };
        for (int cuts = 0; cuts < 3; ++cuts) {
            wait_for_grants();
            over.link.refuse(true);
            over.link.refuse(false);
        }
        wait_for_grants();
    });
    BOOST_TEST(is_empty());
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_at_any_moment_of_random_faults)
{
    faulty_connection over(server->port());
    context_destruction_test test;
    test.make = [&](asio::io_context& own, int round, std::chrono::milliseconds idle_timeout) {
        auto how = options_through(over);
        how.collection = "round" + std::to_string(round);
        how.idle_timeout = idle_timeout;
        return mongo::make_adapter(own.get_executor(), how);
    };
    test.inject_fault = [&] { server->pause(); };
    test.end_fault = [&] { server->resume(); };
    test.run(over);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
