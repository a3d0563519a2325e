// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/faulty_proxy.hpp"
#include "support/toxiproxy.hpp"
#include "support/virtual_fixture.hpp"

#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// Some lockers use a link that fails, others use the server directly.
struct failing_link : mongo_fixture
{
    [[nodiscard]] mongo::options linked(std::uint16_t port, std::chrono::milliseconds operation_timeout) const
    {
        auto how = options(mongodb_url(port));
        how.operation_timeout = operation_timeout;
        return how;
    }
    /// Adds a locker that is connected.
    [[nodiscard]] locker add_linked(std::uint16_t port, std::chrono::milliseconds operation_timeout = 20s)
    {
        auto made = add(linked(port, operation_timeout));
        run(run(made.acquire("warm")).release(on_failure::raise));
        return made;
    }
    void check_settled(const locker& by)
    {
        until([&] { return by.stats().settling == 0; });
        BOOST_TEST(by.stats().unproven == 0U);
        BOOST_TEST(holders_at(server->port()).empty());
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(mongo_links, failing_link, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(only_commands_for_locks_are_sent_after_connecting)
{
    faulty_proxy link(server->port());
    const auto ours = add_linked(link.port());
    link.cut_at_any({"ping", "hello", "isMaster"}, loss::reply);
    for (int i = 0; i < 3; ++i)
        run(run(ours.acquire("k")).release(on_failure::raise));
    BOOST_TEST(link.cuts() == 0);
}

namespace {

asio::awaitable<void> use(locker by, driver direct, std::string key)
{
    auto held = co_await by.acquire(key);
    const auto seen = co_await direct.backend().listing({.filter = {.key = key}});
    BOOST_TEST_REQUIRE(seen.locks.size() == 1U);
    BOOST_TEST(seen.locks[0].key == key);
    BOOST_TEST(seen.locks[0].fence == held.fence());
    co_await held.extend(1min);
    BOOST_TEST(co_await held.is_locked());
    co_await held.release(on_failure::raise);
}

} // namespace

BOOST_AUTO_TEST_CASE(slow_replies_reach_their_operations)
{
    struct slowness
    {
        const char* type;
        const char* attributes;
    };
    const driver direct(io, mongo::make_adapter(io.get_executor(), options()));
    for (const auto& each : {slowness{"latency", R"({"latency":20,"jitter":20})"},
             slowness{"slicer", R"({"average_size":40,"size_variation":39,"delay":10})"},
             slowness{"bandwidth", R"({"rate":100})"}})
    {
        BOOST_TEST_CONTEXT(each.type)
        {
            toxiproxy link(server->port());
            for (const auto* const stream : {"upstream", "downstream"})
                link.add(stream, each.type, stream, each.attributes);
            // The connection is also made over the slow link.
            const auto ours = add(linked(link.port(), 60s));
            std::vector<running<void>> all;
            for (int i = 0; i < 24; ++i)
                all.push_back(start(io, use(ours, direct, std::to_string(i))));
            for (auto& one : all)
                one.get(io, std::source_location::current(), {.time = 120s});
            check_settled(ours);
            BOOST_TEST(ours.stats().reconnects == 0U);
        }
    }
    run(direct.backend().close(1s));
}

namespace {

/// Two routes to one server. On one of them all requests arrive late. The proxy decides for each connection which route
/// it takes.
struct slow_route_fixture : failing_link
{
    toxiproxy slow_proxy{server->port()};
    faulty_proxy router{slow_proxy.port()};
    const locker observer = add_linked(slow_proxy.port(), 60s);

    /// Returns after all requests that were sent on the slow route before this call have arrived: a request that
    /// follows them has been carried out.
    void wait_for_slow_requests() { run(run(observer.acquire("witness")).release(on_failure::raise)); }
    void slow_down() { slow_proxy.add("late", "latency", "upstream", R"({"latency":2000})"); }
    /// Closes the client's connections, while requests on the slow route continue.
    void cut_and_reroute()
    {
        router.refuse(true);
        router.lead_to(server->port());
        router.refuse(false);
    }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(create_after_its_withdrawal_leaves_nothing, slow_route_fixture)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        router.lead_to(slow_proxy.port());
        const auto ours = add_linked(router.port());
        slow_down();
        const int before = router.cuts();
        router.cut_at_any({"findAndModify", "updates"}, loss::reply);
        auto acquiring = start(io, ours.acquire("k", {.ttl = 1h, .mode = mode, .retry = retry_policy::never()}));
        until([&] { return router.cuts() > before; });
        cut_and_reroute();
        COLOCK_THROWS(create_error, errc::outcome_unknown, acquiring.get(io));
        check_settled(ours);
        wait_for_slow_requests();
        BOOST_TEST(holders_at(server->port()).empty());
        slow_proxy.remove("late");
        run(run(ours.acquire("k")).release(on_failure::raise));
    }
}

BOOST_FIXTURE_TEST_CASE(create_of_an_ended_process_is_refused_after_its_timeout, slow_route_fixture)
{
    {
        asio::io_context gone;
        const locker theirs(mongo::make_adapter(gone.get_executor(), linked(router.port(), 500ms)));
        run_coro(gone, run_coro(gone, theirs.acquire("warm")).release(on_failure::raise));
        slow_down();
        router.cut_at_any({"findAndModify", "updates"}, loss::reply);
        static_cast<void>(start(gone, theirs.acquire("k", {.ttl = 1h})));
        run_until(gone, [&] { return router.cuts() > 0; });
    }
    wait_for_slow_requests();
    BOOST_TEST(holders_at(server->port()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
