// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "server.hpp"
#include "support/driver.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/observer.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

namespace {

using namespace std::chrono_literals;

class listener final : public observer
{
public:
    void suspended(std::string_view, const error_code&) noexcept override { ++suspensions; }
    void warning(std::string_view, std::string_view message) noexcept override { warnings.emplace_back(message); }

    int suspensions = 0;
    std::vector<std::string> warnings;
};

/// Several processes on a server of their own.
struct lockers_scene
{
    [[nodiscard]] std::string url(std::string_view user = {}) const
    {
        return "zookeeper://" + std::string(user) + "127.0.0.1:" + std::to_string(server.port()) + "/locks";
    }
    /// What is not given is as it suits the server.
    [[nodiscard]] std::shared_ptr<adapter> make_adapter(zookeeper::options options = {})
    {
        if (options.url == zookeeper::options{}.url)
            options.url = url();
        if (options.session_timeout == zookeeper::options{}.session_timeout)
            options.session_timeout = 4s;
        if (!options.server_tick)
            options.server_tick = 500ms;
        return zookeeper::make_adapter(io.get_executor(), std::move(options));
    }
    [[nodiscard]] locker make_locker(zookeeper::options options = {}, std::shared_ptr<observer> told = nullptr)
    {
        return locker(make_adapter(std::move(options)), {.observer = std::move(told)});
    }
    template <class T>
    T run(asio::awaitable<T> coroutine, std::source_location where = std::source_location::current())
    {
        return start(io, std::move(coroutine)).get(io, where);
    }
    /// Once it has its place in the line.
    running<lock> queue(const locker& by, std::size_t nodes)
    {
        auto waiting = start(io, by.acquire("k"));
        run_until(io, [&] { return ephemeral_nodes(server.port()).size() == nodes; });
        return waiting;
    }
    void check_end(std::vector<locker> all)
    {
        for (auto& each : all)
            BOOST_TEST(run(each.shutdown(5s)).clean());
        BOOST_TEST(ephemeral_nodes(server.port()).empty());
        // Nothing is left that would keep the context.
        io.restart();
        io.run_for(10s);
        BOOST_TEST(io.stopped());
    }

    zookeeper_server server;
    asio::io_context io;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_lockers, lockers_scene)

BOOST_AUTO_TEST_CASE(processes_are_granted_in_the_order_of_their_calls)
{
    auto one = make_locker(), two = make_locker(), three = make_locker();
    auto held = run(one.acquire("k"));
    auto second = queue(two, 2), third = queue(three, 3);
    const auto fence = held.fence();
    run(held.release());
    auto next = second.get(io);
    BOOST_TEST(next.fence() > fence);
    BOOST_TEST(!third.done());
    run(next.release());
    auto last = third.get(io);
    BOOST_TEST(last.fence() > next.fence());
    run(last.release());
    check_end({one, two, three});
}

BOOST_AUTO_TEST_CASE(whoever_holds_hears_that_the_session_has_expired_and_goes_on_in_another)
{
    auto one = make_locker(), two = make_locker();
    auto held = run(one.acquire("k"));
    auto waiting = queue(two, 2);
    auto hears = start(io, held.lost());
    const auto sessions = sessions_of(server.port(), "/locks");
    BOOST_TEST_REQUIRE(sessions.size() == 2U);
    // All of them: who waits stands in line anew.
    for (const auto each : sessions)
        end_session(server.port(), each);
    BOOST_TEST((hears.get(io) == lost_reason::session));
    BOOST_TEST(!held.held());
    auto next = waiting.get(io);
    BOOST_TEST(run(next.is_locked()));
    run(next.release(on_failure::raise));
    auto again = run(one.acquire("k"));
    run(again.release(on_failure::raise));
    check_end({one, two});
}

BOOST_AUTO_TEST_CASE(what_was_lost_stands_in_nobodys_way_when_its_session_comes_back)
{
    const driver by(io, make_adapter());
    const auto lost = driver::exclusive("k"), next = driver::exclusive("k");
    by.grant(lost);
    server.kill();
    run_until(io, [&] { return lost->lease().has_ended(lease_clock::now()); });
    // It does not count the time that it was away.
    server.start();
    by.grant(next);
    BOOST_TEST(ephemeral_nodes(server.port()).size() == 1U);
    by.check_not_held(lost);
    by.give_back(next);
}

BOOST_AUTO_TEST_CASE(a_thousand_local_waiters_stand_there_as_two_nodes)
{
    auto one = make_locker();
    auto held = run(one.acquire("k"));
    std::vector<running<lock>> waiting;
    for (int i = 0; i < 1000; ++i)
        waiting.push_back(start(io, one.acquire("k")));
    run_until(io, [&] { return one.stats().waiting == 1000 && one.stats().busy > 0; });
    BOOST_TEST(ephemeral_nodes(server.port()).size() == 2U);
    run(held.release());
    for (auto& each : waiting) {
        auto next = each.get(io);
        run(next.release());
    }
    check_end({one});
}

BOOST_AUTO_TEST_CASE(a_session_of_few_ticks_is_warned_of)
{
    const auto told = std::make_shared<listener>(), other = std::make_shared<listener>();
    const auto brief = make_locker({.session_timeout = 1500ms}, told), lasting = make_locker({}, other);
    for (const auto& each : {brief, lasting})
        run(run(each.acquire("k")).release(on_failure::raise));
    BOOST_TEST_REQUIRE(told->warnings.size() == 1U);
    BOOST_TEST(told->warnings.front().find("1500 ms") != std::string::npos, told->warnings.front());
    BOOST_TEST(other->warnings.empty());
    check_end({brief, lasting});
}

BOOST_AUTO_TEST_CASE(what_is_too_large_is_refused_and_disturbs_nobody)
{
    const auto told = std::make_shared<listener>();
    const auto backend = make_adapter();
    const locker others(backend, {.observer = told});
    auto held = run(others.acquire("k"));
    const driver by(io, backend);
    for (const auto size : {300'000U, 2'000'000U}) {
        const auto large = driver::exclusive(std::string(size, 'k'));
        const auto outcome = by.create(large);
        BOOST_TEST_REQUIRE((outcome.status == create_status::failed));
        BOOST_TEST((outcome.error->code == errc::invalid_key));
        BOOST_TEST((by.abandon(large).status == release_status::not_held));
        auto listed = start(io, backend->inspect(large->key()));
        BOOST_TEST((listed.get(io).error->code == errc::invalid_key));
    }
    BOOST_TEST(run(held.is_locked()));
    BOOST_TEST(told->suspensions == 0);
    run(held.release(on_failure::raise));
    check_end({others});
}

BOOST_AUTO_TEST_CASE(a_stranger_is_denied_what_belongs_to_a_user)
{
    const auto mine = make_locker({.user = "me", .password = "secret"});
    const auto also_mine = make_locker({.url = url("me:secret@")});
    auto held = run(mine.acquire("k"));
    BOOST_TEST(!run(also_mine.try_acquire("k")));
    std::vector<locker> all{mine, also_mine};
    for (const auto& stranger : {make_locker(), make_locker({.url = url("me:other@")})}) {
        for (const auto* const key : {"k", "another"}) {
            try {
                run(stranger.try_acquire(key));
                BOOST_ERROR("not refused");
            } catch (const error& refused) {
                BOOST_TEST((refused.code() == errc::access_denied), refused.what());
                BOOST_TEST(std::string_view(refused.what()).find("secret") == std::string_view::npos);
            }
        }
        all.push_back(stranger);
    }
    run(held.release(on_failure::raise));
    check_end(all);
}

BOOST_AUTO_TEST_CASE(whoever_was_given_rights_takes_part)
{
    const zookeeper::access_right everybody{
        .permissions = zookeeper::access_right::all & ~zookeeper::access_right::admin};
    const auto mine = make_locker({.user = "me", .password = "secret", .access = {everybody}}), theirs = make_locker();
    auto held = run(mine.acquire("k"));
    auto waiting = queue(theirs, 2);
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
    check_end({mine, theirs});
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
