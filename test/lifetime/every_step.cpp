// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "scenarios.hpp"

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

void cancel_at_every_step(const scenario& tested, call_form how, backend_kind kind, asio::cancellation_type type)
{
    bool reached = true;
    for (std::size_t steps = 0; reached; ++steps) {
        BOOST_TEST_CONTEXT("after " << steps << " handlers")
        {
            scenario_run run(kind);
            reached = run_steps(tested, how, run, steps);
            const bool cancels = reached && may_be_cancelled(run, how);
            if (cancels) {
                run.cancel.emit(type);
                run.env.ready();
                // The operation must end promptly, because the other holder has not released the lock. Before the first
                // step, the caller of an awaitable has not set yet which cancellation types it accepts.
                if (steps > 0 || how == call_form::async_function)
                    BOOST_TEST(run.completions == 1);
            }
            while (one_step(tested, run)) {
            }
            run.others.clear();
            run.env.wind_down();
            BOOST_TEST(run.completions == 1);
            if (run.result)
                BOOST_TEST((run.result == asio::error::operation_aborted), run.result.message());
            run.release_in_background();
            run.env.wind_down();
            run.env.check_clean();
            if (!cancels)
                BOOST_TEST(!run.result, "without a cancellation it ends with " << run.result.message());
        }
    }
}

void cancel_everything(backend_kind kind)
{
    for (const auto type :
        {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
    {
        for_every_scenario<scenario_run>([&](const scenario& tested, call_form how) {
            BOOST_TEST_CONTEXT("type " << static_cast<unsigned>(type))
            {
                cancel_at_every_step(tested, how, kind, type);
            }
        });
    }
}

/// The objects that still exist when the context is destroyed.
enum class kept_objects : unsigned char
{
    handles,
    none,
};

void destroy_at_every_step(const scenario& tested, call_form how, backend_kind kind, kept_objects kept)
{
    bool reached = true;
    for (std::size_t steps = 0; reached; ++steps) {
        BOOST_TEST_CONTEXT("after " << steps << " handlers")
        {
            scenario_run run(kind);
            reached = run_steps(tested, how, run, steps);
            if (kept == kept_objects::none) {
                run.others.clear();
                run.subject = {};
                run.other_locker.reset();
                run.env.locker.reset();
                run.env.script.reset();
                run.env.memory.reset();
            }
            run.env.context.reset();
            BOOST_TEST(run.completions <= 1);
            if (kept == kept_objects::handles) {
                // Handles that outlive their context have no effect, but are valid.
                asio::io_context other;
                BOOST_CHECK_NO_THROW(run_coro(other, run.subject.release()));
                BOOST_TEST(!run.subject.held());
                BOOST_TEST(!run.env.locker->get_executor());
                COLOCK_THROWS(create_error, errc::shutting_down, run_coro(other, run.env.locker->acquire("k")));
                COLOCK_THROWS(create_error, errc::shutting_down, run_coro(other, run.env.locker->try_acquire("k")));
                BOOST_TEST(run.env.locker->stats().settling == 0U);
            }
        }
    }
}

void destroy_everything(backend_kind kind)
{
    for (const auto kept : {kept_objects::handles, kept_objects::none}) {
        for_every_scenario<scenario_run>([&](const scenario& tested, call_form how) {
            BOOST_TEST_CONTEXT((kept == kept_objects::handles ? "handles survive" : "nothing survives"))
            {
                destroy_at_every_step(tested, how, kind, kept);
            }
        });
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(cancelled_at_every_step)

BOOST_AUTO_TEST_CASE(over_memory)
{
    cancel_everything(backend_kind::memory);
}

BOOST_AUTO_TEST_CASE(over_a_remote_backend)
{
    cancel_everything(backend_kind::scripted);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(context_destroyed_at_every_step)

BOOST_AUTO_TEST_CASE(over_memory)
{
    destroy_everything(backend_kind::memory);
}

BOOST_AUTO_TEST_CASE(over_a_remote_backend)
{
    destroy_everything(backend_kind::scripted);
}

BOOST_AUTO_TEST_CASE(over_a_backend_that_outlives_the_context)
{
    destroy_everything(backend_kind::other_context);
}

BOOST_AUTO_TEST_SUITE_END()
