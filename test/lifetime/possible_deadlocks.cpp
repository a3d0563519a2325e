// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// locker_options::debug: acquires that wait for a lock of their own locker are reported.
#include "support/virtual_fixture.hpp"

#include <colock/observer.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(possible_deadlocks)

namespace {

struct deadlock_report
{
    std::string key;
    std::chrono::nanoseconds held_for;
    std::source_location acquired_at;
    std::source_location waiting_at;
};

struct report_recorder : observer
{
    std::vector<deadlock_report> reports;

    void possible_deadlock(std::string_view key, std::chrono::nanoseconds held_for,
        const std::source_location& acquired_at, const std::source_location& waiting_at) noexcept override
    {
        reports.push_back({std::string(key), held_for, acquired_at, waiting_at});
    }
};

/// A locker with debugging and a report_recorder.
struct debug_fixture
{
    std::shared_ptr<report_recorder> recorder = std::make_shared<report_recorder>();
    virtual_fixture env;

    explicit debug_fixture(backend_kind kind, bool debug = true)
        : env(kind, {.ttl = 0ms, .observer = recorder, .debug = debug})
    {
    }

    /// Checks the only report: of "k", with these two lines of this file.
    void check_report(unsigned line, unsigned waiting_line) const
    {
        BOOST_TEST_REQUIRE(recorder->reports.size() == 1U);
        const auto& report = recorder->reports.front();
        BOOST_TEST(report.key == "k");
        BOOST_TEST((report.held_for >= 1s && report.held_for <= 2s));
        BOOST_TEST(report.acquired_at.line() == line);
        BOOST_TEST(report.waiting_at.line() == waiting_line);
        for (const auto& place : {report.acquired_at, report.waiting_at})
            BOOST_TEST(std::string_view(place.file_name()).ends_with("possible_deadlocks.cpp"));
    }
};

constexpr backend_kind all_kinds[] = {backend_kind::memory, backend_kind::scripted, backend_kind::immediate};

} // namespace

BOOST_AUTO_TEST_CASE(waiter_for_a_lock_of_its_locker_is_reported_once_after_a_second)
{
    for (const auto kind : all_kinds) {
        debug_fixture fixture(kind);
        auto& env = fixture.env;
        auto other = env.run(env.locker->acquire("l"));
        constexpr unsigned line = __LINE__ + 1;
        auto held = env.run(env.locker->acquire("k"));
        constexpr unsigned waiting_line = __LINE__ + 1;
        auto waiting = env.start(env.locker->acquire("k"));
        env.advance_by_steps(900ms, 100ms);
        BOOST_TEST(fixture.recorder->reports.empty());
        env.advance_by_steps(300ms, 100ms);
        fixture.check_report(line, waiting_line);
        env.advance_by_steps(5s, 500ms);
        BOOST_TEST(fixture.recorder->reports.size() == 1U);
        env.run(held.release());
        BOOST_TEST(waiting.get(env.io()).held());
    }
}

BOOST_AUTO_TEST_CASE(acquire_with_a_policy_reports_a_key_held_by_its_locker)
{
    for (const auto kind : all_kinds) {
        debug_fixture fixture(kind);
        auto& env = fixture.env;
        constexpr unsigned line = __LINE__ + 1;
        const auto held = env.run(env.locker->acquire("k", {.comment = "outer"}));
        constexpr unsigned waiting_line = __LINE__ + 1;
        auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(10s).total_time(30s)}));
        env.advance_by_steps(1500ms, 100ms);
        fixture.check_report(line, waiting_line);
        env.advance_by_steps(30s, 1s);
        COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
        BOOST_TEST(fixture.recorder->reports.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(waiter_is_reported_one_second_after_its_locker_gets_the_lock)
{
    for (const auto kind : all_kinds) {
        debug_fixture fixture(kind);
        auto& env = fixture.env;
        const colock::locker elsewhere(env.backend(), {.ttl = 0ms});
        auto foreign = env.run(elsewhere.acquire("k"));
        constexpr unsigned line = __LINE__ + 1;
        auto first = env.start(env.locker->acquire("k"));
        constexpr unsigned waiting_line = __LINE__ + 1;
        auto second = env.start(env.locker->acquire("k"));
        env.advance_by_steps(3500ms, 100ms);
        BOOST_TEST(fixture.recorder->reports.empty());
        env.run(foreign.release());
        auto held = first.get(env.io());
        env.advance_by_steps(900ms, 100ms);
        BOOST_TEST(fixture.recorder->reports.empty());
        env.advance_by_steps(1200ms, 100ms);
        fixture.check_report(line, waiting_line);
        env.run(held.release());
        static_cast<void>(second.get(env.io()));
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_reported_without_debugging)
{
    for (const auto kind : all_kinds) {
        debug_fixture fixture(kind, false);
        auto& env = fixture.env;
        auto held = env.acquire("k");
        auto waiting = env.start(env.locker->acquire("k"));
        env.advance_by_steps(5s, 500ms);
        BOOST_TEST(fixture.recorder->reports.empty());
        env.run(held.release());
        static_cast<void>(waiting.get(env.io()));
    }
}

BOOST_AUTO_TEST_CASE(report_of_an_async_acquire_names_the_lines_of_the_calls)
{
    debug_fixture fixture(backend_kind::memory);
    auto& env = fixture.env;
    constexpr unsigned line = __LINE__ + 1;
    env.locker->async_acquire("k", {},
        [&](error_code, lock held) { env.locker->async_acquire("k", [kept = std::move(held)](error_code, lock) {}); });
    env.advance_by_steps(1500ms, 100ms);
    fixture.check_report(line, line + 1);
    env.run(env.locker->shutdown());
}

namespace {

/// Holds "k" while `wait` waits for it, and checks the line of the wait.
void check_waiting_line(const std::function<void(virtual_fixture&)>& wait, unsigned waiting_line)
{
    debug_fixture fixture(backend_kind::memory);
    auto& env = fixture.env;
    constexpr unsigned line = __LINE__ + 1;
    auto held = env.run(env.locker->acquire("k"));
    wait(env);
    env.advance_by_steps(1500ms, 100ms);
    fixture.check_report(line, waiting_line);
    env.run(held.release());
    env.run(env.locker->shutdown());
}

} // namespace

BOOST_AUTO_TEST_CASE(function_without_options_is_reported_with_the_line_of_its_call)
{
    const auto body = [] {};
    const auto ignore = [](auto&&...) {};
    const auto spawn = [](auto& env, auto coroutine) {
        asio::co_spawn(env.io(), std::move(coroutine), asio::detached);
    };
    check_waiting_line([&](auto& env) { spawn(env, env.locker->acquire("k")); }, __LINE__);
    check_waiting_line([&](auto& env) { spawn(env, env.locker->acquire_all({"a", "k"})); }, __LINE__);
    check_waiting_line([&](auto& env) { spawn(env, env.locker->with_lock("k", body)); }, __LINE__);
    check_waiting_line([&](auto& env) { spawn(env, env.locker->with_lock({"k"}, body)); }, __LINE__);
    check_waiting_line([&](auto& env) { env.locker->async_acquire("k", ignore); }, __LINE__);
    check_waiting_line([&](auto& env) { env.locker->async_acquire_all({"k"}, ignore); }, __LINE__);
    check_waiting_line([&](auto& env) { env.locker->async_with_lock("k", body, ignore); }, __LINE__);
    check_waiting_line([&](auto& env) { env.locker->async_with_lock({"k"}, body, ignore); }, __LINE__);
    lock_group group;
    const auto grow = [&](auto& env) -> auto& { return group = env.locker->group(); };
    check_waiting_line([&](auto& env) { spawn(env, grow(env).acquire("k")); }, __LINE__);
    check_waiting_line([&](auto& env) { grow(env).async_acquire("k", ignore); }, __LINE__);
}

BOOST_AUTO_TEST_CASE(holder_that_called_a_function_without_options_is_reported_with_the_line_of_its_call)
{
    const auto check_held_line = [](const auto& hold, unsigned line) {
        debug_fixture fixture(backend_kind::memory);
        auto& env = fixture.env;
        std::optional<lock> held;
        hold(env, [&](error_code, auto granted) {
            if constexpr (requires { *granted; })
                held = std::move(*granted);
            else
                held = std::move(granted);
        });
        env.ready();
        constexpr unsigned waiting_line = __LINE__ + 1;
        auto waiting = env.start(env.locker->acquire("k"));
        env.advance_by_steps(1500ms, 100ms);
        fixture.check_report(line, waiting_line);
        held.reset();
        static_cast<void>(waiting.get(env.io()));
    };
    check_held_line([](auto& env, auto then) { env.locker->async_acquire("k", then); }, __LINE__);
    check_held_line([](auto& env, auto then) { env.locker->async_try_acquire("k", then); }, __LINE__);
    const auto detached = [](auto& env) { return env.run(env.acquire("k", {.ttl = 1h}).detach()); };
    check_held_line([&](auto& env, auto then) { env.locker->async_adopt(detached(env), then); }, __LINE__);
}

BOOST_AUTO_TEST_SUITE_END()
