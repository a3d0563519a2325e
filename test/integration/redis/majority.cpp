// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_majority)

namespace {

struct three_servers
{
    explicit three_servers(redis::options settings = {})
        : test_driver(io, redis::make_quorum(io.get_executor(), {servers[0].url(), servers[1].url(), servers[2].url()},
                              with_long_timeout(settings)))
    {
    }
    ~three_servers() { run_coro(io, test_driver.backend().close(1s)); }

    /// Returns the settings with a timeout within which a connected node answers even if this machine is slow.
    static redis::options with_long_timeout(redis::options settings)
    {
        settings.operation_timeout = settings.operation_timeout.value_or(10s);
        return settings;
    }
    [[nodiscard]] int count_holders(const std::string& key)
    {
        int count = 0;
        for (auto& server : servers)
            count += server({"EXISTS", "{colock}:" + key}) == "1" ? 1 : 0;
        return count;
    }

    redis_server servers[3];
    asio::io_context io;
    driver test_driver;
};

/// Repeats an action until it succeeds, because a connected node may miss its deadline on a slow machine.
void until(const std::function<bool()>& reached)
{
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!reached())
        BOOST_TEST_REQUIRE((std::chrono::steady_clock::now() < deadline));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_hung_master_costs_no_more_than_its_deadline)
{
    three_servers f({.operation_timeout = 8s, .health_interval = 20s});
    const auto warm = driver::exclusive("warm");
    f.test_driver.grant(warm);
    f.test_driver.release_held(warm);
    f.servers[1].pause();
    const auto begin = std::chrono::steady_clock::now();
    const auto claim = driver::exclusive("k", 20s);
    f.test_driver.grant(claim);
    BOOST_TEST((f.test_driver.extend(claim, 20s).status == extend_status::extended));
    f.test_driver.release_held(claim);
    // The operations have only waited for a majority.
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 8s));
    f.servers[1].resume();
    run_until(f.io, [&] { return f.count_holders("k") == 0; });

    f.servers[0].kill();
    f.servers[1].kill();
    const auto late = std::chrono::steady_clock::now();
    const auto outcome = f.test_driver.create(claim);
    BOOST_TEST((outcome.status == create_status::failed));
    BOOST_TEST((std::chrono::steady_clock::now() - late < 30s));
    run_until(f.io, [&] { return f.servers[2]({"EXISTS", "{colock}:k"}) == "0"; });
}

BOOST_AUTO_TEST_CASE(a_lock_held_for_longer_than_the_timeout_is_released_over_slow_links)
{
    redis_server servers[3];
    std::vector<std::unique_ptr<redis_toxiproxy>> links;
    std::vector<std::string> urls;
    for (auto& server : servers) {
        links.push_back(std::make_unique<redis_toxiproxy>(server.port()));
        links.back()->add("delay", "latency", "downstream", R"({"latency":300,"jitter":0})");
        urls.push_back(links.back()->url());
    }
    asio::io_context io;
    const driver test_driver(
        io, redis::make_quorum(io.get_executor(), urls, {.operation_timeout = 5s, .health_interval = 20s}));
    const auto claim = driver::exclusive("k", 60s);
    test_driver.grant(claim);
    io.restart();
    io.run_for(5500ms);
    BOOST_TEST((test_driver.release(claim).status == release_status::released));
    run_coro(io, test_driver.backend().close(2s));
}

BOOST_AUTO_TEST_CASE(quorum_capabilities_and_urls_are_checked)
{
    three_servers f;
    const auto supported = f.test_driver.backend().traits().capabilities;
    BOOST_TEST(
        (!supported.shared && !supported.semaphore && !supported.fence && !supported.events && !supported.no_ttl));
    asio::io_context io;
    const auto make = [&](const std::vector<std::string>& urls) { return redis::make_quorum(io.get_executor(), urls); };
    BOOST_CHECK_THROW(make({"redis://a", "redis://b"}), validation_error);
    BOOST_CHECK_THROW(make({"redis://a", "redis://b", "redis://c", "redis://d"}), validation_error);
    BOOST_CHECK_THROW(make({"redis://a", "redis://b", "redis://a"}), validation_error);
    BOOST_CHECK_THROW(make({"redis://a", "redis://b", "redis://:secret@a:6379/1"}), validation_error);
}

BOOST_AUTO_TEST_CASE(late_break_does_not_remove_a_later_holder)
{
    three_servers f;
    redis_faulty_proxy first(f.servers[0].port()), second(f.servers[1].port()), third(f.servers[2].port());
    // The user may not end connections, so a request on an earlier connection may still arrive.
    for (auto& server : f.servers)
        server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-client"});
    locker late(redis::make_quorum(f.io.get_executor(), {first.url(), second.url(), third.url()},
        {.user = "app", .password = "pw", .operation_timeout = 4s, .health_interval = 1min}));
    const auto before = driver::exclusive("k", 60s), after = driver::exclusive("k", 60s);
    f.test_driver.grant(before);
    until([&] { return run_coro(f.io, late.is_locked("k")); });
    for (auto* each : {&first, &second, &third})
        each->hold();
    COLOCK_THROWS(error, errc::unavailable, run_coro(f.io, late.break_lock("k")));
    f.test_driver.release_held(before);
    run_until(f.io, [&] { return f.count_holders("k") == 0; });
    f.test_driver.grant(after);
    for (auto* each : {&first, &second, &third})
        each->deliver();
    f.test_driver.check_held(after);
    BOOST_TEST(f.count_holders("k") == 3);
    f.test_driver.release_held(after);
    run_coro(f.io, late.shutdown(5s));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
