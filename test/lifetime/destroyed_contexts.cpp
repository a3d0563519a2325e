// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Handlers that wait when the context of their locker is destroyed.
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <utility>

using namespace colock;
using namespace colock::testing;

BOOST_AUTO_TEST_SUITE(destroyed_contexts)

namespace {

/// Handlers of one context that wait for a lock of a locker on another context.
struct waiting_handlers
{
    asio::io_context mine;
    std::optional<asio::io_context> theirs{std::in_place};
    std::optional<locker> by{memory::make_adapter(theirs->get_executor())};
    std::optional<lock> held{run_coro(*theirs, by->acquire("k"))};
    bool is_invoked = false;
    std::shared_ptr<int> live_handlers = std::make_shared<int>();

    waiting_handlers() { theirs->restart(); }

    [[nodiscard]] auto handler()
    {
        return [this, live = live_handlers](error_code, const auto&...) { is_invoked = true; };
    }
    void destroy_lockers_context()
    {
        run_ready(*theirs);
        run_ready(mine);
        BOOST_TEST(live_handlers.use_count() > 1);
        BOOST_TEST(!is_invoked);
        theirs.reset();
        run_ready(mine);
        BOOST_TEST(!is_invoked);
        BOOST_TEST(live_handlers.use_count() == 1);
    }
};

using acquire_handler = asio::any_completion_handler<void(error_code, lock)>;

} // namespace

BOOST_AUTO_TEST_CASE(type_erased_handlers_and_executors_are_destroyed_with_the_context)
{
    waiting_handlers env;
    const auto strand = asio::make_strand(env.mine);
    env.by->async_acquire("k", acquire_handler(asio::bind_executor(env.mine.get_executor(), env.handler())));
    env.by->async_acquire("k", acquire_handler(asio::bind_executor(strand, env.handler())));
    env.by->async_acquire(
        "k", asio::bind_executor(asio::any_completion_executor(env.mine.get_executor()), env.handler()));
    env.by->async_acquire("k", asio::bind_executor(asio::any_io_executor(strand), env.handler()));
    env.by->async_acquire("k", asio::bind_executor(strand, env.handler()));
    env.by->async_acquire("k", env.handler());
    BOOST_TEST(env.live_handlers.use_count() == 7);
    env.destroy_lockers_context();
}

BOOST_AUTO_TEST_CASE(handler_may_own_the_last_copy_of_the_locker_and_the_lock)
{
    waiting_handlers env;
    const auto executor = env.mine.get_executor();
    env.by->async_acquire("k", asio::bind_executor(executor, [owned = *env.by, handler = env.handler()](error_code code,
                                                                 const lock& granted) { handler(code, granted); }));
    auto& held = *env.held;
    const auto other = locker(*env.by);
    held.async_lost(asio::bind_executor(executor,
        [owned = std::make_shared<lock>(run_coro(*env.theirs, other.acquire("other"))), handler = env.handler()](
            error_code code, lost_reason reason) { handler(code, reason); }));
    env.theirs->restart();
    env.by.reset();
    env.destroy_lockers_context();
}

BOOST_AUTO_TEST_CASE(handler_may_own_the_object_that_owns_the_context)
{
    struct service
    {
        asio::io_context context;
        locker by{memory::make_adapter(context.get_executor())};
        lock held;
    };
    auto live = std::make_shared<int>();
    std::weak_ptr<service> watched;
    {
        asio::io_context mine;
        const auto owned = std::make_shared<service>();
        watched = owned;
        owned->held = run_coro(owned->context, owned->by.acquire("k"));
        owned->context.restart();
        // The queued handler is the last owner.
        owned->by.async_acquire("k", asio::bind_executor(mine.get_executor(), [owned, live](error_code, lock) {}));
        owned->held = {};
        run_ready(owned->context);
    }
    BOOST_TEST(watched.expired());
    BOOST_TEST(live.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(signal_may_be_emitted_and_destroyed_after_the_context)
{
    for (const bool has_executor : {false, true}) {
        waiting_handlers env;
        std::array<asio::cancellation_signal, 3> signals;
        const auto start = [&](std::size_t n, auto handler) {
            env.by->async_acquire("k", asio::bind_cancellation_slot(signals[n].slot(), std::move(handler)));
        };
        for (std::size_t n = 0; n < signals.size(); ++n) {
            if (has_executor)
                start(n, asio::bind_executor(env.mine.get_executor(), env.handler()));
            else
                start(n, env.handler());
        }
        env.destroy_lockers_context();
        signals[0].emit(asio::cancellation_type::terminal);
        signals[1].emit(asio::cancellation_type::total);
        run_ready(env.mine);
        BOOST_TEST(!env.is_invoked);
    }
}

BOOST_AUTO_TEST_CASE(result_that_is_on_its_way_is_delivered_after_the_context)
{
    for (const bool is_cancelled : {false, true}) {
        waiting_handlers env;
        asio::cancellation_signal cancel;
        env.by->async_acquire("k",
            asio::bind_cancellation_slot(cancel.slot(), asio::bind_executor(env.mine.get_executor(), env.handler())));
        run_ready(*env.theirs);
        if (is_cancelled)
            cancel.emit(asio::cancellation_type::terminal);
        else
            env.held.reset();
        run_ready(*env.theirs);
        env.theirs.reset();
        BOOST_TEST(!env.is_invoked);
        run_ready(env.mine);
        BOOST_TEST(env.is_invoked);
        BOOST_TEST(env.live_handlers.use_count() == 1);
    }
}

BOOST_AUTO_TEST_CASE(two_lockers_of_one_adapter_end_with_their_context)
{
    waiting_handlers env;
    const auto executor = env.mine.get_executor();
    const auto adapter = memory::make_adapter(env.theirs->get_executor());
    const locker first(adapter), second(adapter);
    const auto held = run_coro(*env.theirs, first.acquire("shared"));
    env.theirs->restart();
    first.async_acquire("shared", asio::bind_executor(executor, env.handler()));
    second.async_acquire("shared", asio::bind_executor(executor, env.handler()));
    int ended = 0;
    const auto count = [&ended](const std::exception_ptr& failure, const lock&) {
        BOOST_CHECK_EXCEPTION(std::rethrow_exception(failure), create_error,
            [](const create_error& why) { return why.code() == errc::shutting_down; });
        ++ended;
    };
    asio::co_spawn(env.mine, first.acquire("shared"), count);
    asio::co_spawn(env.mine, second.acquire("shared"), count);
    env.destroy_lockers_context();
    BOOST_TEST(ended == 2);
}

BOOST_AUTO_TEST_CASE(future_of_a_waiting_call_breaks_its_promise)
{
    waiting_handlers env;
    auto granted = env.by->async_acquire("k", asio::use_future);
    auto lost = env.held->async_lost(asio::use_future);
    run_ready(*env.theirs);
    env.theirs.reset();
    const auto is_broken = [](const std::future_error& why) { return why.code() == std::future_errc::broken_promise; };
    BOOST_CHECK_EXCEPTION(static_cast<void>(granted.get()), std::future_error, is_broken);
    BOOST_CHECK_EXCEPTION(lost.get(), std::future_error, is_broken);
}

BOOST_AUTO_TEST_CASE(parallel_group_keeps_waiting_after_one_context_is_destroyed)
{
    waiting_handlers env;
    asio::io_context other;
    const locker local(memory::make_adapter(other.get_executor()));
    const auto held = run_coro(other, local.acquire("k"));
    asio::experimental::make_parallel_group(
        env.by->async_acquire("k", asio::deferred), local.async_acquire("k", asio::deferred))
        .async_wait(asio::experimental::wait_for_one(),
            asio::bind_executor(env.mine.get_executor(), [handler = env.handler()](auto...) { handler({}); }));
    other.restart();
    run_ready(other);
    run_ready(*env.theirs);
    env.theirs.reset();
    BOOST_TEST(!env.is_invoked);
    // The group waits for its other member.
    BOOST_TEST(local.stats().waiting == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
