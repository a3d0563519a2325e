// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Tests of groups that hold their first keys while they wait for a later one.
#include "groups.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(groups_in_order)

namespace {

/// Records the events of locks.
class event_log final : public observer
{
public:
    void waiting(std::string_view key) noexcept override { add("waiting", key); }
    void granted(std::string_view key, std::uint64_t, std::chrono::nanoseconds) noexcept override
    {
        add("granted", key);
    }
    void renewed(std::string_view key, std::chrono::nanoseconds) noexcept override { add("renewed", key); }
    void at_risk(std::string_view key, const error_code&) noexcept override { add("at_risk", key); }
    void lost(std::string_view key, lost_reason, std::chrono::nanoseconds) noexcept override { add("lost", key); }
    void released(std::string_view key, std::chrono::nanoseconds) noexcept override { add("released", key); }
    void settled(std::string_view key, bool) noexcept override { settlements.emplace_back(key); }

    strings events;
    strings settlements;

private:
    void add(std::string what, std::string_view key) { events.push_back(what.append(" ").append(key)); }
};

std::optional<lock_status> stored_at(const virtual_fixture& env, std::string_view key)
{
    for (auto& each : env.stored()) {
        if (each.key == key)
            return each;
    }
    return std::nullopt;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_stream_for_each_key_does_not_starve_a_group)
{
    for (const auto kind : {backend_kind::memory, backend_kind::immediate, backend_kind::scripted}) {
        for (const bool mixed : {false, true}) {
            virtual_fixture env(kind);
            bool stop = false;
            std::size_t granted[2] = {0, 0};
            const auto stream = [&](const char* key, lease_clock::duration hold,
                                    std::size_t& count) -> asio::awaitable<void> {
                while (!stop) {
                    auto held = co_await env.locker->acquire(key);
                    ++count;
                    co_await sleep_for(hold);
                    co_await held.release();
                }
            };
            std::vector<running<void>> streams;
            streams.push_back(env.start(stream("a", 10ms, granted[0])));
            streams.push_back(env.start(stream("b", 13ms, granted[1])));
            env.advance_by_steps(100ms, 1ms);
            const auto before_a = granted[0], before_b = granted[1];
            const group_members keys = mixed ? group_members{"a", {"b", lock_mode::shared}} : group_members{"a", "b"};
            auto waiting = env.start(env.locker->acquire_all(keys));
            env.advance_by_steps(50ms, 1ms);
            BOOST_TEST_REQUIRE(waiting.done());
            // At most one grant that was in flight at each key, and at b a grant made while the group waited for a.
            BOOST_TEST(granted[0] - before_a <= 1U);
            BOOST_TEST(granted[1] - before_b <= 2U);
            stop = true;
            env.run(waiting.get(env.io()).release());
            env.advance_by_steps(100ms, 1ms);
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(leases_of_an_incomplete_group_are_renewed_regardless_of_the_option)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto renews : {renewal::manual, renewal::automatic}) {
            virtual_fixture env(kind);
            colock::locker other_locker(env.memory);
            auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
            auto waiting =
                env.start(env.locker->acquire_all({"a", "b"}, {.ttl = 3s, .renewal = renews, .max_hold = 4s}));
            env.advance_by_steps(30s, 100ms);
            BOOST_TEST(!waiting.done());
            BOOST_TEST(env.stored().size() == 2U);
            // Shortly before the next renewal: too little of each lease is left for completion.
            env.advance_by_steps(1s, 100ms);
            env.run(busy.release());
            auto group = waiting.get(env.io());
            BOOST_TEST(group.held());
            for (const auto& each : group.locks())
                BOOST_TEST((each.expires_at() - lease_clock::now() >= 1900ms));
            const auto began = lease_clock::now();
            while (group.locks()[0].held() && lease_clock::now() < began + 10s)
                env.advance(100ms);
            // Both count from completion: a manual lease ends by its TTL, and the other one by max_hold.
            const auto held_for = lease_clock::now() - began;
            BOOST_TEST((held_for >= (renews == renewal::manual ? 1900ms : 3900ms)), held_for / 1ms);
            BOOST_TEST((held_for <= (renews == renewal::manual ? 3100ms : 4100ms)), held_for / 1ms);
            group = {};
            env.wind_down_and_check();
        }
    }
}

BOOST_AUTO_TEST_CASE(short_lease_is_extended_before_the_group_is_complete)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    env.script->next(operation::create, step::pass());
    env.script->next(operation::create, step::pass().before([] { virtual_clock::skip(500ms); }));
    env.script->next(operation::extend, step::fail(errc::unavailable));
    env.script->next(operation::extend, step::hold());
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, {.ttl = 1s}));
    env.advance_by_steps(300ms, 10ms);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(env.locker->held_locks().empty());
    while (env.script->deliver())
        env.ready();
    auto group = waiting.get(env.io());
    BOOST_TEST(group.held());
    env.run(group.release());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(group_is_counted_and_reported_at_its_completion)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        const auto log = std::make_shared<event_log>();
        virtual_fixture env(kind, {.observer = log});
        colock::locker other_locker(env.memory);
        auto b = env.run(other_locker.acquire("b", {.ttl = 1h}));
        auto d = env.run(other_locker.acquire("d", {.ttl = 1h}));
        auto waiting = env.start(env.locker->acquire_all({"a", "b", "c", "d"}, {.ttl = 3s}));
        env.advance_by_steps(5s, 100ms);
        env.run(b.release());
        env.advance_by_steps(5s, 100ms);
        BOOST_TEST(!waiting.done());
        auto stats = env.locker->stats();
        BOOST_TEST(stats.grants == 0U);
        BOOST_TEST(stats.held == 0U);
        BOOST_TEST(stats.renewals == 0U);
        BOOST_TEST(stats.waits == 1U);
        BOOST_TEST(stats.waiting == 1U);
        BOOST_TEST((stats.waited_total == 0s));
        BOOST_TEST(env.locker->held_locks().empty());
        expect(log->events, {"waiting b", "waiting d"});
        env.run(d.release());
        auto group = waiting.get(env.io());
        stats = env.locker->stats();
        BOOST_TEST(stats.grants == 4U);
        BOOST_TEST(stats.held == 4U);
        BOOST_TEST(stats.waits == 1U);
        BOOST_TEST(stats.waiting == 0U);
        BOOST_TEST((stats.waited_total >= 10s && stats.waited_total < 11s));
        BOOST_TEST(env.locker->held_locks().size() == 4U);
        expect(log->events, {"waiting b", "waiting d", "granted a", "granted b", "granted c", "granted d"});
        env.run(group.release());
        env.wind_down();
        BOOST_TEST(env.locker->stats().releases == 4U);
        BOOST_TEST(env.locker->stats().settled == 0U);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(incomplete_group_that_is_given_up_releases_everything_without_events)
{
    enum class end
    {
        cancel,
        shutdown,
        locker_destroyed,
        total_time,
        failure,
    };
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto how : {end::cancel, end::shutdown, end::locker_destroyed, end::total_time, end::failure}) {
            if (how == end::failure && kind == backend_kind::memory)
                continue;
            const auto log = std::make_shared<event_log>();
            virtual_fixture env(kind, {.observer = log});
            colock::locker other_locker(env.memory);
            auto busy = env.run(other_locker.acquire("c", {.ttl = 0ms}));
            if (how == end::failure) {
                env.script->next(operation::create, step::pass());
                env.script->next(operation::create, step::pass());
                env.script->next(operation::create, step::fail(errc::access_denied));
            }
            asio::cancellation_signal cancel;
            std::optional<error_code> result;
            const auto policy =
                how == end::total_time ? retry_policy::fixed(1h).total_time(5s) : retry_policy::forever();
            env.locker->async_acquire_all({"a", "b", "c"}, {.ttl = 0ms, .retry = policy},
                asio::bind_cancellation_slot(
                    cancel.slot(), [&](error_code code, const lock_group&) { result = code; }));
            env.ready();
            if (how != end::failure) {
                BOOST_TEST(!result);
                BOOST_TEST(env.stored().size() == 3U);
            }
            if (how == end::cancel)
                cancel.emit(asio::cancellation_type::total);
            else if (how == end::shutdown)
                BOOST_TEST(env.run(env.locker->shutdown()).clean());
            else if (how == end::locker_destroyed)
                env.locker.reset();
            else if (how == end::total_time)
                env.advance(5s);
            env.ready();
            BOOST_TEST_REQUIRE(result.has_value());
            BOOST_TEST(!!*result);
            BOOST_TEST(env.stored().size() == 1U);
            for (const auto& event : log->events)
                BOOST_TEST(event.starts_with("waiting"), event);
            BOOST_TEST(log->settlements.size() >= 2U);
            busy = {};
            env.wind_down_and_check();
        }
    }
}

BOOST_AUTO_TEST_CASE(lease_lost_before_completion_releases_all_locks_and_the_queue_place)
{
    for (const bool fifo : {true, false}) {
        const auto log = std::make_shared<event_log>();
        virtual_fixture env(backend_kind::scripted);
        disable_create_all(env, fifo, {.observer = log});
        colock::locker other_locker(env.memory);
        auto busy = env.run(other_locker.acquire("c", {.ttl = 1h}));
        auto waiting = env.start(
            env.locker->acquire_all({"a", "b", "c"}, {.ttl = 30s, .retry = retry_policy::fixed(1min).jitter(0)}));
        env.ready();
        BOOST_TEST(env.stored().size() == 3U);
        // The group has a place in the local queue of c, and another waiter is behind it.
        auto behind_it = env.start(env.locker->acquire("c"));
        env.ready();
        env.run(env.locker->break_lock("a"));
        env.ready();
        BOOST_TEST(!stored_at(env, "b"));
        BOOST_TEST(env.locker->stats().waiting == 2U);
        env.run(busy.release());
        env.ready();
        // The place of the group has gone to the next waiter.
        BOOST_TEST_REQUIRE(behind_it.done());
        env.run(behind_it.get(env.io()).release());
        env.advance_by_steps(50s, 1s);
        BOOST_TEST(!waiting.done());
        BOOST_TEST(env.stored().empty());
        env.advance_by_steps(15s, 1s);
        BOOST_TEST_REQUIRE(waiting.done());
        auto group = waiting.get(env.io());
        BOOST_TEST(group.held());
        BOOST_TEST(env.locker->stats().losses[static_cast<std::size_t>(lost_reason::broken)] == 0U);
        BOOST_TEST(
            std::ranges::none_of(log->events, [](const std::string& event) { return event.starts_with("lost"); }));
        env.run(group.release());
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(group_that_starts_again_does_not_report_its_wait_again)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env, false, {.observer = log});
    colock::locker other_locker(env.memory);
    auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).jitter(0)}));
    for (int n = 0; n < 3; ++n) {
        env.advance_by_steps(5s, 1s);
        env.run(env.locker->break_lock("a"));
    }
    env.advance_by_steps(5s, 1s);
    BOOST_TEST(std::ranges::count(log->events, "waiting b") == 1);
    busy = {};
    env.run(waiting.get(env.io()).release());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(lease_that_is_lost_counts_as_a_failed_attempt)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    colock::locker other_locker(env.memory);
    auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting =
        env.start(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1min).jitter(0).times(1)}));
    env.advance_by_steps(61s, 1s);
    // The first attempt and its repetition have failed, so that a loss is the last failure.
    BOOST_TEST(waiting.done());
    COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
    env.wind_down();
    waiting = env.start(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).jitter(0).times(2)}));
    env.ready();
    for (int n = 0; n < 5 && !waiting.done(); ++n) {
        env.advance(1s);
        env.run(env.locker->break_lock("a"));
        env.ready();
    }
    BOOST_TEST_REQUIRE(waiting.done());
    BOOST_CHECK_THROW(static_cast<void>(waiting.get(env.io())), create_error);
    busy = {};
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_SUITE_END()
