// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "scenarios.hpp"

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Starts the operation and makes `steps` steps. False if it came to rest before.
bool play(const scenario& scene, family how, stage& on, std::size_t steps)
{
    scene.prepare(on);
    begin(scene, how, on);
    for (std::size_t step = 0; step < steps; ++step) {
        if (!one_step(scene, on))
            return false;
    }
    return true;
}

constexpr std::size_t far_too_many = 500;

void cancel_at_every_step(const scenario& scene, family how, behind kind, asio::cancellation_type type)
{
    bool reached = true;
    for (std::size_t steps = 0; reached; ++steps) {
        BOOST_TEST_REQUIRE(steps < far_too_many);
        BOOST_TEST_CONTEXT("after " << steps << " handlers")
        {
            stage on(kind);
            reached = play(scene, how, on, steps);
            if (reached) {
                on.cancel.emit(type);
                on.on.ready();
                // Promptly: whoever stands in the way has not moved. Before its first step, the verb's own caller has
                // not said yet which types it lets through.
                if (steps > 0 || how == family::front)
                    BOOST_TEST(on.completions == 1);
            }
            while (one_step(scene, on)) {
            }
            on.others.clear();
            on.on.wind_down();
            BOOST_TEST(on.completions == 1);
            if (on.result)
                BOOST_TEST((on.result == asio::error::operation_aborted), on.result.message());
            on.release_in_background();
            on.on.wind_down();
            on.on.check_clean();
            if (!reached)
                BOOST_TEST(!on.result, "without a cancellation it ends with " << on.result.message());
        }
    }
}

void cancel_everything(behind kind)
{
    for (const auto type :
        {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
    {
        for_every_scenario([&](const scenario& scene, family how) {
            BOOST_TEST_CONTEXT("type " << static_cast<unsigned>(type))
            {
                cancel_at_every_step(scene, how, kind, type);
            }
        });
    }
}

/// What is there when the context dies.
enum class survivors : unsigned char
{
    handles,
    none,
};

void destroy_at_every_step(const scenario& scene, family how, behind kind, survivors alive)
{
    bool reached = true;
    for (std::size_t steps = 0; reached; ++steps) {
        BOOST_TEST_REQUIRE(steps < far_too_many);
        BOOST_TEST_CONTEXT("after " << steps << " handlers")
        {
            stage on(kind);
            reached = play(scene, how, on, steps);
            if (alive == survivors::none) {
                on.others.clear();
                on.subject = {};
                on.rival.reset();
                on.on.locker.reset();
                on.on.script.reset();
                on.on.memory.reset();
            }
            on.on.context.reset();
            BOOST_TEST(on.completions <= 1);
            if (alive == survivors::handles) {
                // What outlives its context is inert, not broken.
                asio::io_context other;
                BOOST_CHECK_NO_THROW(run_coro(other, on.subject.release()));
                BOOST_TEST(!on.subject.held());
                BOOST_TEST(!on.on.locker->get_executor());
                COLOCK_THROWS(create_error, errc::shutting_down, run_coro(other, on.on.locker->acquire("k")));
                COLOCK_THROWS(create_error, errc::shutting_down, run_coro(other, on.on.locker->try_acquire("k")));
                BOOST_TEST(on.on.locker->stats().settling == 0U);
            }
        }
    }
}

void destroy_everything(behind kind)
{
    for (const auto alive : {survivors::handles, survivors::none}) {
        for_every_scenario([&](const scenario& scene, family how) {
            BOOST_TEST_CONTEXT((alive == survivors::handles ? "handles survive" : "nothing survives"))
            {
                destroy_at_every_step(scene, how, kind, alive);
            }
        });
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(cancelled_at_every_step)

BOOST_AUTO_TEST_CASE(over_memory)
{
    cancel_everything(behind::memory);
}

BOOST_AUTO_TEST_CASE(over_a_remote_backend)
{
    cancel_everything(behind::scripted);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(context_destroyed_at_every_step)

BOOST_AUTO_TEST_CASE(over_memory)
{
    destroy_everything(behind::memory);
}

BOOST_AUTO_TEST_CASE(over_a_remote_backend)
{
    destroy_everything(behind::scripted);
}

BOOST_AUTO_TEST_CASE(over_a_backend_that_lives_on)
{
    destroy_everything(behind::elsewhere);
}

BOOST_AUTO_TEST_SUITE_END()
