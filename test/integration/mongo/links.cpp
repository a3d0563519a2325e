// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/faulty_proxy.hpp"
#include "support/toxiproxy.hpp"
#include "support/toxiproxy_faults.hpp"
#include "support/virtual_fixture.hpp"

#include <algorithm>
#include <functional>
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
    /// Starts an operation that is carried out, but whose reply is lost. Returns when the link works again.
    template <class T>
    running<T> lose_reply(
        toxiproxy& link, const std::function<running<T>()>& begin, const std::function<bool()>& is_carried_out)
    {
        link.add("lost", "timeout", "downstream", R"({"timeout":0})");
        auto under_way = begin();
        until(is_carried_out);
        link.enable(false);
        link.remove("lost");
        link.enable(true);
        return under_way;
    }
    /// Returns whether the key is held, and will be for at least `span`.
    [[nodiscard]] bool is_held(const std::string& key, std::chrono::milliseconds span = 0ms) const
    {
        const auto held = holders_at(server->port(), span);
        return std::ranges::find(held, key) != held.end();
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

BOOST_AUTO_TEST_CASE(an_operation_whose_reply_is_lost_has_an_unknown_outcome_and_is_settled)
{
    toxiproxy link(server->port());
    const auto ours = add_linked(link.port());
    {
        auto acquiring = lose_reply<lock>(
            link, [&] { return start(io, ours.acquire("k", {.retry = retry_policy::never()})); },
            [&] { return is_held("k"); });
        COLOCK_THROWS(create_error, errc::outcome_unknown, acquiring.get(io));
        check_settled(ours);
    }
    {
        auto held = run(ours.acquire("k"));
        auto extending =
            lose_reply<void>(link, [&] { return start(io, held.extend(1h)); }, [&] { return is_held("k", 30min); });
        COLOCK_THROWS(extend_error, errc::outcome_unknown, extending.get(io));
        BOOST_TEST(held.held());
        run(held.extend(1min));
        auto releasing = lose_reply<void>(
            link, [&] { return start(io, held.release(on_failure::raise)); }, [&] { return !is_held("k"); });
        COLOCK_THROWS(release_error, errc::outcome_unknown, releasing.get(io));
        check_settled(ours);
    }
    run(run(ours.acquire("k")).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(only_commands_for_locks_are_sent_after_connecting)
{
    faulty_proxy link(server->port());
    const auto ours = add_linked(link.port());
    link.cut_at_any({"ping", "hello", "isMaster"}, loss::reply);
    for (int i = 0; i < 3; ++i)
        run(run(ours.acquire("k")).release(on_failure::raise));
    BOOST_TEST(link.cuts() == 0);
}

BOOST_AUTO_TEST_CASE(a_lock_outlives_a_fault_that_is_shorter_than_its_lease)
{
    for (const auto& each : toxiproxy_faults) {
        BOOST_TEST_CONTEXT(each.name)
        {
            toxiproxy link(server->port());
            const auto ours = add_linked(link.port(), 1s), theirs = add();
            auto held = run(ours.acquire("k", {.ttl = 1h}));
            auto waiting = start(io, theirs.acquire("k", {.retry = retry_policy::fixed(1h)}));
            each.set(link, true);
            BOOST_CHECK_THROW(run(held.extend(1h)), extend_error);
            BOOST_TEST(held.held());
            BOOST_TEST(!waiting.done());
            each.set(link, false);
            until([&] {
                try {
                    run(held.extend(1h));
                    return true;
                } catch (const extend_error&) {
                    return false;
                }
            });
            BOOST_TEST(!waiting.done());
            run(held.release(on_failure::raise));
            auto next = waiting.get(io);
            BOOST_TEST(next.fence() > held.fence());
            run(next.release(on_failure::raise));
            check_settled(ours);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_lock_is_lost_by_a_fault_that_is_longer_than_its_lease)
{
    for (const auto& each : toxiproxy_faults) {
        BOOST_TEST_CONTEXT(each.name)
        {
            toxiproxy link(server->port());
            const auto ours = add_linked(link.port(), 1s), theirs = add();
            // The first use takes longer than later ones, and must not use up the ttl.
            run(run(ours.acquire("unused")).release(on_failure::raise));
            auto held = run(ours.acquire("k", {.ttl = 2s}));
            auto losing = start(io, held.lost());
            auto waiting = start(io, theirs.acquire("k", {.retry = retry_policy::fixed(10ms)}));
            each.set(link, true);
            BOOST_TEST((losing.get(io) == lost_reason::expired));
            // The next holder was not granted the lock before the first holder had noticed the loss.
            BOOST_TEST(!waiting.done());
            auto next = waiting.get(io);
            BOOST_TEST(next.fence() > held.fence());
            each.set(link, false);
            BOOST_CHECK_THROW(run(held.release(on_failure::raise)), release_error);
            BOOST_TEST(run(next.is_locked()));
            run(next.release(on_failure::raise));
            check_settled(ours);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_waiter_behind_a_fault_is_granted_what_is_released_meanwhile)
{
    for (const auto& each : toxiproxy_faults) {
        BOOST_TEST_CONTEXT(each.name)
        {
            toxiproxy link(server->port());
            const auto ours = add_linked(link.port(), 500ms), theirs = add();
            auto held = run(theirs.acquire("k", {.ttl = 1h}));
            auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
            until([&] { return ours.stats().busy >= 2; });
            each.set(link, true);
            run(held.release(on_failure::raise));
            each.set(link, false);
            run(waiting.get(io).release(on_failure::raise));
            check_settled(ours);
        }
    }
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
