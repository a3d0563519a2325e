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
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::release, step::hold());
    env.script->always(operation::abandon, step::hold());
    auto working =
        env.start(env.locker->with_lock("k", {.ttl = 1s, .renewal = renewal::manual}, []() -> asio::awaitable<void> {
            lease_timer timer(co_await asio::this_coro::executor, 1h);
            co_await timer.async_wait(asio::use_awaitable);
        }));
    env.ready();
    env.advance(1s);
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
    env.script->reset();
    while (env.script->deliver())
        env.ready();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(body_is_cancelled_though_a_second_claim_was_granted)
{
    virtual_fixture env(backend_kind::scripted);
    const colock::locker locker(std::make_shared<undoing_adapter>(env.script));
    bool has_begun = false;
    const acquire_options options{.ttl = 30s, .retry = retry_policy::fixed(1s), .renewal = renewal::manual};
    auto working = env.start(locker.with_lock("k", options, [&]() -> asio::awaitable<void> {
        has_begun = true;
        co_await sleep_for(1h);
    }));
    env.advance_by_steps(10s, 100ms);
    BOOST_TEST(has_begun);
    env.advance_by_steps(30s, 100ms);
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
    env.wind_down();
}

BOOST_AUTO_TEST_CASE(coroutine_body_runs_on_the_strand_of_its_caller)
{
    virtual_fixture env;
    const asio::any_io_executor strand = asio::make_strand(env.io());
    bool has_run = false;
    asio::co_spawn(strand,
        env.locker->with_lock("k",
            [&]() -> asio::awaitable<void> {
                BOOST_TEST((co_await asio::this_coro::executor == strand));
                has_run = true;
            }),
        asio::detached);
    env.ready();
    BOOST_TEST(has_run);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(body_that_is_no_coroutine_is_called_before_anything_else_runs)
{
    for (const auto kind : {backend_kind::memory, backend_kind::immediate}) {
        virtual_fixture env(kind);
        bool has_run = false;
        bool others_ran = false;
        const auto call = [&]() -> asio::awaitable<void> {
            asio::post(env.io(), [&] { others_ran = true; });
            co_await env.locker->with_lock("k", [&](lock& held) {
                BOOST_TEST(held.held());
                BOOST_TEST(!others_ran);
                has_run = true;
            });
        };
        env.run(call());
        BOOST_TEST(has_run);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(loss_reports_why_the_lease_could_not_be_renewed)
{
    const error_code refused = make_error_code(boost::system::errc::connection_refused);
    struct
    {
        const char* name;
        step renewal;
        /// The connection failure of the backend when the lease ends.
        failure_ptr connection_failure;
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
            virtual_fixture env(backend_kind::scripted);
            env.script->always(operation::extend, each.renewal);
            // The answer to the release is not reported as the cause.
            env.script->always(operation::abandon, step::fail(errc::unavailable, "later"));
            env.script->always(operation::release, step::fail(errc::unavailable, "later"));
            auto working = env.start(env.locker->with_lock("k", {.ttl = 3s}, [&]() -> asio::awaitable<void> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                }
                if (each.connection_failure)
                    env.script->contact().set_down(each.connection_failure, "here:1");
                co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                co_await sleep_for(2s);
            }));
            env.advance_by_steps(8s, 100ms);
            BOOST_TEST_REQUIRE(working.done());
            const auto thrown = required_error<lost_error>([&] { working.get(env.io()); });
            BOOST_TEST((thrown.cause() == each.cause), thrown.what());
            env.script->reset();
            while (env.script->deliver())
                env.ready();
            env.wind_down_and_check();
        }
    }
    // A loss for another reason has no such cause.
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::extend, step::fail(errc::unavailable, "nobody listens", refused));
    auto working = env.start(env.locker->with_lock("k", {.ttl = 3s}, [] { return sleep_for(1h); }));
    env.advance(1100ms);
    env.run(env.locker->break_lock("k"));
    env.ready();
    const auto thrown = required_error<lost_error>([&] { working.get(env.io()); });
    BOOST_TEST(!thrown.cause());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(the_bodys_exception_is_nested_in_the_loss)
{
    virtual_fixture env;
    auto working = env.start(env.locker->with_lock("k", [&]() -> asio::awaitable<int> {
        try {
            co_await sleep_for(1h);
        } catch (const boost::system::system_error&) {
        }
        throw std::runtime_error("half done");
    }));
    env.ready();
    env.run(env.locker->break_lock("k"));
    env.ready();
    bool nested = false;
    try {
        working.get(env.io());
    } catch (const lost_error& lost) {
        try {
            std::rethrow_if_nested(lost);
        } catch (const std::runtime_error& inner) {
            nested = inner.what() == std::string("half done");
        }
    }
    BOOST_TEST(nested);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(cancellation_of_the_caller_is_forwarded_and_a_value_is_still_returned)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const bool returns : {true, false}) {
            for (const auto type :
                {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
            {
                virtual_fixture env(kind);
                asio::cancellation_signal cancel;
                bool forwarded = false;
                int completions = 0;
                std::exception_ptr failure;
                int value = 0;
                env.locker->async_with_lock(
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
                env.ready();
                cancel.emit(type);
                env.ready();
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
                env.wind_down_and_check();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(handle_that_the_body_moves_away_is_released)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        lock away;
        env.run(env.locker->with_lock("k", [&](lock& held) { away = std::move(held); }));
        BOOST_TEST(static_cast<bool>(away));
        BOOST_TEST(!away.held());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(the_body_runs_on_a_strand)
{
    virtual_fixture env;
    env.run(env.locker->with_lock("k", []() -> asio::awaitable<void> {
        const asio::any_io_executor executor = co_await asio::this_coro::executor;
        const auto* strand = executor.target<asio::strand<asio::io_context::executor_type>>();
        BOOST_TEST_REQUIRE((strand != nullptr));
        BOOST_TEST(strand->running_in_this_thread());
    }));
}

BOOST_AUTO_TEST_CASE(handler_with_an_exception_has_no_value_of_the_body)
{
    virtual_fixture env;
    const auto body = [&]() -> asio::awaitable<int> {
        co_await asio::this_coro::throw_if_cancelled(false);
        static_cast<void>(co_await env.locker->break_lock("k"));
        co_return 7;
    };
    int completions = 0;
    env.locker->async_with_lock("k", body, [&](const std::exception_ptr& failure, int value) {
        ++completions;
        BOOST_TEST((failure != nullptr));
        BOOST_TEST(value == 0);
    });
    env.ready();
    env.locker->async_try_with_lock("k", 1s, body, [&](const std::exception_ptr& failure, std::optional<int> value) {
        ++completions;
        BOOST_TEST((failure != nullptr));
        BOOST_TEST(!value.has_value());
    });
    env.ready();
    BOOST_TEST(completions == 2);
}

BOOST_AUTO_TEST_SUITE_END()
