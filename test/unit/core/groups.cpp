// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"

#include "core/collisions.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <optional>
#include <string>
#include <utility>
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
    take_one_by_one(on);
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
        take_one_by_one(on, fifo);
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
        take_one_by_one(on, fifo);
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
    take_one_by_one(on);
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

/// The key that was in doubt was found busy since: what fails later fails on its own account.
BOOST_AUTO_TEST_CASE(a_round_after_the_doubt_has_ended_counts)
{
    rig on(behind::scripted);
    auto one_by_one = on.script->capabilities();
    one_by_one.several = false;
    on.script->set_capabilities(one_by_one);
    const locker locks(on.backend(), {.ttl = 1h});
    const locker other(on.memory);
    auto held = on.run(other.acquire("a"));
    // "a", which is looked for, and found to be another's; when that has gone, "a", and "b".
    on.script->next(operation::create, step::lose_request());
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::lose_request());
    auto all = on.start(locks.acquire_all({"a", "b"}, {.retry = retry_policy::fixed(10min).times(1)}));
    on.advance_by_steps(2s, 50ms);
    BOOST_TEST(!all.done());
    on.run(held.release());
    on.advance_by_steps(1s, 50ms);
    BOOST_TEST_REQUIRE(all.done());
    BOOST_CHECK_THROW(static_cast<void>(all.get(on.io())), error);
}

BOOST_AUTO_TEST_CASE(a_round_that_looks_for_what_was_left_in_doubt_does_not_count_whichever_key_it_fails_at)
{
    rig on(behind::scripted);
    auto one_by_one = on.script->capabilities();
    one_by_one.several = false;
    on.script->set_capabilities(one_by_one);
    const locker locks(on.backend(), {.ttl = 1h});
    // "a"; then "b", after "a" was found; then both.
    on.script->next(operation::create, step::lose_request());
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::lose_request());
    auto all = on.start(locks.acquire_all({"a", "b"}, {.retry = retry_policy::fixed(10min).times(1)}));
    on.advance_by_steps(2s, 50ms);
    BOOST_TEST(!all.done());
    on.advance_by_steps(2s, 50ms);
    BOOST_TEST_REQUIRE(all.done());
    BOOST_TEST(all.get(on.io()).held());
    BOOST_TEST(locks.stats().retries == 0U);
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
        take_one_by_one(on, fifo);
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

BOOST_AUTO_TEST_CASE(a_group_that_gives_up_says_what_it_met)
{
    // Always busy, also where the time ends while a later attempt is unanswered.
    for (const auto total : {100000ms, 100200ms, 100400ms, 100900ms}) {
        rig on(behind::scripted);
        take_one_by_one(on);
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
    take_one_by_one(on);
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
    take_one_by_one(on);
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

/// Who has come to a key in order passes one whose turn there has come, and which has to begin elsewhere.
BOOST_AUTO_TEST_CASE(a_group_that_has_come_so_far_passes_those_that_have_to_begin_but_not_for_ever)
{
    rig on(behind::scripted);
    take_one_by_one(on, true);
    colock::locker rival(on.memory);
    auto busy = on.run(rival.acquire("b"));
    auto first = on.start(on.locker->acquire_all({"a", "b"}));
    on.ready();
    on.script->next(operation::create, step::hold());
    on.run(busy.release());
    on.ready();
    // Its turn at b has come, and a does not answer.
    constexpr int most = 16;
    for (int n = 0; n < most; ++n) {
        auto passing = on.start(on.locker->acquire_all({"aa", "b"}));
        on.ready();
        BOOST_TEST_REQUIRE(passing.done());
        on.run(passing.get(on.io()).release());
    }
    auto behind_it = on.start(on.locker->acquire_all({"aa", "b"}));
    on.advance_by_steps(5s, 100ms);
    BOOST_TEST(!behind_it.done());
    BOOST_TEST(on.script->deliver());
    auto group = first.get(on.io());
    BOOST_TEST(!behind_it.done());
    on.run(group.release());
    on.run(behind_it.get(on.io()).release());
    on.wind_down();
    on.check_clean();
}

/// Another process has taken the key: it passes nobody for a place in the queue.
BOOST_AUTO_TEST_CASE(a_group_that_passes_in_vain_waits_behind_those_that_it_passed)
{
    for (const bool fifo : {true, false}) {
        rig on(behind::scripted);
        take_one_by_one(on, fifo);
        colock::locker rival(on.memory);
        auto busy = on.run(rival.acquire("b"));
        auto first = on.start(on.locker->acquire_all({"a", "b"}));
        on.ready();
        on.script->next(operation::create, step::hold());
        on.run(busy.release());
        on.ready();
        on.script->next(operation::create, step::pass());
        on.script->next(operation::create, step::busy());
        auto second = on.start(on.locker->acquire_all({"aa", "b"}));
        on.ready();
        BOOST_TEST(!second.done());
        BOOST_TEST(on.script->deliver());
        auto group = first.get(on.io());
        BOOST_TEST(!second.done());
        on.run(group.release());
        on.run(second.get(on.io()).release());
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_passes_and_is_cancelled_or_hears_nothing_leaves_nothing_behind)
{
    for (const bool cancelled : {true, false}) {
        rig on(behind::scripted);
        take_one_by_one(on, true);
        colock::locker rival(on.memory);
        auto busy = on.run(rival.acquire("b"));
        auto first = on.start(on.locker->acquire_all({"a", "b"}));
        on.ready();
        on.script->next(operation::create, step::hold());
        on.run(busy.release());
        on.ready();
        on.script->forget_calls();
        on.script->next(operation::create, step::pass());
        on.script->next(operation::create, cancelled ? step::hold() : step::lose_reply());
        asio::cancellation_signal cancel;
        std::optional<error_code> result;
        lock_group passing;
        on.locker->async_acquire_all(
            {"aa", "b"}, asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, lock_group group) {
                result = code;
                passing = std::move(group);
            }));
        on.ready();
        BOOST_TEST(!result);
        expect(creates(*on.script), {"aa", "b"});
        if (cancelled) {
            cancel.emit(asio::cancellation_type::total);
            on.ready();
            BOOST_TEST((result == asio::error::operation_aborted));
        }
        // That of a; with it, if there is one, the late grant of b, which is given back.
        while (on.script->deliver())
            on.ready();
        for (int n = 0; n < 100 && !(first.done() && result); ++n) {
            on.advance(100ms);
            passing = {};
        }
        BOOST_TEST_REQUIRE(first.done());
        BOOST_TEST(first.get(on.io()).held());
        on.advance_by_steps(10s, 100ms);
        BOOST_TEST_REQUIRE(result.has_value());
        BOOST_TEST((cancelled || !*result));
        passing = {};
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
