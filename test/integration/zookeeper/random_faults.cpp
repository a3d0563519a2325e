// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "one_server.hpp"
#include "support/stress.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// Timeout of a session, and limit of the time for which a lock is held.
constexpr auto lease = 2s;

std::string in_path(const std::string& key)
{
    return '/' + key + '/';
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_random_faults, one_server)

BOOST_AUTO_TEST_CASE(mutual_exclusion_holds_while_links_and_server_fail_at_random)
{
    random_clients all(random_mix::first_seed());
    std::vector<locker> lockers;
    std::vector<std::unique_ptr<faulty_connection>> connections;
    std::vector<running<void>> faults;
    for (int i = 0; i < 4; ++i) {
        auto& faulty = *connections.emplace_back(std::make_unique<faulty_connection>(server->port()));
        lockers.push_back(add(lease, zookeeper_url(faulty.link.port())));
        faults.push_back(start(io, inject_faults(faulty, all.draw, lease, in_path)));
    }
    faults.push_back(start(io, inject_faults(*server, all.draw, lease)));
    run_through_faults(io, all, lockers, connections, std::move(faults));
    check_end();
}

BOOST_AUTO_TEST_CASE(mutual_exclusion_holds_on_several_threads_while_links_are_cut)
{
    random_source draw(random_mix::first_seed());
    progress env;
    std::vector<locker> all;
    threaded_context pool;
    for (int i = 0; i < 4; ++i) {
        auto how = options(10s, zookeeper_url(link.port()));
        // The sessions of these lockers are closed whenever they are idle.
        if (i % 2 == 0)
            how.idle_timeout = 0ms;
        all.emplace_back(zookeeper::make_adapter(pool.io.get_executor(), how));
    }
    run_in_threads(pool, env, all, draw, [&] {
        for (std::uint64_t cuts = 1; cuts <= 3; ++cuts) {
            const auto before = env.grants.load();
            wait_until([&] { return env.grants > before + 50; });
            link.refuse(true);
            link.refuse(false);
            wait_until([&] { return all[1].stats().reconnects >= cuts && all[3].stats().reconnects >= cuts; });
        }
    });
    BOOST_TEST(nodes().empty());
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_at_any_moment_of_random_faults)
{
    faulty_connection faulty(server->port());
    context_destruction_test test;
    test.make = [&](asio::io_context& own, int round, std::chrono::milliseconds idle_timeout) {
        auto how = options(2s, zookeeper_url(faulty.link.port()));
        how.url += '/' + std::to_string(round);
        how.idle_timeout = idle_timeout;
        return zookeeper::make_adapter(own.get_executor(), how);
    };
    test.inject_fault = [&] {
        for (const auto each : sessions_of(server->port(), chroot())) {
            try {
                end_session(server->port(), each);
            } catch (const std::runtime_error&) {
                // The session had already ended.
            }
        }
    };
    test.end_fault = [] {};
    test.run(faulty);
    until([&] { return nodes().empty(); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
