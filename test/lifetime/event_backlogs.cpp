// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Events that are caused faster than the observer takes them, or by the observer itself.
#include "support/virtual_fixture.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(event_backlogs)

namespace {

/// Counts the events of locks, and calls `react` for each of them.
struct event_counter : observer
{
    int count = 0;
    std::function<void()> react;

    void note()
    {
        ++count;
        if (react)
            react();
    }
    void waiting(std::string_view) noexcept override { note(); }
    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override { note(); }
    void not_granted(std::string_view, const error_code&, std::chrono::nanoseconds) noexcept override { note(); }
    void renewed(std::string_view, std::chrono::nanoseconds) noexcept override { note(); }
    void at_risk(std::string_view, const error_code&) noexcept override { note(); }
    void lost(std::string_view, lost_reason, std::chrono::nanoseconds) noexcept override { note(); }
    void released(std::string_view, std::chrono::nanoseconds) noexcept override { note(); }
    void settled(std::string_view, bool) noexcept override { note(); }
};

constexpr int released_count = 300;

/// Releases `released_count` locks. All but the first are released while the first release is being reported, so that
/// their events are pending at the same time.
void release_within_an_event(virtual_fixture& env, event_counter& counter)
{
    std::vector<lock> held;
    for (int n = 0; n < released_count; ++n)
        held.push_back(env.acquire("k", {.mode = lock_mode::shared}));
    counter.count = 0;
    counter.react = [&held] { held.clear(); };
    held.pop_back();
    counter.react = nullptr;
}

} // namespace

BOOST_AUTO_TEST_CASE(event_in_an_idle_program_is_reported_at_once)
{
    const auto counter = std::make_shared<event_counter>();
    virtual_fixture env(backend_kind::memory, {.observer = counter});
    lock held;
    env.locker->async_acquire("k", [&](error_code, lock granted) { held = std::move(granted); });
    BOOST_TEST(counter->count == 1);
    env.ready();
    held = {};
    BOOST_TEST(counter->count == 2);
    BOOST_TEST(env.idle());
}

BOOST_AUTO_TEST_CASE(one_handler_reports_at_most_one_batch)
{
    const auto counter = std::make_shared<event_counter>();
    virtual_fixture env(backend_kind::memory, {.observer = counter});
    release_within_an_event(env, *counter);
    BOOST_TEST(counter->count < released_count);
    int longest = 0;
    for (int before = counter->count; env.io().poll_one() > 0; before = counter->count)
        longest = std::max(longest, counter->count - before);
    BOOST_TEST(longest == 64);
    BOOST_TEST(counter->count == released_count);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(events_that_are_left_are_reported_when_the_context_is_destroyed)
{
    const auto counter = std::make_shared<event_counter>();
    virtual_fixture env(backend_kind::memory, {.observer = counter});
    release_within_an_event(env, *counter);
    BOOST_TEST(counter->count < released_count);
    env.context.reset();
    BOOST_TEST(counter->count == released_count);
}

BOOST_AUTO_TEST_CASE(events_that_are_left_are_reported_after_the_last_handle_is_gone)
{
    const auto counter = std::make_shared<event_counter>();
    virtual_fixture env(backend_kind::memory, {.observer = counter});
    release_within_an_event(env, *counter);
    env.locker.reset();
    BOOST_TEST(counter->count < released_count);
    env.ready();
    BOOST_TEST(counter->count == released_count);
}

BOOST_AUTO_TEST_CASE(observer_that_acquires_in_each_function_does_not_capture_a_thread)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        BOOST_TEST_CONTEXT(kind)
        {
            const auto counter = std::make_shared<event_counter>();
            virtual_fixture env(kind, {.observer = counter});
            int handlers = 0;
            int started = 0;
            counter->react = [&] {
                // Without an end, so that a thread that reports until nothing is left would never return.
                if (++started < 200'000)
                    env.locker->async_acquire("k" + std::to_string(started), [](error_code, const lock&) {});
            };
            auto first = env.acquire("first");
            while (handlers < 1000 && env.io().poll_one() > 0)
                ++handlers;
            BOOST_TEST(handlers == 1000);
            BOOST_TEST(started < 200'000);
            counter->react = nullptr;
            first = {};
            env.ready();
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(two_lockers_whose_observers_call_each_other_report_every_event)
{
    const auto first_counter = std::make_shared<event_counter>();
    const auto second_counter = std::make_shared<event_counter>();
    virtual_fixture env(backend_kind::memory, {.observer = first_counter});
    const locker second(env.backend(), {.observer = second_counter});
    int left = 200;
    first_counter->react = [&] {
        if (--left > 0)
            second.async_acquire("second" + std::to_string(left), [](error_code, const lock&) {});
    };
    second_counter->react = [&] {
        if (--left > 0)
            env.locker->async_acquire("first" + std::to_string(left), [](error_code, const lock&) {});
    };
    env.locker->async_acquire("k", [](error_code, const lock&) {});
    env.ready();
    const auto count_events = [](const locker_stats& of) { return static_cast<int>(of.grants + of.releases); };
    BOOST_TEST(first_counter->count == count_events(env.locker->stats()));
    BOOST_TEST(second_counter->count == count_events(second.stats()));
    BOOST_TEST(left <= 0);
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
