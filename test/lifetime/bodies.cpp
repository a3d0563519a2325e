// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Bodies of with_lock: where they run, what ends them, and what their caller receives.
#include "support/undoing_adapter.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <string>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(bodies)

BOOST_AUTO_TEST_CASE(loss_is_reported_before_the_release_is_answered)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->always(operation::release, step::hold());
    on.script->always(operation::abandon, step::hold());
    auto working =
        on.start(on.locker->with_lock("k", {.ttl = 1s, .renewal = renewal::manual}, []() -> asio::awaitable<void> {
            lease_timer timer(co_await asio::this_coro::executor, 1h);
            co_await timer.async_wait(asio::use_awaitable);
        }));
    on.ready();
    on.advance(1s);
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    on.script->reset();
    while (on.script->deliver())
        on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(body_is_cancelled_though_a_second_claim_was_granted)
{
    virtual_fixture on(backend_kind::scripted);
    const colock::locker locker(std::make_shared<undoing_adapter>(on.script));
    bool has_begun = false;
    const acquire_options options{.ttl = 30s, .retry = retry_policy::fixed(1s), .renewal = renewal::manual};
    auto working = on.start(locker.with_lock("k", options, [&]() -> asio::awaitable<void> {
        has_begun = true;
        co_await sleep_for(1h);
    }));
    on.advance_by_steps(10s, 100ms);
    BOOST_TEST(has_begun);
    on.advance_by_steps(30s, 100ms);
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    on.wind_down();
}

BOOST_AUTO_TEST_CASE(coroutine_body_runs_on_the_strand_of_its_caller)
{
    virtual_fixture on;
    const asio::any_io_executor strand = asio::make_strand(on.io());
    bool has_run = false;
    asio::co_spawn(strand,
        on.locker->with_lock("k",
            [&]() -> asio::awaitable<void> {
                BOOST_TEST((co_await asio::this_coro::executor == strand));
                has_run = true;
            }),
        asio::detached);
    on.ready();
    BOOST_TEST(has_run);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(body_that_is_no_coroutine_is_called_before_anything_else_runs)
{
    for (const auto kind : {backend_kind::memory, backend_kind::immediate}) {
        virtual_fixture on(kind);
        bool has_run = false;
        bool others_ran = false;
        const auto call = [&]() -> asio::awaitable<void> {
            asio::post(on.io(), [&] { others_ran = true; });
            co_await on.locker->with_lock("k", [&](lock& held) {
                BOOST_TEST(held.held());
                BOOST_TEST(!others_ran);
                has_run = true;
            });
        };
        on.run(call());
        BOOST_TEST(has_run);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_body_stops_before_its_lease_can_end)
{
    for (const auto mode : {renewal::automatic, renewal::manual}) {
        virtual_fixture on(backend_kind::scripted);
        on.script->always(operation::extend, step::fail(errc::unavailable));
        const auto start = lease_clock::now();
        lease_clock::time_point stopped;
        bool was_held = false;
        auto working =
            on.start(on.locker->with_lock("k", {.ttl = 30s, .renewal = mode}, [&](lock& held) -> asio::awaitable<void> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                    stopped = lease_clock::now();
                    was_held = held.held();
                    throw;
                }
            }));
        on.advance_by_steps(40s, 100ms);
        BOOST_TEST_REQUIRE(working.done());
        // The lease ends 1 % and 2 ms before the TTL, and the body a second before the lease.
        BOOST_TEST((stopped - start >= 28698ms));
        BOOST_TEST((stopped - start < 29698ms));
        BOOST_TEST(was_held);
        const auto thrown = thrown_by<lost_error>([&] { working.get(on.io()); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST((thrown->code() == errc::lost));
        BOOST_TEST(thrown->key() == "k");
        on.script->reset();
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(loss_reports_why_the_lease_could_not_be_renewed)
{
    const error_code refused = make_error_code(boost::system::errc::connection_refused);
    struct
    {
        const char* name;
        step renewal;
        /// The trouble of the backend when the lease ends.
        failure_ptr trouble;
        error_code cause;
    } const cases[] = {
        {"refused", step::fail(errc::unavailable, "nobody listens", refused), nullptr, refused},
        {"an error without a cause", step::fail(errc::unavailable), nullptr, errc::unavailable},
        {"silence", step::hold(), nullptr, asio::error::timed_out},
        {"no connection", step::hold(), make_failure(errc::unavailable, "no connection", refused), refused},
    };
    for (const auto& each : cases) {
        BOOST_TEST_CONTEXT(each.name)
        {
            virtual_fixture on(backend_kind::scripted);
            on.script->always(operation::extend, each.renewal);
            // The answer to the release is not reported as the cause.
            on.script->always(operation::abandon, step::fail(errc::unavailable, "later"));
            on.script->always(operation::release, step::fail(errc::unavailable, "later"));
            auto working = on.start(on.locker->with_lock("k", {.ttl = 3s}, [&]() -> asio::awaitable<void> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                }
                if (each.trouble)
                    on.script->notify_unreachable(each.trouble, "here:1");
                co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                co_await sleep_for(2s);
            }));
            on.advance_by_steps(8s, 100ms);
            BOOST_TEST_REQUIRE(working.done());
            const auto thrown = thrown_by<lost_error>([&] { working.get(on.io()); });
            BOOST_TEST_REQUIRE(thrown.has_value());
            BOOST_TEST((thrown->cause() == each.cause), thrown->what());
            on.script->reset();
            while (on.script->deliver())
                on.ready();
            on.wind_down();
            on.check_clean();
        }
    }
    // A loss for another reason has no such cause.
    virtual_fixture on(backend_kind::scripted);
    on.script->next(operation::extend, step::fail(errc::unavailable, "nobody listens", refused));
    auto working = on.start(on.locker->with_lock("k", {.ttl = 3s}, [] { return sleep_for(1h); }));
    on.advance(1100ms);
    on.run(on.locker->break_lock("k"));
    on.ready();
    const auto thrown = thrown_by<lost_error>([&] { working.get(on.io()); });
    BOOST_TEST_REQUIRE(thrown.has_value());
    BOOST_TEST(!thrown->cause());
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(no_body_begins_under_a_lease_that_has_ended)
{
    virtual_fixture on(backend_kind::scripted);
    bool began = false;
    auto working = on.start(on.locker->with_lock("k", {.ttl = 1s}, [&] { began = true; }));
    // The lock is granted, but its coroutine has not been resumed yet.
    while (on.locker->stats().grants == 0)
        BOOST_TEST_REQUIRE(on.io().poll_one() == 1U);
    on.memory->start_break("k", [](const list_outcome&) {});
    on.ready();
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    BOOST_TEST(!began);
    BOOST_TEST(on.locker->stats().lost(lost_reason::broken) == 1U);
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(the_bodys_exception_is_nested_in_the_loss)
{
    virtual_fixture on;
    auto working = on.start(on.locker->with_lock("k", [&]() -> asio::awaitable<int> {
        try {
            co_await sleep_for(1h);
        } catch (const boost::system::system_error&) {
        }
        throw std::runtime_error("half done");
    }));
    on.ready();
    on.run(on.locker->break_lock("k"));
    on.ready();
    bool nested = false;
    try {
        working.get(on.io());
    } catch (const lost_error& lost) {
        try {
            std::rethrow_if_nested(lost);
        } catch (const std::runtime_error& inner) {
            nested = inner.what() == std::string("half done");
        }
    }
    BOOST_TEST(nested);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(value_after_the_loss_is_discarded)
{
    virtual_fixture on;
    auto working = on.start(on.locker->with_lock("k", [&]() -> asio::awaitable<int> {
        try {
            co_await sleep_for(1h);
        } catch (const boost::system::system_error&) {
        }
        co_return 5;
    }));
    on.ready();
    on.run(on.locker->break_lock("k"));
    on.ready();
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(late_timer_does_not_make_a_late_value_valid)
{
    virtual_fixture on;
    // The body keeps its thread busy until its lease has ended.
    COLOCK_THROWS(lost_error, errc::lost,
        on.run(on.locker->with_lock("k", {.ttl = 10s, .renewal = renewal::manual}, [&] { on.clock.skip(20s); })));
    BOOST_CHECK_NO_THROW(
        on.run(on.locker->with_lock("k", {.ttl = 10s, .renewal = renewal::manual}, [&] { on.clock.skip(5s); })));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(cancellation_of_the_caller_is_forwarded_and_a_value_is_still_returned)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const bool returns : {true, false}) {
            for (const auto type :
                {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
            {
                virtual_fixture on(kind);
                asio::cancellation_signal cancel;
                bool forwarded = false;
                int completions = 0;
                std::exception_ptr failure;
                int value = 0;
                on.locker->async_with_lock(
                    "k",
                    [&]() -> asio::awaitable<int> {
                        try {
                            co_await sleep_for(1h);
                        } catch (const boost::system::system_error&) {
                            forwarded = true;
                            if (!returns)
                                throw;
                        }
                        co_return 7;
                    },
                    asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr out, int result) {
                        ++completions;
                        failure = out;
                        value = result;
                    }));
                on.ready();
                cancel.emit(type);
                on.ready();
                BOOST_TEST(forwarded);
                BOOST_TEST(completions == 1);
                if (returns) {
                    BOOST_TEST(!failure);
                    BOOST_TEST(value == 7);
                } else {
                    BOOST_TEST_REQUIRE((failure != nullptr));
                    COLOCK_THROWS(
                        boost::system::system_error, asio::error::operation_aborted, std::rethrow_exception(failure));
                }
                on.wind_down();
                on.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cancelled_parent_keeps_the_value_of_its_with_lock)
{
    virtual_fixture on;
    asio::cancellation_signal cancel;
    int value = 0;
    asio::co_spawn(
        on.io(),
        [&]() -> asio::awaitable<void> {
            value = co_await on.locker->with_lock("k", [&]() -> asio::awaitable<int> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                }
                co_return 9;
            });
        },
        asio::bind_cancellation_slot(cancel.slot(), asio::detached));
    on.ready();
    cancel.emit(asio::cancellation_type::terminal);
    on.ready();
    BOOST_TEST(value == 9);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(handle_that_the_body_moves_away_is_released)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        lock away;
        on.run(on.locker->with_lock("k", [&](lock& held) { away = std::move(held); }));
        BOOST_TEST(static_cast<bool>(away));
        BOOST_TEST(!away.held());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_body_may_release_or_extend)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        const int value = on.run(on.locker->with_lock("k", [&](lock& held) -> asio::awaitable<int> {
            co_await held.extend(40s);
            BOOST_TEST(held.ttl() == 40s);
            co_await held.release();
            BOOST_TEST(!held.held());
            co_await asio::post(asio::deferred);
            co_return 3;
        }));
        BOOST_TEST(value == 3);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_lease_is_renewed_while_the_body_runs_up_to_max_hold)
{
    virtual_fixture on;
    auto working = on.start(on.locker->with_lock("k", {.ttl = 30s}, []() -> asio::awaitable<int> {
        co_await sleep_for(5min);
        co_return 1;
    }));
    on.advance_by_steps(301s, 1s);
    BOOST_TEST(working.get(on.io()) == 1);

    const auto start = lease_clock::now();
    auto capped = on.start(on.locker->with_lock("k", {.ttl = 30s, .max_hold = 1min}, [] { return sleep_for(5min); }));
    on.advance_by_steps(2min, 500ms);
    BOOST_TEST_REQUIRE(capped.done());
    BOOST_TEST((lease_clock::now() - start >= 1min));
    COLOCK_THROWS(lost_error, errc::lost, capped.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(the_body_runs_on_a_strand)
{
    virtual_fixture on;
    on.run(on.locker->with_lock("k", []() -> asio::awaitable<void> {
        const asio::any_io_executor executor = co_await asio::this_coro::executor;
        const auto* strand = executor.target<asio::strand<asio::io_context::executor_type>>();
        BOOST_TEST_REQUIRE((strand != nullptr));
        BOOST_TEST(strand->running_in_this_thread());
    }));
}

BOOST_AUTO_TEST_SUITE_END()
