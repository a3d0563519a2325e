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

BOOST_AUTO_TEST_CASE(majority_grants_extends_and_releases)
{
    three_servers f;
    const auto claim = driver::exclusive("k", 20s);
    f.test_driver.grant(claim);
    run_until(f.io, [&] { return f.count_holders("k") == 3; });
    f.test_driver.check_refused(driver::exclusive("k"));
    f.test_driver.check_held(claim);
    BOOST_TEST((f.test_driver.extend(claim, 60s).status == extend_status::extended));
    f.test_driver.release_held(claim);
    run_until(f.io, [&] { return f.count_holders("k") == 0; });
    BOOST_TEST((f.test_driver.extend(claim, 60s).status == extend_status::not_held));
    f.test_driver.check_not_held(claim);
}

BOOST_AUTO_TEST_CASE(grant_of_a_minority_is_released)
{
    three_servers f;
    f.servers[0]({"SET", "{colock}:k", stored_holder('a')});
    f.servers[1]({"SET", "{colock}:k", stored_holder('b')});
    const auto claim = driver::exclusive("k");
    f.test_driver.check_refused(claim);
    run_until(f.io, [&] { return f.servers[2]({"EXISTS", "{colock}:k"}) == "0"; });
    f.servers[0]({"DEL", "{colock}:k"});
    f.test_driver.grant(claim);
    run_until(f.io, [&] { return f.count_holders("k") == 3; });
    f.test_driver.release_held(claim);
    run_until(f.io, [&] { return f.count_holders("k") == 1; });
}

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

BOOST_AUTO_TEST_CASE(mute_node_is_left_after_connect_timeout)
{
    redis_server servers[3];
    redis_faulty_proxy third_link(servers[2].port());
    // The first connection to this node never receives an answer.
    third_link.cut_at("HELLO", loss::delayed_reply);
    asio::io_context io;
    const driver test_driver(
        io, redis::make_quorum(io.get_executor(), {servers[0].url(), servers[1].url(), third_link.url()},
                {.operation_timeout = 30s, .connect_timeout = 1s, .health_interval = 1min}));
    const auto claim = driver::exclusive("k");
    test_driver.grant(claim);
    run_until(io, [&] { return servers[2]({"EXISTS", "{colock}:k"}) == "1"; });
    BOOST_TEST(third_link.cuts() == 1);
    test_driver.release_held(claim);
    run_coro(io, test_driver.backend().close(1s));
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

BOOST_AUTO_TEST_CASE(unanswered_node_claim_is_released_later)
{
    redis_server servers[3];
    redis_faulty_proxy third_link(servers[2].port());
    asio::io_context io;
    const driver test_driver(
        io, redis::make_quorum(io.get_executor(), {servers[0].url(), servers[1].url(), third_link.url()},
                three_servers::with_long_timeout({.health_interval = 1min})));
    const auto is_stored = [&] { return servers[2]({"EXISTS", "{colock}:k"}) == "1"; };
    // A node is not asked while its connection is being established again. Each probe has a key of its own, so that no
    // request of an earlier probe is on its way to the node when this returns.
    int probes = 0;
    const auto wait_for_third_node = [&] {
        run_until(io, [&] {
            const auto key = "probe" + std::to_string(++probes);
            const auto has_probe = [&] { return servers[2]({"EXISTS", "{colock}:" + key}) == "1"; };
            const auto probe = driver::exclusive(key);
            test_driver.grant(probe);
            const bool is_connected = has_probe();
            test_driver.release_held(probe);
            if (is_connected)
                run_until(io, [&] { return !has_probe(); });
            return is_connected;
        });
    };
    int losses = 0;
    for (const auto what : {loss::request, loss::reply}) {
        const auto held = driver::exclusive("k");
        test_driver.grant(held);
        run_until(io, is_stored);
        third_link.cut_at("EVALSHA", what);
        test_driver.release_held(held);
        run_until(io, [&] { return third_link.cuts() == losses + 1 && !is_stored(); });
        wait_for_third_node();

        const auto unanswered = driver::exclusive("k");
        third_link.cut_at("SET", what);
        test_driver.grant(unanswered);
        run_until(io, [&] { return third_link.cuts() == losses + 2 && is_stored() == (what == loss::reply); });
        test_driver.release_held(unanswered);
        losses += 2;
        run_until(io, [&] { return third_link.cuts() == losses && !is_stored(); });
        wait_for_third_node();
    }
    run_coro(io, test_driver.backend().close(1s));
}

namespace {

/// Lets several lockers adopt one ticket at the same time. Returns how many of them got the lock.
int count_adoptions(asio::io_context& io, const std::vector<locker>& adopters, const std::string& ticket)
{
    std::vector<running<lock>> adopting;
    for (const auto& each : adopters)
        adopting.push_back(start(io, each.adopt(ticket)));
    int count = 0;
    for (auto& each : adopting) {
        try {
            auto adopted = each.get(io);
            ++count;
            run_coro(io, adopted.release(on_failure::raise));
        } catch (const create_error& failed) {
            BOOST_TEST((failed.code() == errc::not_held), failed.what());
        }
    }
    return count;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_of_several_adopters_of_a_ticket_gets_the_lock)
{
    redis_server servers[3];
    asio::io_context io;
    std::vector<locker> adopters;
    for (int i = 0; i < 4; ++i) {
        adopters.emplace_back(
            redis::make_quorum(io.get_executor(), {servers[0].url(), servers[1].url(), servers[2].url()},
                three_servers::with_long_timeout({})),
            locker_options{.operation_timeout = 1min});
    }
    for (int i = 0; i < 100; ++i) {
        auto held = run_coro(io, adopters[0].acquire("k" + std::to_string(i), {.ttl = 1h}));
        BOOST_TEST(count_adoptions(io, adopters, run_coro(io, held.detach())) == 1);
    }
    for (const auto& each : adopters)
        run_coro(io, each.shutdown(5s));
}

BOOST_AUTO_TEST_CASE(adopter_whose_first_node_stops_in_the_middle_gets_the_lock)
{
    three_servers f;
    redis_faulty_proxy first_link(f.servers[0].port());
    const driver first(
        f.io, redis::make_quorum(f.io.get_executor(), {first_link.url(), f.servers[1].url(), f.servers[2].url()},
                  three_servers::with_long_timeout({.health_interval = 1min})));
    const auto make_ticket = [&f](const std::string& key) {
        const auto held = driver::exclusive(key);
        f.test_driver.grant(held);
        return f.test_driver.export_ticket(held);
    };
    // After this the first node is connected, and knows the script.
    const auto warm = driver::exclusive("warm");
    first.take_over(make_ticket("warm"), warm);
    first.release_held(warm);
    const auto ticket = make_ticket("k");
    const auto next = driver::exclusive("k"), other = driver::exclusive("k");
    // The first node adopts, and its answer is lost.
    first_link.cut_at("EVALSHA", loss::reply);
    first.take_over(ticket, next);
    BOOST_TEST(first_link.cuts() == 1);
    BOOST_TEST((f.test_driver.adopt(ticket, other).status == create_status::busy));
    first.check_held(next);
    first.release_held(next);
    run_until(f.io, [&] { return f.count_holders("k") == 0; });
    run_coro(f.io, first.backend().close(1s));
}

BOOST_AUTO_TEST_CASE(busy_reports_the_poll_interval_as_retry_time)
{
    three_servers f({.poll_interval = 20ms});
    const auto holder = driver::exclusive("k");
    f.test_driver.grant(holder);
    const auto busy = f.test_driver.check_refused(driver::exclusive("k"));
    BOOST_TEST((busy.retry_after > 0ms && busy.retry_after <= 30ms));
    f.test_driver.release_held(holder);
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

BOOST_AUTO_TEST_CASE(claim_on_the_only_reachable_master_is_not_reported_as_busy)
{
    redis_server servers[3];
    redis_toxiproxy first(servers[0].port());
    redis_toxiproxy second(servers[1].port());
    asio::io_context io;
    locker locks(redis::make_quorum(io.get_executor(), {first.url(), second.url(), servers[2].url()}, {}));
    servers[2]({"SET", "{colock}:k", stored_holder('a')});
    first.enable(false);
    second.enable(false);
    COLOCK_THROWS(create_error, errc::unavailable, run_coro(io, locks.try_acquire("k")));
    COLOCK_THROWS(create_error, errc::unavailable,
        run_coro(io, locks.acquire("k", {.retry = retry_policy::fixed(10ms).times(2)})));
    first.enable(true);
    // Two of three nodes answer now. On one of them, another claim holds the key.
    const auto is_busy = [&] {
        try {
            return !run_coro(io, locks.try_acquire("k"));
        } catch (const create_error&) {
            return false;
        }
    };
    until(is_busy);
    second.enable(true);
    auto held = run_coro(io, locks.acquire("k", {.retry = retry_policy::fixed(10ms)}));
    BOOST_TEST(run_coro(io, locks.is_locked("k")));
    run_coro(io, held.release());
    run_coro(io, locks.shutdown(5s));
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

BOOST_AUTO_TEST_CASE(extension_needs_answers_of_a_majority)
{
    redis_server servers[3];
    redis_toxiproxy first(servers[0].port());
    redis_toxiproxy second(servers[1].port());
    asio::io_context io;
    locker locks(redis::make_quorum(io.get_executor(), {first.url(), second.url(), servers[2].url()},
        three_servers::with_long_timeout({.health_interval = 1min})));
    auto held = run_coro(io, locks.acquire("k", {.ttl = 1h, .retry = retry_policy::fixed(10ms)}));
    // The grant needs only a majority, but the test needs all nodes.
    for (auto& server : servers)
        run_until(io, [&] { return server({"EXISTS", "{colock}:k"}) == "1"; });
    first.enable(false);
    const auto extends = [&] {
        try {
            run_coro(io, held.extend(1h));
            return true;
        } catch (const extend_error& failed) {
            BOOST_TEST((failed.code() != errc::not_held || !held.held()));
            return false;
        }
    };
    until(extends);
    second.enable(false);
    BOOST_TEST(!extends());
    BOOST_TEST(held.held());
    first.enable(true);
    until(extends);
    // A grant of one master is not a lock.
    second.enable(true);
    servers[0]({"DEL", "{colock}:k"});
    servers[1]({"DEL", "{colock}:k"});
    BOOST_TEST(servers[2]({"EXISTS", "{colock}:k"}) == "1");
    until([&] { return !extends() && !held.held(); });
    run_coro(io, locks.shutdown(5s));
    BOOST_TEST(servers[2]({"EXISTS", "{colock}:k"}) == "0");
}

BOOST_AUTO_TEST_CASE(shutdown_does_not_wait_for_a_killed_master)
{
    redis_server servers[3];
    asio::io_context io;
    locker locks(redis::make_quorum(
        io.get_executor(), {servers[0].url(), servers[1].url(), servers[2].url()}, {.operation_timeout = 2s}));
    auto held = run_coro(io, locks.acquire("k", {.ttl = 1h}));
    run_until(io, [&] { return servers[2]({"EXISTS", "{colock}:k"}) == "1"; });
    servers[2].kill();
    run_coro(io, held.release());
    const auto report = run_coro(io, locks.shutdown(20s));
    BOOST_TEST(report.clean());
    BOOST_TEST(report.unproven == 1U);
    // Nothing keeps the context running, although the lock may exist on the master for another hour.
    io.restart();
    io.run_for(30s);
    BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
