// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Whether an acquire that fails reports a busy lock, a backend that is down, or an unknown outcome.
#include "backend_failures.hpp"
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(busy_or_down)

namespace {

/// The result of an acquire as text: a code, followed by a cause and a detail, if any.
std::string result_of(virtual_fixture& env, running<lock>& acquiring)
{
    try {
        static_cast<void>(acquiring.get(env.io()));
    } catch (const error& failed) {
        const bool typed = failed.code() == errc::retry_exhausted ? typeid(failed) == typeid(retry_error)
                                                                  : typeid(failed) == typeid(create_error);
        BOOST_TEST(typed, failed.what());
        std::string result = failed.code() == errc::retry_exhausted   ? "busy"
                             : failed.code() == errc::unavailable     ? "unavailable"
                             : failed.code() == errc::outcome_unknown ? "unknown"
                                                                      : failed.code().message();
        if (failed.cause() == connection_refused)
            result += ", refused";
        return result + (failed.detail().empty() ? "" : ": " + failed.detail());
    }
    return "granted";
}

} // namespace

BOOST_AUTO_TEST_CASE(only_an_answer_makes_a_lock_busy)
{
    struct
    {
        const char* name;
        std::vector<step> creates;
        retry_policy policy;
        const char* expected;
    } const cases[] = {
        {"busy", {step::busy(), step::busy(), step::busy()}, retry_policy(every_second).total_time(2500ms), "busy"},
        {"busy at last", {fails(), step::busy()}, retry_policy(every_second).times(1), "busy"},
        {"busy at first", {step::busy(), fails()}, retry_policy(every_second).times(1),
            "unavailable, refused: nobody listens"},
        {"busy, then a lost request", {step::busy(), step::lose_request()}, retry_policy(every_second).times(1),
            "unknown: the request was lost"},
        {"busy, then silence", {step::busy(), step::hold()}, retry_policy(every_second).total_time(3s),
            "unknown: the backend had not answered when the retry policy ended"},
        {"an attempt that has only just begun", {step::busy(), step::hold()},
            retry_policy(every_second).total_time(1050ms), "busy"},
        {"an error, then silence", {fails(), step::hold()}, retry_policy(every_second).total_time(3s),
            "unavailable, refused: nobody listens"},
        {"never an answer", {step::hold()}, retry_policy(every_second).total_time(8s),
            "unknown: the backend had not answered when the retry policy ended"},
    };
    for (const auto& each : cases) {
        BOOST_TEST_CONTEXT(each.name)
        {
            virtual_fixture env(backend_kind::scripted);
            env.script->always(operation::wait, step::hold());
            for (const auto& how : each.creates)
                env.script->next(operation::create, how);
            auto acquiring = env.start(env.locker->acquire("k", {.retry = each.policy}));
            env.advance_by_steps(10s, 50ms);
            BOOST_TEST_REQUIRE(acquiring.done());
            BOOST_TEST(result_of(env, acquiring) == each.expected);
            finish_cleanup(env);
        }
    }
}

BOOST_AUTO_TEST_CASE(unanswered_attempt_is_counted_and_reported_with_the_known_cause)
{
    for (const bool known : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        env.script->always(operation::create, step::hold());
        auto acquiring = env.start(env.locker->acquire("k", {.retry = within(3s)}));
        env.ready();
        if (known)
            env.script->contact().set_down(no_connection(), "here:1");
        env.advance(2s);
        BOOST_TEST(!acquiring.done());
        env.advance(1s);
        const auto thrown = required_error<create_error>([&] { static_cast<void>(acquiring.get(env.io())); });
        BOOST_TEST((thrown.code() == (known ? errc::unavailable : errc::outcome_unknown)));
        BOOST_TEST((thrown.cause() == (known ? connection_refused : error_code())));
        BOOST_TEST(thrown.attempts() == 1U);
        BOOST_TEST((thrown.elapsed() >= 3s));
        finish_cleanup(env);
    }
}

BOOST_AUTO_TEST_CASE(loss_and_return_of_a_connection_change_the_reported_error)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::create, step::hold());
    const auto end_of_one = [&] {
        auto acquiring = env.start(env.locker->acquire("k", {.retry = within(3s)}));
        env.advance(4s);
        auto result = result_of(env, acquiring);
        while (env.script->discard())
            env.ready();
        return result;
    };
    env.script->contact().set_down(connection_refused);
    BOOST_TEST(end_of_one() == "unavailable, refused: the connection was lost");
    env.script->contact().set_up();
    BOOST_TEST(end_of_one().starts_with("unknown"));
    env.script->contact().set_down(no_connection(), "here:1");
    BOOST_TEST(end_of_one() == "unavailable, refused: no connection");
    env.script->contact().set_up();
    BOOST_TEST(end_of_one().starts_with("unknown"));
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(request_that_waits_for_the_first_connection_is_not_in_doubt)
{
    virtual_fixture env(backend_kind::scripted);
    const auto listener = std::make_shared<event_recorder>();
    env.script->attach(listener);
    env.script->always(operation::create, step::hold());
    const auto end_of_one = [&] {
        auto acquiring = env.start(env.locker->acquire("k", {.retry = within(3s)}));
        env.advance(4s);
        auto result = result_of(env, acquiring);
        while (env.script->discard())
            env.ready();
        return result;
    };
    const std::string not_connected = "unavailable: no connection to here:1 has been established yet";
    env.script->contact().set_connecting("here:1");
    BOOST_TEST(end_of_one() == not_connected);
    env.script->contact().set_up();
    BOOST_TEST(end_of_one().starts_with("unknown"));
    // The connection was closed because it was unused, and is opened again.
    env.script->contact().set_connecting("here:1");
    BOOST_TEST(end_of_one() == not_connected);
    env.script->contact().set_idle();
    BOOST_TEST(end_of_one().starts_with("unknown"));
    env.script->contact().set_connecting("here:1");
    env.script->contact().set_down(no_connection(), "here:1");
    BOOST_TEST(end_of_one() == "unavailable, refused: no connection");
    env.script->contact().set_up();
    BOOST_TEST(end_of_one().starts_with("unknown"));
    BOOST_TEST((listener->take() == words{"ready", "refused by here:1: no connection", "reconnected"}));
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(request_under_way_is_not_repeated_when_contact_is_regained)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::wait, step::hold());
    env.script->next(operation::create, fails());
    env.script->next(operation::create, step::hold());
    auto acquiring = env.start(env.locker->acquire("k", {.retry = every_second}));
    env.advance_by_steps(2s, 100ms);
    BOOST_TEST(env.script->count(operation::create) == 2U);
    env.script->contact().set_down(connection_refused);
    env.script->contact().set_up();
    env.ready();
    BOOST_TEST(env.script->count(operation::create) == 2U);
    env.locker.reset();
    COLOCK_THROWS(create_error, errc::shutting_down, acquiring.get(env.io()));
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(listening_waiters_ask_again_when_contact_is_regained_unless_the_backend_keeps_a_queue)
{
    for (const bool fifo : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        auto can = env.script->traits().capabilities;
        can.fifo = fifo;
        env.script->set_capabilities(can);
        env.locker.emplace(env.script);
        env.script->always(operation::wait, step::hold());
        env.script->next(operation::create, step::busy());
        auto acquiring = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1h)}));
        env.ready();
        env.script->contact().set_down(connection_refused);
        env.script->contact().set_up();
        env.ready();
        BOOST_TEST(acquiring.done() == !fifo);
        env.locker.reset();
        if (fifo)
            COLOCK_THROWS(create_error, errc::shutting_down, acquiring.get(env.io()));
        else
            acquiring.get(env.io()) = {};
        finish_cleanup(env);
    }
}

BOOST_AUTO_TEST_CASE(every_one_of_many_waiters_asks_again_when_contact_is_regained)
{
    constexpr unsigned number_of_keys = 3000;
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::fifo});
    env.script->always(operation::wait, step::hold());
    env.script->always(operation::create, step::busy());
    std::vector<running<lock>> acquiring;
    for (unsigned i = 0; i < number_of_keys; ++i)
        acquiring.push_back(env.start(env.locker->acquire(std::to_string(i), {.retry = retry_policy::fixed(1h)})));
    env.ready();
    BOOST_TEST(env.script->count(operation::create) == number_of_keys);
    // Contact that is regained a second time, before the first wake-ups are over, loses none of them.
    for (int times = 0; times < 2; ++times) {
        env.script->contact().set_down(connection_refused);
        env.script->contact().set_up();
    }
    env.ready();
    BOOST_TEST(env.script->count(operation::create) >= 2 * number_of_keys);
    BOOST_TEST(env.script->count(operation::create) <= 3 * number_of_keys);
    env.locker.reset();
    for (auto& each : acquiring)
        COLOCK_THROWS(create_error, errc::shutting_down, each.get(env.io()));
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(waiter_behind_the_head_reports_the_answer_to_the_head)
{
    enum class end : unsigned char
    {
        by_number,
        by_time,
    };
    struct
    {
        const char* name;
        std::vector<step> creates;
        failure_ptr connection_failure;
        const char* expected;
    } const cases[] = {
        {"busy", {step::busy()}, nullptr, "busy: another caller of this locker is first"},
        {"an error", {fails()}, nullptr, "unavailable, refused: nobody listens"},
        {"grants that come too late", {step::pass().delay(40s), step::pass().delay(40s)}, nullptr,
            "unavailable: the grant arrived when too little of its ttl was left; use a longer ttl, or a faster link"},
        {"no answer", {step::hold()}, nullptr, "unavailable: the backend had not answered when the retry policy ended"},
        {"no connection", {step::hold()}, no_connection(), "unavailable, refused: no connection"},
    };
    for (const auto& each : cases) {
        for (const auto how : {end::by_number, end::by_time}) {
            BOOST_TEST_CONTEXT(each.name << (how == end::by_time ? ", by time" : ", by number"))
            {
                virtual_fixture env(backend_kind::scripted);
                env.script->always(operation::wait, step::hold());
                for (const auto& one : each.creates)
                    env.script->next(operation::create, one);
                auto head = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(24h)}));
                env.ready();
                auto behind_it = env.start(env.locker->acquire(
                    "k", {.retry = how == end::by_time ? within(50s) : retry_policy::fixed(15s).jitter(0).times(3)}));
                env.ready();
                if (each.connection_failure)
                    env.script->contact().set_down(each.connection_failure, "here:1");
                env.advance_by_steps(70s, 1s);
                BOOST_TEST_REQUIRE(behind_it.done());
                BOOST_TEST(result_of(env, behind_it) == each.expected);
                env.locker.reset();
                COLOCK_THROWS(create_error, errc::shutting_down, head.get(env.io()));
                finish_cleanup(env);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(lock_is_busy_while_the_request_of_the_head_is_not_overdue)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::create, step::hold());
    auto head = env.start(env.locker->acquire("k"));
    const auto check = [&](acquire_options options) {
        const auto thrown =
            required_error<retry_error>([&] { static_cast<void>(env.acquire("k", std::move(options))); });
        BOOST_TEST((thrown.code() == errc::retry_exhausted));
        BOOST_TEST(thrown.detail() == "another caller of this locker is first");
        BOOST_TEST(thrown.attempts() == 0U);
    };
    check({.retry = retry_policy::never()});
    check({.retry = retry_policy::fixed(1ms).times(2)});
    check({.mode = lock_mode::shared, .retry = retry_policy::never()});
    COLOCK_THROWS(retry_error, errc::retry_exhausted,
        env.run(env.locker->acquire_all({"k", "z"}, {.retry = retry_policy::never()})));
    BOOST_TEST(!env.run(env.locker->try_acquire("k")).has_value());
    // A known cause of failure is reported nevertheless.
    env.script->contact().set_down(connection_refused);
    COLOCK_THROWS(create_error, errc::unavailable, env.acquire("k", {.retry = retry_policy::never()}));
    env.script->contact().set_up();
    env.script->reset();
    while (env.script->deliver())
        env.ready();
    head.get(env.io()) = {};
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(free_key_is_requested_even_after_the_time_limit_of_its_group)
{
    virtual_fixture env(backend_kind::immediate);
    env.script->next(operation::create, step::pass().after([] { virtual_clock::skip(1s); }));
    const auto group = env.run(env.locker->try_acquire_all({"a", "b", "c"}, 500ms, {.mode = lock_mode::shared}));
    BOOST_TEST_REQUIRE(group.has_value());
    BOOST_TEST(group->size() == 3U);
}

BOOST_AUTO_TEST_CASE(request_is_not_overdue_for_twice_the_longest_recent_answer_time)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::wait, step::hold());
    const auto end_of_one = [&] { return env.start(env.locker->acquire("k", {.retry = retry_policy::never()})); };
    const auto check = [&](lease_clock::duration young, lease_clock::duration old) {
        env.script->next(operation::create, step::hold());
        auto head = env.start(env.locker->acquire("k"));
        env.advance(young);
        auto one = end_of_one();
        env.ready();
        BOOST_TEST_REQUIRE(one.done());
        BOOST_TEST(result_of(env, one) == "busy: another caller of this locker is first");
        BOOST_TEST(!env.run(env.locker->try_acquire("k")).has_value());
        env.advance(old - young);
        one = end_of_one();
        env.ready();
        BOOST_TEST_REQUIRE(one.done());
        BOOST_TEST(result_of(env, one) == "unavailable: the backend had not answered when the retry policy ended");
        COLOCK_THROWS(create_error, errc::unavailable, env.run(env.locker->try_acquire("k")));
        env.script->discard();
        env.advance(3s);
        head.get(env.io()) = {};
        env.ready();
    };
    check(0ms, 1s);
    env.script->next(operation::create, step::pass().delay(3s));
    auto slow = env.start(env.locker->acquire("other"));
    env.advance(3s);
    slow.get(env.io()) = {};
    env.ready();
    check(5s, 7s);
    // After sixteen more answers the slow one does not count any more.
    for (int n = 0; n < 16; ++n)
        env.acquire("other") = {};
    check(0ms, 1s);
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(waiter_behind_an_unanswered_head_does_not_report_busy)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::wait, step::hold());
    env.script->next(operation::create, step::busy());
    env.script->next(operation::create, step::hold());
    auto head = env.start(env.locker->acquire("k", {.retry = every_second}));
    auto behind_it = env.start(env.locker->acquire("k", {.retry = retry_policy(every_second).times(4)}));
    env.advance_by_steps(10s, 100ms);
    BOOST_TEST_REQUIRE(behind_it.done());
    BOOST_TEST(result_of(env, behind_it) == "unavailable: the backend had not answered when the retry policy ended");
    env.locker.reset();
    COLOCK_THROWS(create_error, errc::shutting_down, head.get(env.io()));
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(requests_that_the_policy_does_not_count_are_reported_separately)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::create, step::busy());
    env.script->always(operation::wait, step::hold());
    auto acquiring = env.start(env.locker->acquire("k", {.retry = retry_policy(every_second).times(1)}));
    env.ready();
    // The waiter is woken once between the two attempts that count.
    env.script->deliver();
    env.advance_by_steps(2s, 100ms);
    BOOST_TEST_REQUIRE(acquiring.done());
    const auto thrown = required_error<retry_error>([&] { static_cast<void>(acquiring.get(env.io())); });
    BOOST_TEST(thrown.attempts() == 3U);
    BOOST_TEST(thrown.counted_attempts() == 2U);
    BOOST_TEST(std::string_view(thrown.what()).find("(3 requests, 2 attempts counted by the retry policy, ") !=
               std::string_view::npos);
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(lock_held_by_the_same_locker_is_busy)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create, fails());
    auto first = env.start(env.locker->acquire("k", {.retry = every_second}));
    auto second = env.start(env.locker->acquire("k", {.retry = retry_policy(every_second).times(4)}));
    env.advance_by_steps(10s, 500ms);
    BOOST_TEST_REQUIRE(first.done());
    BOOST_TEST_REQUIRE(second.done());
    auto held = first.get(env.io());
    BOOST_TEST(result_of(env, second).starts_with("busy"));
    BOOST_TEST(!env.run(env.locker->try_acquire("k")).has_value());
    held = {};
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(try_behind_a_failing_head_is_not_reported_as_busy)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::wait, step::hold());
    const auto try_it = [&] { return env.run(env.locker->try_acquire("k")).has_value() ? "granted" : "busy"; };
    env.script->next(operation::create, step::hold());
    auto head = env.start(env.locker->acquire("k", {.retry = every_second}));
    env.ready();
    BOOST_TEST(try_it() == "busy");
    env.script->contact().set_down(no_connection(), "here:1");
    COLOCK_THROWS(create_error, errc::unavailable, try_it());
    env.script->contact().set_up();
    env.script->always(operation::create, fails());
    env.script->discard();
    env.advance(5s);
    const auto thrown = required_error<create_error>([&] { try_it(); });
    BOOST_TEST((thrown.code() == errc::unavailable));
    BOOST_TEST((thrown.cause() == connection_refused));
    env.script->always(operation::create, step::busy());
    env.advance(2s);
    BOOST_TEST(try_it() == "busy");
    env.locker.reset();
    COLOCK_THROWS(create_error, errc::shutting_down, head.get(env.io()));
    finish_cleanup(env);
}

BOOST_AUTO_TEST_SUITE_END()
