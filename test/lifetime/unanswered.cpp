// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Requests for a lock that wait for each other, and requests that are not answered.
#include "backend_failures.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(one_at_a_time)

BOOST_AUTO_TEST_CASE(renewal_waits_for_a_query_in_flight)
{
    virtual_fixture env(backend_kind::scripted);
    const auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.advance(9s);
    env.script->next(operation::is_valid, step::hold());
    auto asking = env.start(held.is_locked());
    env.advance(2s);
    BOOST_TEST(env.script->count(operation::extend) == 0U);
    env.script->deliver();
    BOOST_TEST(asking.get(env.io()));
    env.ready();
    BOOST_TEST(env.script->count(operation::extend) == 1U);
}

BOOST_AUTO_TEST_CASE(query_waits_for_a_renewal_and_for_another_query)
{
    virtual_fixture env(backend_kind::scripted);
    const auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.script->next(operation::extend, step::hold());
    env.advance(11s);
    env.script->next(operation::is_valid, step::hold());
    auto first = env.start(held.is_locked());
    auto second = env.start(held.is_locked());
    env.ready();
    BOOST_TEST(env.script->count(operation::is_valid) == 0U);
    env.script->deliver();
    env.ready();
    BOOST_TEST(env.script->count(operation::is_valid) == 1U);
    env.script->deliver();
    BOOST_TEST(first.get(env.io()));
    BOOST_TEST(second.get(env.io()));
}

BOOST_AUTO_TEST_CASE(release_follows_the_query_in_flight)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    env.script->next(operation::is_valid, step::hold());
    auto asking = env.start(held.is_locked());
    env.ready();
    auto releasing = env.start(held.release());
    env.ready();
    BOOST_TEST(env.script->count(operation::release) == 0U);
    env.script->deliver();
    releasing.get(env.io());
    BOOST_TEST(env.script->count(operation::release) == 1U);
    // The answer was true when it was made, but is not true any more.
    BOOST_TEST(!asking.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(release_behind_another_operation_keeps_its_time_limit)
{
    for (const auto what : {operation::extend, operation::is_valid, operation::export_ticket}) {
        virtual_fixture env(backend_kind::scripted, {.operation_timeout = 1s});
        auto held = env.acquire("k", {.ttl = 30s});
        env.script->next(what, step::hold());
        auto extending = env.start(what == operation::extend ? held.extend(20s) : sleep_for(0s));
        std::optional<running<bool>> asking;
        std::optional<running<std::string>> detaching;
        if (what == operation::is_valid)
            asking = env.start(held.is_locked());
        if (what == operation::export_ticket)
            detaching = env.start(held.detach());
        env.ready();
        env.script->next(operation::release, step::hold());
        auto releasing = env.start(held.release(on_failure::raise));
        env.advance(500ms);
        env.script->deliver();
        env.advance(400ms);
        BOOST_TEST(!releasing.done());
        env.advance(200ms);
        BOOST_TEST_REQUIRE(releasing.done(), static_cast<int>(what));
        COLOCK_THROWS(release_error, errc::outcome_unknown, releasing.get(env.io()));
        env.script->deliver();
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(extensions_follow_one_another)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    env.script->next(operation::extend, step::hold());
    auto first = env.start(held.extend(40s));
    auto second = env.start(held.extend(50s));
    env.ready();
    BOOST_TEST(env.script->count(operation::extend) == 1U);
    env.script->deliver();
    first.get(env.io());
    second.get(env.io());
    BOOST_TEST(held.ttl() == 50s);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(unanswered)

BOOST_AUTO_TEST_CASE(shutdown_ends_operations_that_wait_for_an_answer)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 1h});
    env.script->next(operation::extend, step::hold());
    auto extending = env.start(held.extend(1h));
    env.ready();
    auto shutting = env.start(env.locker->shutdown(1s));
    env.advance(2s);
    BOOST_TEST(!shutting.get(env.io()).clean());
    env.ready();
    BOOST_TEST_REQUIRE(extending.done());
    BOOST_CHECK_THROW(extending.get(env.io()), extend_error);
    env.script->deliver();
    env.ready();
}

BOOST_AUTO_TEST_CASE(timeout_of_the_adapter_is_used_only_if_it_is_short_enough)
{
    struct row
    {
        std::chrono::milliseconds answers_within;
        bool behind_an_extension;
        bool timed;
    };
    for (const auto& [within, behind_an_extension, timed] :
        {row{1s, false, false}, row{10s, false, true}, row{0s, false, true}, row{1s, true, true}})
    {
        virtual_fixture env(backend_kind::scripted);
        auto limits = env.script->traits().limits;
        limits.operation_timeout = within;
        env.script->set_limits(limits);
        env.locker.emplace(env.backend());
        auto held = env.acquire("k", {.ttl = 1h});
        std::optional<running<void>> extending;
        if (behind_an_extension) {
            env.script->next(operation::extend, step::hold());
            extending = env.start(held.extend(1h));
            env.ready();
        } else {
            env.script->next(operation::release, step::hold());
        }
        auto releasing = env.start(held.release());
        env.ready();
        BOOST_TEST(!releasing.done());
        env.advance(6s);
        BOOST_TEST(releasing.done() == timed);
        env.script->deliver();
        env.wind_down();
        BOOST_TEST(releasing.done());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(body_that_does_not_stop_causes_no_polling)
{
    virtual_fixture env;
    auto working =
        env.start(env.locker->with_lock("k", {.ttl = 30s, .renewal = renewal::manual}, []() -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await sleep_for(1min);
        }));
    env.ready();
    jump(env.io(), 29s);
    env.ready();
    env.advance_by_steps(32s, 1s);
    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
}

BOOST_AUTO_TEST_CASE(clean_up_is_repeated_with_growing_delays)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    env.script->always(operation::release, step::fail(errc::unavailable));
    held = {};
    env.ready();
    env.advance_by_steps(12s, 10ms);
    std::vector<lease_clock::time_point> tries;
    for (const auto& made : env.script->calls()) {
        if (made.what == operation::release)
            tries.push_back(made.operation_start);
    }
    BOOST_TEST_REQUIRE(tries.size() >= 8U);
    auto least = std::chrono::milliseconds(50);
    for (std::size_t n = 1; n < tries.size(); ++n) {
        BOOST_TEST((tries[n] - tries[n - 1] >= least));
        BOOST_TEST((tries[n] - tries[n - 1] < least + 900ms));
        least = std::min(2 * least, std::chrono::milliseconds(2s));
    }
    env.script->reset();
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(without_a_ttl_clean_up_never_gives_up)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 0ms});
    env.script->always(operation::release, step::fail(errc::unavailable));
    held = {};
    for (int day = 0; day < 5; ++day)
        env.advance(24h);
    BOOST_TEST(env.locker->stats().settling == 1U);
    env.script->reset();
    env.wind_down();
    BOOST_TEST(env.locker->stats().unproven == 0U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(raising_release_reports_why_it_was_not_answered)
{
    const error_code refused = asio::error::connection_refused;
    for (const bool known : {false, true}) {
        virtual_fixture env(backend_kind::scripted, {.operation_timeout = 2s});
        auto held = env.acquire("k");
        env.script->next(operation::release, step::hold());
        auto releasing = env.start(held.release(on_failure::raise));
        env.ready();
        if (known)
            env.script->contact().set_down(make_failure(errc::unavailable, "nobody listens", refused), "there:1");
        env.advance(3s);
        const auto thrown = required_error<release_error>([&] { releasing.get(env.io()); });
        BOOST_TEST((thrown.code() == (known ? errc::unavailable : errc::outcome_unknown)));
        BOOST_TEST((thrown.cause() == (known ? refused : error_code(asio::error::timed_out))));
        BOOST_TEST(!thrown.detail().empty());
        env.script->deliver();
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(query_is_never_in_doubt)
{
    enum class asks : unsigned char
    {
        locker,
        list,
        lock,
        breaks,
        purges,
        extends,
    };
    for (const auto what : {asks::locker, asks::list, asks::lock, asks::breaks, asks::purges, asks::extends}) {
        for (const bool known : {false, true}) {
            for (const bool silent : {false, true}) {
                BOOST_TEST_CONTEXT(
                    "question " << static_cast<int>(what) << ", known: " << known << ", silent: " << silent)
                {
                    virtual_fixture env(backend_kind::scripted);
                    auto held = env.acquire("k");
                    for (const auto each : {operation::inspect, operation::list, operation::is_valid,
                             operation::break_key, operation::purge, operation::extend})
                        env.script->next(each, silent ? step::hold() : step::lose_request());
                    if (known)
                        env.script->contact().set_down(no_connection(), "here:1");
                    std::optional<error> thrown;
                    const auto ask = [&](auto coroutine) {
                        auto asking = env.start(std::move(coroutine));
                        env.advance_by_steps(6s, 500ms);
                        BOOST_TEST_REQUIRE(asking.done());
                        thrown = thrown_by<error>([&] { static_cast<void>(asking.get(env.io())); });
                    };
                    switch (what) {
                    case asks::locker:
                        ask(env.locker->is_locked("k"));
                        break;
                    case asks::list:
                        ask(env.locker->list());
                        break;
                    case asks::lock:
                        ask(held.is_locked());
                        break;
                    case asks::breaks:
                        ask(env.locker->break_lock("k"));
                        break;
                    case asks::purges:
                        ask(env.locker->purge());
                        break;
                    case asks::extends:
                        ask([](lock& of) -> asio::awaitable<int> {
                            co_await of.extend(20s);
                            co_return 1;
                        }(held));
                        break;
                    }
                    BOOST_TEST_REQUIRE(thrown.has_value());
                    const bool reads = what == asks::locker || what == asks::list || what == asks::lock;
                    // A lost request is in doubt, whatever is known about the connection afterwards.
                    const bool certain = reads || (known && silent);
                    BOOST_TEST((thrown->code() == (certain ? errc::unavailable : errc::outcome_unknown)));
                    const error_code cause = known ? connection_refused : error_code(asio::error::timed_out);
                    BOOST_TEST((thrown->cause() == (silent ? cause : error_code())));
                    BOOST_TEST(!thrown->detail().empty());
                    BOOST_TEST(held.held());
                    held = {};
                    finish_cleanup(env);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(not_held_answer_ends_the_lock)
{
    for (const bool renews : {false, true}) {
        const auto listener = std::make_shared<event_recorder>();
        virtual_fixture env(backend_kind::scripted, {.observer = listener});
        auto held = env.acquire("k", {.renewal = renews ? renewal::automatic : renewal::manual});
        auto lost = env.start(held.lost());
        env.ready();
        env.script->next(operation::is_valid, step::not_held());
        BOOST_TEST(!env.run(held.is_locked()));
        BOOST_TEST(!held.held());
        BOOST_TEST(lost.get(env.io()) == lost_reason::taken);
        BOOST_TEST((listener->take() == words{"lost: taken"}));
        BOOST_TEST(env.locker->held_locks().empty());
        BOOST_TEST(env.locker->stats().lost(lost_reason::taken) == 1U);
        COLOCK_THROWS(extend_error, errc::not_held, env.run([](lock& of) -> asio::awaitable<int> {
            co_await of.extend(20s);
            co_return 1;
        }(held)));
        BOOST_TEST(env.script->count(operation::extend) == 0U);
        finish_cleanup(env);
    }
}

BOOST_AUTO_TEST_SUITE_END()
