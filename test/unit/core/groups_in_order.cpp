// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Tests of groups that hold their lower keys while they wait for a higher one.
#include "groups.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

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

std::optional<lock_status> stored_at(const virtual_fixture& on, std::string_view key)
{
    for (auto& each : on.stored()) {
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
            virtual_fixture on(kind);
            bool stop = false;
            std::size_t granted[2] = {0, 0};
            const auto stream = [&](const char* key, lease_clock::duration hold,
                                    std::size_t& count) -> asio::awaitable<void> {
                while (!stop) {
                    auto held = co_await on.locker->acquire(key);
                    ++count;
                    co_await sleep_for(hold);
                    co_await held.release();
                }
            };
            std::vector<running<void>> streams;
            streams.push_back(on.start(stream("a", 10ms, granted[0])));
            streams.push_back(on.start(stream("b", 13ms, granted[1])));
            on.advance_by_steps(100ms, 1ms);
            const auto before_a = granted[0], before_b = granted[1];
            const group_members keys = mixed ? group_members{"a", {"b", lock_mode::shared}} : group_members{"a", "b"};
            auto waiting = on.start(on.locker->acquire_all(keys));
            on.advance_by_steps(50ms, 1ms);
            BOOST_TEST_REQUIRE(waiting.done());
            // At most one grant that was in flight at each key, and at b a grant made while the group waited for a.
            BOOST_TEST(granted[0] - before_a <= 1U);
            BOOST_TEST(granted[1] - before_b <= 2U);
            stop = true;
            on.run(waiting.get(on.io()).release());
            on.advance_by_steps(100ms, 1ms);
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(groups_and_singles_are_served_in_arrival_order)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        // On a backend with a queue the order also applies between lockers.
        colock::locker second(on.backend());
        strings order;
        const auto single = [&](colock::locker by, std::string name) -> asio::awaitable<void> {
            auto held = co_await by.acquire("a");
            order.push_back(name);
            co_await sleep_for(1ms);
            co_await held.release();
        };
        const auto group = [&](colock::locker by, std::string name) -> asio::awaitable<void> {
            auto held = co_await by.acquire_all({"a", {"b", lock_mode::shared}, "c"});
            order.push_back(name);
            co_await sleep_for(1ms);
            co_await held.release();
        };
        auto busy = on.acquire("a");
        strings expected;
        std::vector<running<void>> all;
        for (int n = 0; n < 8; ++n) {
            const auto& by = n % 2 ? second : *on.locker;
            all.push_back(on.start(group(by, "group " + std::to_string(n))));
            on.ready();
            all.push_back(on.start(single(by, "single " + std::to_string(n))));
            on.ready();
            expected.push_back("group " + std::to_string(n));
            expected.push_back("single " + std::to_string(n));
        }
        on.run(busy.release());
        on.advance_by_steps(1s, 1ms);
        std::vector<std::string> of_one_locker[2], expected_of[2];
        for (std::size_t n = 0; n < order.size(); ++n) {
            of_one_locker[order[n].back() % 2].push_back(order[n]);
            expected_of[expected[n].back() % 2].push_back(expected[n]);
        }
        BOOST_TEST_REQUIRE(order.size() == expected.size());
        for (const int by : {0, 1})
            expect(of_one_locker[by], expected_of[by]);
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(deadlock_with_a_caller_that_nests_ends_by_total_time_on_both_sides)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        const acquire_options brief{.retry = retry_policy::fixed(1s).total_time(5s)};
        auto outer = on.acquire("b");
        auto group = on.start(on.locker->acquire_all({"a", "b"}, brief));
        on.ready();
        auto inner = on.start(on.locker->acquire("a", brief));
        on.advance_by_steps(4s, 100ms);
        BOOST_TEST(!group.done());
        BOOST_TEST(!inner.done());
        on.advance_by_steps(2s, 100ms);
        BOOST_TEST_REQUIRE(group.done());
        BOOST_TEST_REQUIRE(inner.done());
        COLOCK_THROWS(retry_error, errc::retry_exhausted, group.get(on.io()));
        // The group ends first, and releases the lower key.
        try {
            static_cast<void>(inner.get(on.io()));
        } catch (const retry_error& failed) {
            BOOST_TEST((failed.code() == errc::retry_exhausted));
        }
        outer = {};
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(leases_of_an_incomplete_group_are_renewed_regardless_of_the_option)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto renews : {renewal::manual, renewal::automatic}) {
            virtual_fixture on(kind);
            colock::locker other_locker(on.memory);
            auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
            auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.ttl = 3s, .renewal = renews, .max_hold = 4s}));
            on.advance_by_steps(30s, 100ms);
            BOOST_TEST(!waiting.done());
            BOOST_TEST(on.stored().size() == 2U);
            // Shortly before the next renewal: too little of each lease is left for completion.
            on.advance_by_steps(1s, 100ms);
            on.run(busy.release());
            auto group = waiting.get(on.io());
            BOOST_TEST(group.held());
            for (const auto& each : group.locks())
                BOOST_TEST((each.expires_at() - lease_clock::now() >= 1900ms));
            const auto began = lease_clock::now();
            while (group.locks()[0].held() && lease_clock::now() < began + 10s)
                on.advance(100ms);
            // Both count from completion: a manual lease ends by its TTL, and the other one by max_hold.
            const auto held_for = lease_clock::now() - began;
            BOOST_TEST((held_for >= (renews == renewal::manual ? 1900ms : 3900ms)), held_for / 1ms);
            BOOST_TEST((held_for <= (renews == renewal::manual ? 3100ms : 4100ms)), held_for / 1ms);
            group = {};
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(short_lease_is_extended_before_the_group_is_complete)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::pass().before([] { virtual_clock::skip(500ms); }));
    on.script->next(operation::extend, step::fail(errc::unavailable));
    on.script->next(operation::extend, step::hold());
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.ttl = 1s}));
    on.advance_by_steps(300ms, 10ms);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(on.locker->held_locks().empty());
    while (on.script->deliver())
        on.ready();
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    on.run(group.release());
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(group_is_counted_and_reported_at_its_completion)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        const auto log = std::make_shared<event_log>();
        virtual_fixture on(kind, {.observer = log});
        colock::locker other_locker(on.memory);
        auto b = on.run(other_locker.acquire("b", {.ttl = 1h}));
        auto d = on.run(other_locker.acquire("d", {.ttl = 1h}));
        auto waiting = on.start(on.locker->acquire_all({"a", "b", "c", "d"}, {.ttl = 3s}));
        on.advance_by_steps(5s, 100ms);
        on.run(b.release());
        on.advance_by_steps(5s, 100ms);
        BOOST_TEST(!waiting.done());
        auto stats = on.locker->stats();
        BOOST_TEST(stats.grants == 0U);
        BOOST_TEST(stats.held == 0U);
        BOOST_TEST(stats.renewals == 0U);
        BOOST_TEST(stats.waits == 1U);
        BOOST_TEST(stats.waiting == 1U);
        BOOST_TEST((stats.waited_total == 0s));
        BOOST_TEST(on.locker->held_locks().empty());
        expect(log->events, {"waiting b", "waiting d"});
        on.run(d.release());
        auto group = waiting.get(on.io());
        stats = on.locker->stats();
        BOOST_TEST(stats.grants == 4U);
        BOOST_TEST(stats.held == 4U);
        BOOST_TEST(stats.waits == 1U);
        BOOST_TEST(stats.waiting == 0U);
        BOOST_TEST((stats.waited_total >= 10s && stats.waited_total < 11s));
        BOOST_TEST(on.locker->held_locks().size() == 4U);
        expect(log->events, {"waiting b", "waiting d", "granted a", "granted b", "granted c", "granted d"});
        on.run(group.release());
        on.wind_down();
        BOOST_TEST(on.locker->stats().releases == 4U);
        BOOST_TEST(on.locker->stats().settled == 0U);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(incomplete_group_that_is_given_up_releases_everything_without_events)
{
    enum class way
    {
        cancel,
        shutdown,
        orphan,
        total_time,
        failure,
    };
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto ends : {way::cancel, way::shutdown, way::orphan, way::total_time, way::failure}) {
            if (ends == way::failure && kind == backend_kind::memory)
                continue;
            const auto log = std::make_shared<event_log>();
            virtual_fixture on(kind, {.observer = log});
            colock::locker other_locker(on.memory);
            auto busy = on.run(other_locker.acquire("c", {.ttl = 0ms}));
            if (ends == way::failure) {
                on.script->next(operation::create, step::pass());
                on.script->next(operation::create, step::pass());
                on.script->next(operation::create, step::fail(errc::access_denied));
            }
            asio::cancellation_signal cancel;
            std::optional<error_code> result;
            const auto policy =
                ends == way::total_time ? retry_policy::fixed(1h).total_time(5s) : retry_policy::forever();
            on.locker->async_acquire_all({"a", "b", "c"}, {.ttl = 0ms, .retry = policy},
                asio::bind_cancellation_slot(
                    cancel.slot(), [&](error_code code, const lock_group&) { result = code; }));
            on.ready();
            if (ends != way::failure) {
                BOOST_TEST(!result);
                BOOST_TEST(on.stored().size() == 3U);
            }
            if (ends == way::cancel)
                cancel.emit(asio::cancellation_type::total);
            else if (ends == way::shutdown)
                BOOST_TEST(on.run(on.locker->shutdown()).clean());
            else if (ends == way::orphan)
                on.locker.reset();
            else if (ends == way::total_time)
                on.advance(5s);
            on.ready();
            BOOST_TEST_REQUIRE(result.has_value());
            BOOST_TEST(!!*result);
            BOOST_TEST(on.stored().size() == 1U);
            for (const auto& event : log->events)
                BOOST_TEST(event.starts_with("waiting"), event);
            BOOST_TEST(log->settlements.size() >= 2U);
            busy = {};
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(lease_lost_before_completion_releases_all_locks_and_the_queue_place)
{
    for (const bool fifo : {true, false}) {
        const auto log = std::make_shared<event_log>();
        virtual_fixture on(backend_kind::scripted);
        take_one_by_one(on, fifo, {.observer = log});
        colock::locker other_locker(on.memory);
        auto busy = on.run(other_locker.acquire("c", {.ttl = 1h}));
        auto waiting = on.start(
            on.locker->acquire_all({"a", "b", "c"}, {.ttl = 30s, .retry = retry_policy::fixed(1min).jitter(0)}));
        on.ready();
        BOOST_TEST(on.stored().size() == 3U);
        // The group has a place in the local queue of c, and another waiter is behind it.
        auto behind_it = on.start(on.locker->acquire("c"));
        on.ready();
        on.run(on.locker->break_lock("a"));
        on.ready();
        BOOST_TEST(!stored_at(on, "b"));
        BOOST_TEST(on.locker->stats().waiting == 2U);
        on.run(busy.release());
        on.ready();
        // The place of the group has gone to the next waiter.
        BOOST_TEST_REQUIRE(behind_it.done());
        on.run(behind_it.get(on.io()).release());
        on.advance_by_steps(50s, 1s);
        BOOST_TEST(!waiting.done());
        BOOST_TEST(on.stored().empty());
        on.advance_by_steps(15s, 1s);
        BOOST_TEST_REQUIRE(waiting.done());
        auto group = waiting.get(on.io());
        BOOST_TEST(group.held());
        BOOST_TEST(on.locker->stats().losses[static_cast<std::size_t>(lost_reason::broken)] == 0U);
        BOOST_TEST(
            std::ranges::none_of(log->events, [](const std::string& event) { return event.starts_with("lost"); }));
        on.run(group.release());
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(group_that_starts_again_does_not_report_its_wait_again)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on, false, {.observer = log});
    colock::locker other_locker(on.memory);
    auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).jitter(0)}));
    for (int n = 0; n < 3; ++n) {
        on.advance_by_steps(5s, 1s);
        on.run(on.locker->break_lock("a"));
    }
    on.advance_by_steps(5s, 1s);
    BOOST_TEST(std::ranges::count(log->events, "waiting b") == 1);
    busy = {};
    on.run(waiting.get(on.io()).release());
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(lease_that_is_lost_counts_as_a_failed_attempt)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    colock::locker other_locker(on.memory);
    auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting =
        on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1min).jitter(0).times(1)}));
    on.advance_by_steps(61s, 1s);
    // The first attempt and its repetition have failed, so that a loss is the last failure.
    BOOST_TEST(waiting.done());
    COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(on.io()));
    on.wind_down();
    waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).jitter(0).times(2)}));
    on.ready();
    for (int n = 0; n < 5 && !waiting.done(); ++n) {
        on.advance(1s);
        on.run(on.locker->break_lock("a"));
        on.ready();
    }
    BOOST_TEST_REQUIRE(waiting.done());
    BOOST_CHECK_THROW(static_cast<void>(waiting.get(on.io())), create_error);
    busy = {};
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(grant_neither_counts_nor_resets_the_schedule)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    colock::locker other_locker(on.memory);
    auto a = on.run(other_locker.acquire("a", {.ttl = 1h}));
    auto b = on.run(other_locker.acquire("b", {.ttl = 1h}));
    std::vector<std::size_t> attempt_numbers;
    const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
        attempt_numbers.push_back(attempt.number);
        return 10s;
    });
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = policy}));
    on.advance_by_steps(25s, 1s);
    BOOST_TEST(attempt_numbers.size() == 3U);
    on.run(a.release());
    on.ready();
    // b is requested at once, and counts when the schedule's delay is over.
    BOOST_TEST(attempt_numbers.size() == 3U);
    on.advance_by_steps(10s, 1s);
    BOOST_TEST(attempt_numbers == (std::vector<std::size_t>{0, 1, 2, 3}), boost::test_tools::per_element());
    on.run(b.release());
    on.run(waiting.get(on.io()).release());
    on.wind_down();
    on.check_clean();
}

/// A handle does not know of an extension by the group's id in another process.
BOOST_AUTO_TEST_CASE(lock_extended_by_its_groups_id_is_released_by_its_handle)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            virtual_fixture on(kind);
            colock::locker elsewhere(on.memory);
            auto group = on.locker->group("g");
            on.run(group.acquire("k", {.ttl = 1s, .mode = mode}));
            auto all = on.run(on.locker->acquire_all({"a", "b"}, {.ttl = 1s}));
            BOOST_TEST(on.run(elsewhere.group("g").extend(1h)).size() == 1U);
            BOOST_TEST(on.run(elsewhere.group(all.id()).extend(1h)).size() == 2U);
            BOOST_TEST(on.stored().size() == 3U);
            on.advance(1s);
            BOOST_TEST(on.stored().empty());
            BOOST_TEST(!group.held());
            BOOST_TEST(!all.held());
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
