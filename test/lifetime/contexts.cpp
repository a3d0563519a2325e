// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Tests in which a coroutine or a handler of one context uses a locker of another context, which is destroyed first.
#include "scenarios.hpp"

#include <cstddef>
#include <exception>
#include <optional>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(contexts)

namespace {

/// Runs both contexts until nothing is left to do.
void run_both(foreign_run& run)
{
    for (int rounds = 0; rounds < 20; ++rounds) {
        if (run.env.context)
            run_ready(*run.env.context);
        run_ready(*run.callers_context);
    }
}

/// Whether an operation may end with this code when the context of its locker is destroyed.
bool is_end_of_context(const error_code& code, bool cancelled)
{
    return !code || code == errc::shutting_down || code == errc::lost || code == errc::not_held ||
           (cancelled && code == asio::error::operation_aborted);
}

void destroy_lockers_context_at_every_step(
    const scenario_of<foreign_run>& tested, call_form how, backend_kind kind, bool cancels)
{
    // The body is cancelled with the context. As it has released the lock, its error is that of the call.
    const bool fails_when_cancelled = tested.name == "with_lock, releasing body";
    bool reached = true;
    for (std::size_t steps = 0; reached; ++steps) {
        BOOST_TEST_CONTEXT(kind << ", cancels: " << cancels << ", after " << steps << " handlers")
        {
            foreign_run run(kind);
            reached = run_steps(tested, how, run, steps);
            run.env.context.reset();
            if (cancels && may_be_cancelled(run, how))
                run.cancel.emit(asio::cancellation_type::terminal);
            run_both(run);
            // The handler of an `async_` function is destroyed with the context, unless its result is on its way.
            BOOST_TEST(run.completions <= 1);
            BOOST_TEST((run.completions == 1 || how == call_form::async_function));
            BOOST_TEST(run.live_handlers.use_count() == 1);
            BOOST_TEST(!run.ended_elsewhere);
            BOOST_TEST(is_end_of_context(run.result, cancels || fails_when_cancelled), run.result.message());
        }
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(call_ends_when_the_lockers_context_is_destroyed)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::other_context}) {
        for (const bool cancels : {false, true}) {
            for_every_scenario<foreign_run>([&](const scenario_of<foreign_run>& tested, call_form how) {
                destroy_lockers_context_at_every_step(tested, how, kind, cancels);
            });
        }
    }
}

BOOST_AUTO_TEST_CASE(call_that_begins_after_the_lockers_context_is_destroyed_ends)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        foreign_run run(kind);
        run.env.context.reset();
        run.env.locker->async_acquire("k", run.handler());
        run_both(run);
        BOOST_TEST(run.completions == 1);
        BOOST_TEST((run.result == errc::shutting_down));
        run.env.locker->async_with_lock("k", [] {}, run.handler());
        run_both(run);
        BOOST_TEST(run.completions == 2);
        run.spawn(run.env.locker->acquire("k"));
        run_both(run);
        BOOST_TEST(run.completions == 3);
        BOOST_TEST((run.result == errc::shutting_down));
        BOOST_TEST(!run.ended_elsewhere);
    }
}

BOOST_AUTO_TEST_CASE(locker_made_after_the_adapters_context_is_destroyed_refuses_acquires)
{
    std::optional<asio::io_context> theirs(std::in_place);
    const auto adapter = memory::make_adapter(theirs->get_executor());
    theirs.reset();
    locker by(adapter);
    asio::io_context callers_context;
    int ended = 0;
    asio::co_spawn(callers_context, by.acquire("k"), [&](const std::exception_ptr& failure, lock) {
        ++ended;
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), create_error,
            [](const create_error& why) { return why.code() == errc::shutting_down; });
    });
    callers_context.run();
    BOOST_TEST(ended == 1);
}

/// The context destroys a waiter that has been granted the lock but not resumed. The lock is then granted to the next
/// waiter, which is destroyed in the same way.
BOOST_AUTO_TEST_CASE(waiters_are_destroyed_with_the_context_after_a_release)
{
    std::optional<asio::io_context> io(std::in_place);
    const colock::locker by(memory::make_adapter(io->get_executor()));
    std::optional<lock> held;
    by.async_acquire("k", [&](error_code, lock granted) { held = std::move(granted); });
    io->poll();
    io->restart();
    int ended = 0;
    for (int i = 0; i < 8; ++i)
        by.async_acquire("k", [&](error_code, lock) { ++ended; });
    io->poll();
    BOOST_TEST(by.stats().waiting == 8U);
    held.reset();
    io.reset();
    BOOST_TEST(ended == 0);
}

BOOST_AUTO_TEST_CASE(context_of_the_store_may_be_destroyed_before_the_callers_context)
{
    for (const bool emits : {false, true}) {
        foreign_run run(backend_kind::memory);
        run.others.push_back(run.env.run(run.other_locker->acquire("k", {.ttl = 0ms})));
        run.spawn(run.env.locker->acquire("k"));
        run_both(run);
        // The last handle to the locker is destroyed, so the acquire ends, although its coroutine shares the state.
        run.env.locker.reset();
        run_both(run);
        BOOST_TEST(run.completions == 1);
        foreign_run last(backend_kind::memory);
        last.spawn([](lock held) -> asio::awaitable<void> { static_cast<void>(co_await held.lost()); }(
                                     last.env.acquire("mine", {.ttl = 1h})));
        run_both(last);
        last.env.locker.reset();
        last.other_locker = colock::locker(memory::make_adapter(last.callers_context->get_executor()));
        last.env.memory.reset();
        last.env.context.reset();
        if (emits)
            last.cancel.emit(asio::cancellation_type::terminal);
        run_both(last);
        BOOST_TEST(last.completions == 1);
    }
}

BOOST_AUTO_TEST_SUITE_END()
