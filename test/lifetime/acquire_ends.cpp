// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Acquires that end without a lock, and how long locks were held: the events of the observer and the statistics.
#include "support/virtual_fixture.hpp"

#include <colock/observer.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/version.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

struct acquire_end
{
    std::string key;
    error_code why;
    std::chrono::nanoseconds waited;
};

/// Records how acquires end, and how long locks were held.
struct end_recorder : observer
{
    std::vector<acquire_end> ends;
    std::vector<std::string> granted_keys;
    std::vector<std::chrono::nanoseconds> hold_times;

    void granted(std::string_view key, std::uint64_t, std::chrono::nanoseconds) noexcept override
    {
        granted_keys.emplace_back(key);
    }
    void not_granted(std::string_view key, const error_code& why, std::chrono::nanoseconds waited) noexcept override
    {
        ends.push_back({std::string(key), why, waited});
    }
    void released(std::string_view, std::chrono::nanoseconds held_for) noexcept override
    {
        hold_times.push_back(held_for);
    }
    void lost(std::string_view, lost_reason, std::chrono::nanoseconds held_for) noexcept override
    {
        hold_times.push_back(held_for);
    }
};

/// A locker with an end_recorder.
struct recorded_fixture
{
    std::shared_ptr<end_recorder> recorder = std::make_shared<end_recorder>();
    virtual_fixture env;

    explicit recorded_fixture(backend_kind kind = backend_kind::memory) : env(kind, {.observer = recorder}) {}

    /// Returns the only recorded end, and forgets it.
    acquire_end take_end()
    {
        BOOST_REQUIRE(recorder->ends.size() == 1U);
        auto end = std::move(recorder->ends.front());
        recorder->ends.clear();
        return end;
    }
};

constexpr backend_kind all_kinds[] = {backend_kind::memory, backend_kind::scripted, backend_kind::immediate};

} // namespace

BOOST_AUTO_TEST_SUITE(acquire_ends)

BOOST_AUTO_TEST_CASE(end_of_the_retry_policy_is_reported_with_the_waiting_time)
{
    for (const auto kind : all_kinds) {
        recorded_fixture fixture(kind);
        auto& env = fixture.env;
        const auto held = env.acquire("k");
        auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1s).total_time(3s)}));
        env.advance_by_steps(4s, 500ms);
        COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
        const auto end = fixture.take_end();
        BOOST_TEST(end.key == "k");
        BOOST_TEST(end.why == error_code(errc::retry_exhausted));
        BOOST_TEST((end.waited >= 3s && end.waited < 4s));
        BOOST_TEST(env.locker->stats().exhausted == 1U);
    }
}

BOOST_AUTO_TEST_CASE(single_attempt_at_a_busy_lock_is_reported_as_exhausted)
{
    for (const auto kind : all_kinds) {
        recorded_fixture fixture(kind);
        auto& env = fixture.env;
        const auto held = env.acquire("k");
        BOOST_TEST(!env.run(env.locker->try_acquire("k")).has_value());
        BOOST_TEST(fixture.take_end().why == error_code(errc::retry_exhausted));
        BOOST_TEST(env.locker->stats().exhausted == 1U);
        const auto other = env.run(env.locker->try_acquire("l"));
        BOOST_TEST(other.has_value());
        BOOST_TEST(fixture.recorder->ends.empty());
    }
}

BOOST_AUTO_TEST_CASE(cancelled_acquire_is_reported_as_operation_aborted)
{
    for (const auto kind : all_kinds) {
        recorded_fixture fixture(kind);
        auto& env = fixture.env;
        const auto held = env.acquire("k");
        asio::cancellation_signal cancel;
        env.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
        env.advance(2s);
        BOOST_TEST(fixture.recorder->ends.empty());
        cancel.emit(asio::cancellation_type::terminal);
        env.ready();
        const auto end = fixture.take_end();
        BOOST_TEST(end.why == error_code(asio::error::operation_aborted));
        BOOST_TEST((end.waited >= 2s));
        BOOST_TEST(env.locker->stats().cancelled == 1U);
    }
}

BOOST_AUTO_TEST_CASE(rejected_input_is_reported_without_a_waiting_time)
{
    for (const auto kind : all_kinds) {
        recorded_fixture fixture(kind);
        auto& env = fixture.env;
        COLOCK_THROWS(validation_error, errc::invalid_ttl, env.acquire("k", {.ttl = -1ms}));
        const auto end = fixture.take_end();
        BOOST_TEST(end.why == error_code(errc::invalid_ttl));
        BOOST_TEST((end.waited == 0ns));
        BOOST_TEST(env.locker->stats().failed == 1U);
    }
}

BOOST_AUTO_TEST_CASE(refusal_by_the_backend_is_reported_with_its_code)
{
    recorded_fixture fixture(backend_kind::scripted);
    auto& env = fixture.env;
    env.script->next(operation::create, step::fail(errc::access_denied));
    COLOCK_THROWS(create_error, errc::access_denied, env.acquire("k"));
    BOOST_TEST(fixture.take_end().why == error_code(errc::access_denied));
    BOOST_TEST(env.locker->stats().failed == 1U);
}

BOOST_AUTO_TEST_CASE(shutdown_reports_each_waiting_acquire)
{
    for (const auto kind : all_kinds) {
        recorded_fixture fixture(kind);
        auto& env = fixture.env;
        const auto held = env.acquire("k");
        auto first = env.start(env.locker->acquire("k"));
        auto second = env.start(env.locker->acquire("k"));
        env.ready();
        env.run(env.locker->shutdown());
        COLOCK_THROWS(create_error, errc::shutting_down, first.get(env.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, second.get(env.io()));
        BOOST_TEST(fixture.recorder->ends.size() == 2U);
        for (const auto& end : fixture.recorder->ends)
            BOOST_TEST(end.why == error_code(errc::shutting_down));
        BOOST_TEST(env.locker->stats().shut_down == 2U);
    }
}

BOOST_AUTO_TEST_CASE(acquire_that_is_destroyed_with_the_context_is_reported_as_shut_down)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const bool is_foreign : {true, false}) {
            recorded_fixture fixture(kind);
            auto& env = fixture.env;
            auto held = env.acquire("k");
            asio::io_context other;
            bool is_invoked = false;
            env.locker->async_acquire("k", asio::bind_executor((is_foreign ? other : env.io()).get_executor(),
                                               [&](error_code, lock) { is_invoked = true; }));
            env.ready();
            env.context.reset();
            other.run();
            BOOST_TEST(!is_invoked);
            BOOST_TEST(fixture.take_end().why == error_code(errc::shutting_down));
            BOOST_TEST(env.locker->stats().shut_down == 1U);
            held = {};
        }
    }
}

BOOST_AUTO_TEST_CASE(incomplete_group_reports_each_of_its_keys_once)
{
    for (const auto kind : all_kinds) {
        recorded_fixture fixture(kind);
        auto& env = fixture.env;
        const auto held = env.acquire("b");
        fixture.recorder->granted_keys.clear();
        auto waiting =
            env.start(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).total_time(3s)}));
        env.advance_by_steps(4s, 500ms);
        COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
        env.wind_down();
        auto& ends = fixture.recorder->ends;
        BOOST_REQUIRE(ends.size() == 2U);
        BOOST_TEST((ends[0].key == "a" && ends[1].key == "b"));
        for (const auto& end : ends) {
            BOOST_TEST(end.why == error_code(errc::retry_exhausted));
            BOOST_TEST((end.waited >= 3s));
        }
        BOOST_TEST(fixture.recorder->granted_keys.empty());
        BOOST_TEST(env.locker->stats().exhausted == 2U);
        ends.clear();
        static_cast<void>(env.run(env.locker->acquire_all({"c", "d"})));
        BOOST_TEST(ends.empty());
    }
}

BOOST_AUTO_TEST_CASE(rejected_group_reports_each_of_its_keys_without_a_waiting_time)
{
    recorded_fixture fixture;
    auto& env = fixture.env;
    auto& ends = fixture.recorder->ends;
    const group_members two_modes{{"b"}, {"a", lock_mode::shared}, {"a", lock_mode::exclusive}};
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(env.locker->acquire_all(two_modes)));
    COLOCK_THROWS(validation_error, errc::invalid_ttl, env.run(env.locker->acquire_all({"a", "b"}, {.ttl = -1ms})));
    BOOST_REQUIRE(ends.size() == 4U);
    for (const auto& end : ends)
        BOOST_TEST((end.waited == 0ns));
    BOOST_TEST((ends[0].key == "a" && ends[1].key == "b"));
    BOOST_TEST(ends[0].why == error_code(errc::invalid_options));
    BOOST_TEST(ends[3].why == error_code(errc::invalid_ttl));
    BOOST_TEST(env.locker->stats().failed == 4U);
}

#if BOOST_VERSION >= 108600
// Before Boost 1.86, a coroutine that is cancelled during its first step throws out of io_context::run().
BOOST_AUTO_TEST_CASE(group_that_is_cancelled_after_its_completion_is_only_reported_as_granted)
{
    // After 64 grants that were answered at once, the group must let other handlers run.
    std::vector<std::string> keys;
    for (int n = 0; n < 64; ++n)
        keys.push_back(std::to_string(n));
    struct canceller : end_recorder
    {
        asio::cancellation_signal cancel;
        void granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept override
        {
            end_recorder::granted(key, fence, waited);
            cancel.emit(asio::cancellation_type::terminal);
        }
    };
    const auto recorder = std::make_shared<canceller>();
    virtual_fixture env(backend_kind::memory, {.observer = recorder});
    env.locker->async_acquire_all(
        keys, asio::bind_cancellation_slot(recorder->cancel.slot(), [](error_code, lock_group) {}));
    env.wind_down();
    BOOST_TEST(recorder->granted_keys.size() == 64U);
    BOOST_TEST(recorder->ends.empty());
}
#endif

BOOST_AUTO_TEST_CASE(adoption_of_a_used_ticket_is_reported_as_not_held)
{
    recorded_fixture fixture;
    auto& env = fixture.env;
    auto held = env.acquire("k");
    const auto ticket = env.run(held.detach());
    auto adopted = env.run(env.locker->adopt(ticket));
    BOOST_TEST(fixture.recorder->ends.empty());
    COLOCK_THROWS(create_error, errc::not_held, env.run(env.locker->adopt(ticket)));
    const auto end = fixture.take_end();
    BOOST_TEST(end.key == "k");
    BOOST_TEST(end.why == error_code(errc::not_held));
}

BOOST_AUTO_TEST_CASE(every_acquire_ends_with_exactly_one_event)
{
    // The grant arrives, but the acquire is cancelled before its handler runs.
    recorded_fixture fixture(backend_kind::scripted);
    auto& env = fixture.env;
    env.script->next(operation::create, step::hold());
    asio::cancellation_signal cancel;
    env.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
    env.ready();
    env.script->deliver();
    cancel.emit(asio::cancellation_type::terminal);
    env.wind_down();
    BOOST_TEST(fixture.recorder->ends.size() + fixture.recorder->granted_keys.size() == 1U);
    const auto stats = env.locker->stats();
    BOOST_TEST(stats.cancelled + stats.grants == 1U);
}

BOOST_AUTO_TEST_CASE(release_and_loss_report_how_long_the_lock_was_held)
{
    for (const auto kind : all_kinds) {
        recorded_fixture fixture(kind);
        auto& env = fixture.env;
        auto& times = fixture.recorder->hold_times;
        auto held = env.acquire("k", {.ttl = 30s});
        env.advance(7s);
        env.run(held.release());
        BOOST_REQUIRE(times.size() == 1U);
        BOOST_TEST((times[0] >= 7s && times[0] < 8s));

        const auto expiring = env.acquire("k", {.ttl = 10s});
        env.advance(15s);
        BOOST_REQUIRE(times.size() == 2U);
        BOOST_TEST((times[1] >= 9s && times[1] < 16s));

        auto group = env.run(env.locker->acquire_all({"a", "b"}));
        env.advance(3s);
        env.run(group.release());
        BOOST_REQUIRE(times.size() == 4U);
        BOOST_TEST((times[3] >= 3s && times[3] < 4s));

        auto moved = env.acquire("m", {.ttl = 30s});
        env.advance(2s);
        static_cast<void>(env.run(moved.detach()));
        BOOST_REQUIRE(times.size() == 5U);
        BOOST_TEST((times[4] >= 2s && times[4] < 3s));
    }
}

BOOST_AUTO_TEST_SUITE_END()
