// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Masters that fail or are replaced while their locks are used.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"
#include "load.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(redis_cluster_failovers)

BOOST_AUTO_TEST_CASE(planned_failover_loses_no_lock)
{
    redis_cluster servers(2s);
    cluster_load load(servers.url(), keys_of_all_masters(), 5s);
    const auto seen = load.run(6s, [&] {
        for (std::size_t i = 0; i < redis_cluster::masters; ++i) {
            std::this_thread::sleep_for(500ms);
            servers.fail_over(i);
        }
    });
    seen.check();
}

/// The replica has no data of the last moments. A lock that was granted then may be granted again, so overlaps are not
/// counted here.
BOOST_AUTO_TEST_CASE(locks_are_granted_again_after_a_master_was_killed)
{
    redis_cluster servers(2s);
    cluster_load load(servers.url(), keys_of_all_masters(), 1s);
    const auto before = load.run(1s, [] {});
    BOOST_TEST(before.errors.size() == 0u, (before.errors.empty() ? "" : before.errors.front()));
    const auto seen = load.run(10s, [&] {
        std::this_thread::sleep_for(500ms);
        servers.node(0).kill();
        servers.wait_until_promoted(redis_cluster::masters);
    });
    BOOST_TEST_MESSAGE(seen.grants << " grants, longest acquire " << seen.longest_acquire.count() << " ms");
    BOOST_TEST(seen.longest_acquire.count() < 9000);
    load.run(1s, [] {}).check();
}

/// The paused master has been replaced when it continues. It must not grant or confirm locks any more.
BOOST_AUTO_TEST_CASE(paused_master_is_not_believed_when_it_continues)
{
    redis_cluster servers(2s);
    cluster_load load(servers.url(), keys_of_all_masters(), 1s);
    static_cast<void>(load.run(1s, [] {}));
    const auto seen = load.run(10s, [&] {
        std::this_thread::sleep_for(500ms);
        servers.wait_for_replica(0);
        servers.node(0).pause();
        servers.wait_until_promoted(redis_cluster::masters);
        std::this_thread::sleep_for(500ms);
        servers.node(0).resume();
    });
    BOOST_TEST_MESSAGE(seen.grants << " grants, longest acquire " << seen.longest_acquire.count() << " ms");
    load.run(1s, [] {}).check();
}

/// The waiter has subscribed to the messages of the master that fails.
BOOST_AUTO_TEST_CASE(waiter_is_served_by_the_new_master)
{
    redis_cluster servers(2s);
    client_side holder({.url = servers.url()});
    client_side waiter({.url = servers.url()});
    const auto held = driver::exclusive("k", 0ms);
    holder.test_driver.grant(held);
    const auto owner = servers.owner_of("colock:k");
    servers.wait_for_replica(owner);
    bool is_granted = false;
    asio::co_spawn(waiter.io, acquire(waiter.test_driver.shared_backend(), driver::exclusive("k", 0ms)),
        [&](const std::exception_ptr&, std::uint64_t) { is_granted = true; });
    waiter.run_for(300ms);
    servers.node(owner).kill();
    servers.wait_until_promoted(redis_cluster::masters + owner);
    waiter.run_for(1s);
    BOOST_TEST(!is_granted);
    // The first attempt may find the connection lost.
    while (holder.test_driver.release(held).status == release_status::failed) {
    }
    const auto released = std::chrono::steady_clock::now();
    run_until(waiter.io, [&] { return is_granted; });
    BOOST_TEST((std::chrono::steady_clock::now() - released < 2s));
}

BOOST_AUTO_TEST_CASE(unreachable_master_is_reported)
{
    redis_cluster servers(2s);
    client_side client({.url = servers.url()});
    client.test_driver.grant(driver::exclusive("{a}"));
    client.test_driver.grant(driver::exclusive("{b}"));
    const auto owner = servers.owner_of("{a}");
    servers.node(owner).kill();
    // The first attempt finds the connection lost. The next one waits for the server.
    for (int i = 0; i < 2; ++i)
        static_cast<void>(client.test_driver.create(driver::exclusive("{a}" + std::to_string(i))));
    BOOST_TEST(client.events->suspensions == 0);
    BOOST_TEST(client.events->obstacle_address == "127.0.0.1:" + std::to_string(servers.node(owner).port()));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
