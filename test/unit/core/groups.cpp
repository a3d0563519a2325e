// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"

#include "core/collisions.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

using strings = std::vector<std::string>;

/// The keys of the creates, in the order in which they were started.
strings creates(const scripted_adapter& script)
{
    strings keys;
    for (const auto& call : script.calls()) {
        if (call.what == operation::create)
            keys.push_back(call.key);
    }
    return keys;
}

void expect(const strings& seen, const strings& expected)
{
    BOOST_TEST(seen == expected, boost::test_tools::per_element());
}

/// Another process: a locker on the rig's store, behind a script of its own.
struct neighbour
{
    std::shared_ptr<scripted_adapter> script;
    colock::locker locker;

    explicit neighbour(rig& on)
        : script(std::make_shared<scripted_adapter>(on.memory, on.io().get_executor())), locker(script)
    {
    }
};

void slow_down(scripted_adapter& script, lease_clock::duration each_way)
{
    for (const auto what : {operation::create, operation::release, operation::abandon, operation::hand_over})
        script.always(what, step::pass().delay(each_way));
}

/// Of two locks with a ttl of one second, both granted in time.
void let_first_lease_end(scripted_adapter& script)
{
    script.next(operation::create, step::pass().after([] { virtual_clock::skip(700ms); }));
    script.next(operation::create, step::pass().after([] { virtual_clock::skip(500ms); }));
}

} // namespace

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(all_or_none_in_one_canonical_order)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        auto group = on.run(on.locker->acquire_all({"b", "a", "c", "b"}));
        BOOST_TEST(group.size() == 3U);
        BOOST_TEST(group.locks()[0].key() == "a");
        BOOST_TEST(group.locks()[1].key() == "b");
        BOOST_TEST(group.locks()[2].key() == "c");
        for (const auto& status : on.stored())
            BOOST_TEST(status.group == group.id());
        BOOST_TEST(on.run(on.locker->list({.group = group.id()})).size() == 3U);
        on.run(group.acquire("0"));
        BOOST_TEST(group.size() == 4U);
        BOOST_TEST(on.run(on.locker->list({.group = group.id()})).size() == 4U);
        const auto extended = on.run(group.extend(50s));
        BOOST_TEST_REQUIRE(extended.size() == 4U);
        BOOST_TEST(extended[0].key == "0");
        BOOST_TEST(extended[3].key == "a");
        COLOCK_THROWS(retry_error, errc::retry_exhausted,
            on.run(on.locker->acquire_all({"x", "b", "y"}, {.retry = retry_policy::never()})));
        on.wind_down();
        BOOST_TEST(on.stored().size() == 4U);
        on.run(on.locker->break_lock("b"));
        const auto partial = on.run(group.extend(50s));
        BOOST_TEST_REQUIRE(partial.size() == 4U);
        BOOST_TEST((partial[2].key == "b" && partial[2].status == errc::not_held));
        BOOST_TEST((!partial[0].status && !partial[1].status && !partial[3].status));
        BOOST_TEST(!group.held());
        const auto released = on.run(group.release());
        BOOST_TEST_REQUIRE(released.size() == 4U);
        BOOST_TEST(released[0].key == "0");
        BOOST_TEST((released[2].key == "b" && released[2].status == errc::not_held));
        BOOST_TEST(!released[3].status);
        BOOST_TEST(group.empty());
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_is_not_extended_by_halves_without_a_report)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        auto group = on.run(on.locker->acquire_all({"a", "c"}));
        on.run(group.acquire("b", {.ttl = 0ms}));
        on.run(group.acquire("d"));
        const auto refused = thrown_by<validation_error>([&] { static_cast<void>(on.run(group.extend(50s))); });
        BOOST_TEST_REQUIRE(refused.has_value());
        BOOST_TEST((refused->code() == errc::invalid_ttl));
        BOOST_TEST(refused->key() == "b");
        for (const auto& each : group.locks())
            BOOST_TEST((each.ttl() == (each.key() == "b" ? 0s : 30s)));
        if (on.script)
            BOOST_TEST(on.script->count(operation::extend) == 0U);
        for (const auto& report : on.run(group.release()))
            BOOST_TEST(!report.status);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_waits_for_a_busy_key_while_it_holds_nothing)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        auto busy = on.acquire("b");
        auto waiting = on.start(on.locker->acquire_all({"a", "b", "c"}));
        on.ready();
        BOOST_TEST(!waiting.done());
        BOOST_TEST(on.stored().size() == 1U);
        on.run(busy.release());
        auto group = waiting.get(on.io());
        BOOST_TEST(group.held());
        BOOST_TEST(on.stored().size() == 3U);
        on.run(group.release());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_survives_a_passing_failure)
{
    rig on(behind::scripted);
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::fail(errc::unavailable));
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}));
    on.advance_by_steps(10s, 1s);
    BOOST_TEST_REQUIRE(waiting.done());
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    on.run(group.release());
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_group_starts_again_at_its_first_key_and_holds_nothing_else_then)
{
    for (const bool fifo : {true, false}) {
        rig on(behind::scripted);
        auto able = on.script->capabilities();
        able.fifo = fifo;
        on.script->set_capabilities(able);
        colock::locker rival(on.memory);
        auto busy = on.run(rival.acquire("b"));
        auto waiting = on.start(on.locker->acquire_all({"c", "b", "a"}));
        on.ready();
        BOOST_TEST(on.stored().size() == 1U);
        expect(creates(*on.script), {"a", "b"});
        on.script->forget_calls();
        on.script->next(operation::create, step::hold());
        on.run(busy.release());
        on.ready();
        // Its turn at b has come, and it asks for a first.
        expect(creates(*on.script), {"a"});
        const auto left = on.stored();
        BOOST_TEST((!fifo || left.empty()));
        BOOST_TEST(on.script->deliver());
        auto group = waiting.get(on.io());
        expect(creates(*on.script), {"a", "b", "c"});
        BOOST_TEST(group.held());
        BOOST_TEST(group.locks()[2].key() == "c");
        on.run(group.release());
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_lock_of_the_same_locker_is_not_handed_to_a_group_out_of_order)
{
    for (const bool fifo : {true, false}) {
        rig on(behind::scripted);
        auto able = on.script->capabilities();
        able.fifo = fifo;
        on.script->set_capabilities(able);
        auto busy = on.acquire("b");
        auto waiting = on.start(on.locker->acquire_all({"a", "b"}));
        on.ready();
        on.script->forget_calls();
        on.run(busy.release());
        auto group = waiting.get(on.io());
        expect(creates(*on.script), {"a", "b"});
        BOOST_TEST(on.script->count(operation::hand_over) == 0U);
        // The first key may be.
        waiting = on.start(on.locker->acquire_all({"a", "b"}));
        on.ready();
        on.script->forget_calls();
        on.run(group.release());
        on.run(waiting.get(on.io()).release());
        BOOST_TEST(on.script->count(operation::hand_over) == 1U);
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_round_that_fails_before_its_key_counts_once)
{
    rig on(behind::scripted);
    colock::locker rival(on.memory);
    const auto b = on.run(rival.acquire("b", {.ttl = 24h}));
    std::vector<lease_clock::duration> told;
    const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
        told.push_back(lease_clock::now() - attempt.start);
        return 1min;
    });
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = policy}));
    on.ready();
    // It waits for b, and finds a taken when it looks again.
    const auto a = on.run(rival.acquire("a", {.ttl = 24h}));
    on.script->forget_calls();
    on.advance_by_steps(5min + 30s, 1s);
    BOOST_TEST(told.size() == 6U);
    BOOST_TEST(on.script->count(operation::create) == 5U);
    BOOST_TEST(!waiting.done());
}

BOOST_AUTO_TEST_CASE(a_group_gets_its_turn_as_soon_as_the_key_is_free)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        for (const auto after : {5ms, 50ms, 700ms}) {
            rig on(kind);
            colock::locker rival(on.memory);
            auto busy = on.run(rival.acquire("b"));
            auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1h)}));
            on.ready();
            on.advance_by_steps(after, 5ms);
            BOOST_TEST(!waiting.done());
            on.run(busy.release());
            on.ready();
            BOOST_TEST_REQUIRE(waiting.done());
            on.run(waiting.get(on.io()).release());
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_group_keeps_to_the_delays_of_its_policy)
{
    for (const bool fifo : {true, false}) {
        rig on(behind::scripted);
        auto able = on.script->capabilities();
        able.fifo = fifo;
        on.script->set_capabilities(able);
        slow_down(*on.script, 5ms);
        colock::locker rival(on.memory);
        const auto busy = on.run(rival.acquire("b", {.ttl = 1h}));
        std::vector<std::size_t> told;
        const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
            told.push_back(attempt.number);
            if (attempt.number == 4)
                return retry_stop;
            return 1min;
        });
        auto waiting = on.start(on.locker->acquire_all({"a", "b", "c"}, {.retry = policy}));
        while (told.size() < 4)
            on.advance(1s);
        // One round at once, and one after each minute.
        expect(creates(*on.script), {"a", "b", "a", "b", "a", "b", "a", "b"});
        while (!waiting.done())
            on.advance(1s);
        const auto failed = thrown_by<retry_error>([&] { static_cast<void>(waiting.get(on.io())); });
        BOOST_TEST_REQUIRE(failed.has_value());
        BOOST_TEST((failed->code() == errc::retry_exhausted));
        BOOST_TEST(failed->attempts() == 5U);
        BOOST_TEST(failed->key() == "b");
        BOOST_TEST((failed->elapsed() >= 4min));
        BOOST_TEST(told.size() == 5U);
        BOOST_TEST(on.stored().size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(groups_that_run_into_each_other_in_step_get_out_of_it)
{
    const auto patient = retry_policy::exponential(20s, 2.0, 200s).jitter(0.5);
    const retry_policy policies[] = {patient, retry_policy(patient).times(5), retry_policy(patient).total_time(100s)};
    for (const auto& policy : policies) {
        for (const bool fifo : {true, false}) {
            rig on(behind::scripted);
            neighbour other(on);
            for (const auto& script : {on.script, other.script}) {
                auto able = script->capabilities();
                able.fifo = fifo;
                script->set_capabilities(able);
                slow_down(*script, 500ms);
            }
            colock::locker rival(on.memory);
            auto b = on.run(rival.acquire("b", {.ttl = 1h}));
            const auto take_both = [&](colock::locker by) -> asio::awaitable<void> {
                auto group = co_await by.acquire_all({"a", "b"}, {.retry = policy});
                BOOST_TEST(group.held());
                co_await group.release();
            };
            auto first = on.start(take_both(*on.locker));
            on.advance_by_steps(5s, 100ms);
            auto a = on.run(rival.acquire("a", {.ttl = 1h}));
            auto second = on.start(take_both(other.locker));
            on.advance_by_steps(5s, 100ms);
            // One waits for b, the other for a: both wake in the same instant.
            a = {};
            b = {};
            on.advance_by_steps(40s, 100ms);
            BOOST_TEST_REQUIRE(first.done());
            BOOST_TEST_REQUIRE(second.done());
            first.get(on.io());
            second.get(on.io());
            BOOST_TEST(on.script->count(operation::create) + other.script->count(operation::create) < 40U);
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_stream_of_others_does_not_shut_a_group_out)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        bool stop = false;
        const auto stream = [&]() -> asio::awaitable<void> {
            while (!stop) {
                auto held = co_await on.locker->acquire("b");
                lease_timer timer(co_await asio::this_coro::executor, 1s);
                co_await timer.async_wait(asio::deferred);
            }
        };
        std::vector<running<void>> others;
        for (int i = 0; i < 3; ++i)
            others.push_back(on.start(stream()));
        on.ready();
        auto waiting = on.start(on.locker->acquire_all({"a", "b"}));
        on.advance_by_steps(20s, 100ms);
        BOOST_TEST(waiting.done());
        stop = true;
        if (waiting.done())
            on.run(waiting.get(on.io()).release());
        on.advance_by_steps(10s, 100ms);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_gives_up_says_what_it_met)
{
    // Always busy, also where the time ends while a later attempt is unanswered.
    for (const auto total : {100000ms, 100200ms, 100400ms, 100900ms}) {
        rig on(behind::scripted);
        slow_down(*on.script, 500ms);
        colock::locker rival(on.memory);
        const auto busy = on.run(rival.acquire("b", {.ttl = 1h}));
        auto waiting = on.start(
            on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(25s).jitter(0.0).total_time(total)}));
        on.advance_by_steps(110s, 100ms);
        BOOST_TEST_REQUIRE(waiting.done());
        COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(on.io()));
        on.wind_down();
    }
    // The last round ended with an error.
    rig on(behind::scripted);
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::busy());
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::fail(errc::unavailable, "out for lunch"));
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).times(1)}));
    on.advance_by_steps(5s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    const auto failed = thrown_by<create_error>([&] { static_cast<void>(waiting.get(on.io())); });
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST((failed->code() == errc::unavailable));
    BOOST_TEST(failed->detail() == "out for lunch");
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(no_group_is_returned_of_which_a_lease_ended_on_the_way)
{
    const acquire_options options{.ttl = 1s, .retry = retry_policy::fixed(300ms).jitter(0.0).times(2)};
    rig on(behind::scripted);
    // Once: it takes them anew.
    let_first_lease_end(*on.script);
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, options));
    on.ready();
    BOOST_TEST(!waiting.done());
    on.advance(300ms);
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    BOOST_TEST(on.script->count(operation::create) == 4U);
    on.run(group.release());
    // Each time: it says so.
    for (int i = 0; i < 3; ++i)
        let_first_lease_end(*on.script);
    waiting = on.start(on.locker->acquire_all({"a", "b"}, options));
    on.advance_by_steps(2s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    COLOCK_THROWS(create_error, errc::unavailable, waiting.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_group_that_keeps_out_of_the_way_ends_at_once_when_it_has_to)
{
    enum class way
    {
        shutdown,
        orphan,
        cancel,
    };
    for (const auto ends : {way::shutdown, way::orphan, way::cancel}) {
        rig on(behind::scripted);
        // A lease that ends on the way: the next round comes after the policy's delay.
        let_first_lease_end(*on.script);
        asio::cancellation_signal cancel;
        std::optional<error_code> result;
        on.locker->async_acquire_all({"a", "b"}, {.ttl = 1s, .retry = retry_policy::fixed(1h)},
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock_group&) { result = code; }));
        on.ready();
        BOOST_TEST(!result);
        BOOST_TEST(on.stored().empty());
        if (ends == way::shutdown)
            BOOST_TEST(on.run(on.locker->shutdown()).unsettled.empty());
        else if (ends == way::orphan)
            on.locker.reset();
        else
            cancel.emit(asio::cancellation_type::total);
        on.ready();
        BOOST_TEST_REQUIRE(result.has_value());
        BOOST_TEST((ends == way::cancel ? *result == asio::error::operation_aborted : *result == errc::shutting_down));
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_loses_each_time_keeps_out_of_the_way_for_longer)
{
    rig on(behind::scripted);
    colock::locker rival(on.memory);
    std::optional<running<lock>> taken;
    const auto began = lease_clock::now();
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(24h)}));
    for (std::size_t losses = 0; losses < 10; ++losses) {
        // Just when it has got as far as b, somebody else takes that.
        on.script->next(operation::create, step::pass().delay(1s).after([&] { taken = on.start(rival.acquire("b")); }));
        on.script->next(operation::create, step::pass().delay(1s));
        while (on.locker->stats().busy == losses)
            on.advance(200ms);
        on.run(taken->get(on.io()).release());
    }
    // The rounds took 20 s; the pauses are at random, of at most 1 + 2 + 4 + ... + 256 s.
    BOOST_TEST((lease_clock::now() - began >= 40s));
    while (!waiting.done())
        on.advance(1s);
    BOOST_TEST((lease_clock::now() - began < 20min));
    on.run(waiting.get(on.io()).release());
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(pauses_double_from_one_round_trip_while_losses_come_in_a_row)
{
    using colock::detail::collisions;
    const lease_clock::time_point start = lease_clock::now();
    for (int again = 0; again < 50; ++again) {
        collisions met;
        // Each round takes two requests of 5 ms.
        auto now = start;
        const auto lose = [&](lease_clock::duration longest) {
            met.lost(now, now + 10ms, 2, longest);
            now += 10ms;
        };
        lose(1s);
        BOOST_TEST((met.in_a_row() == 1U && met.resume_at() == now));
        for (const auto bound : {5ms, 10ms, 20ms, 40ms, 70ms, 70ms}) {
            now = std::max(now, met.resume_at());
            lose(70ms);
            BOOST_TEST((met.resume_at() >= now && met.resume_at() <= now + bound));
        }
        BOOST_TEST(met.in_a_row() == 7U);
        // Who waits for long has not run into a rival's round.
        now += 1s;
        lose(1s);
        BOOST_TEST((met.in_a_row() == 1U && met.resume_at() == now));
        // No delay, no pause.
        lose(0s);
        BOOST_TEST((met.in_a_row() == 2U && met.resume_at() == now));
    }
    // A backend that answers at once, and a clock that stands still.
    collisions met;
    for (int n = 0; n < 20; ++n)
        met.lost(start, start, 2, 1s);
    BOOST_TEST(met.in_a_row() == 20U);
    BOOST_TEST((met.resume_at() > start && met.resume_at() <= start + 1s));
}

BOOST_AUTO_TEST_SUITE_END()
