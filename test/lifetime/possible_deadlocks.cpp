// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// locker_options::debug: acquires that wait for a lock of their own locker are reported.
#include "support/virtual_fixture.hpp"

#include <colock/observer.hpp>

#include <chrono>
#include <memory>
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
};

struct report_recorder : observer
{
    std::vector<deadlock_report> reports;

    void possible_deadlock(std::string_view key, std::chrono::nanoseconds held_for,
        const std::source_location& acquired_at) noexcept override
    {
        reports.push_back({std::string(key), held_for, acquired_at});
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

    /// Checks the only report: of "k", at this line of this file.
    void check_report(unsigned line) const
    {
        BOOST_TEST_REQUIRE(recorder->reports.size() == 1U);
        const auto& report = recorder->reports.front();
        BOOST_TEST(report.key == "k");
        BOOST_TEST((report.held_for >= 1s && report.held_for <= 2s));
        BOOST_TEST(report.acquired_at.line() == line);
        BOOST_TEST(std::string_view(report.acquired_at.file_name()).ends_with("possible_deadlocks.cpp"));
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
        auto waiting = env.start(env.locker->acquire("k"));
        env.advance_by_steps(900ms, 100ms);
        BOOST_TEST(fixture.recorder->reports.empty());
        env.advance_by_steps(300ms, 100ms);
        fixture.check_report(line);
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
        auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(10s).total_time(30s)}));
        env.advance_by_steps(1500ms, 100ms);
        fixture.check_report(line);
        env.advance_by_steps(30s, 1s);
        COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
        BOOST_TEST(fixture.recorder->reports.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(acquire_all_reports_a_key_held_by_its_locker)
{
    for (const auto kind : all_kinds) {
        debug_fixture fixture(kind);
        auto& env = fixture.env;
        constexpr unsigned line = __LINE__ + 1;
        auto held = env.run(env.locker->acquire("k"));
        auto waiting = env.start(env.locker->acquire_all({"a", "k"}));
        env.advance_by_steps(1500ms, 100ms);
        fixture.check_report(line);
        env.run(held.release());
        static_cast<void>(waiting.get(env.io()));
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
        auto second = env.start(env.locker->acquire("k"));
        env.advance_by_steps(3500ms, 100ms);
        BOOST_TEST(fixture.recorder->reports.empty());
        env.run(foreign.release());
        auto held = first.get(env.io());
        env.advance_by_steps(900ms, 100ms);
        BOOST_TEST(fixture.recorder->reports.empty());
        env.advance_by_steps(1200ms, 100ms);
        fixture.check_report(line);
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

BOOST_AUTO_TEST_CASE(report_of_an_async_acquire_names_the_line_of_its_options)
{
    debug_fixture fixture(backend_kind::memory);
    auto& env = fixture.env;
    constexpr unsigned line = __LINE__ + 1;
    env.locker->async_acquire("k", {},
        [&](error_code, lock held) { env.locker->async_acquire("k", [kept = std::move(held)](error_code, lock) {}); });
    env.advance_by_steps(1500ms, 100ms);
    fixture.check_report(line);
    env.run(env.locker->shutdown());
}

BOOST_AUTO_TEST_SUITE_END()
