// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/bind_immediate_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(executors)

namespace {

/// Runs both contexts until `reached`.
template <class Reached>
void run_both(asio::io_context& one, asio::io_context& two, Reached reached)
{
    for (int rounds = 0; rounds < 100'000 && !reached(); ++rounds) {
        one.restart();
        two.restart();
        static_cast<void>(one.poll_one());
        static_cast<void>(two.poll_one());
    }
    BOOST_TEST(reached());
}

/// Thrown by a completion handler.
struct handler_failed
{
};

/// Runs `io` and counts the `handler_failed` exceptions that leave `run()`.
int run_and_count_failures(asio::io_context& io)
{
    int failures = 0;
    for (;;) {
        io.restart();
        try {
            static_cast<void>(io.poll());
            return failures;
        } catch (const handler_failed&) {
            ++failures;
        }
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(exception_of_a_handler_without_an_executor_leaves_run)
{
    const auto fail = [](auto&&...) { throw handler_failed(); };
    const std::vector<std::function<void(virtual_fixture&, lock&)>> starts = {
        [&](auto& env, auto&) { env.locker->async_acquire("free", fail); },
        [&](auto& env, auto& held) {
            env.locker->async_acquire("k", fail);
            env.ready();
            held = {};
        },
        [&](auto& env, auto&) { env.locker->async_acquire("", fail); },
        [&](auto& env, auto&) { env.locker->async_try_acquire("free", fail); },
        [&](auto& env, auto&) { env.locker->async_try_acquire("k", fail); },
        [&](auto& env, auto&) { env.locker->async_acquire_all({"a", "b"}, fail); },
        [&](auto& env, auto&) { env.locker->async_with_lock("free", [] {}, fail); },
        [&](auto& env, auto&) { env.locker->async_is_locked("k", fail); },
        [&](auto& env, auto&) { env.locker->async_shutdown(1s, fail); },
        [&](auto&, auto& held) { held.async_release(fail); },
        [&](auto&, auto& held) { held.async_extend(5s, fail); },
        [&](auto&, auto& held) { held.async_is_locked(fail); },
        [&](auto& env, auto& held) {
            held.async_lost(fail);
            env.ready();
            held = {};
        },
    };
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (std::size_t n = 0; n < starts.size(); ++n) {
            BOOST_TEST_CONTEXT(kind << ", function " << n)
            {
                virtual_fixture env(kind);
                auto held = env.acquire("k", {.ttl = 10s});
                starts[n](env, held);
                BOOST_TEST(run_and_count_failures(env.io()) == 1);
                held = {};
                env.ready();
                env.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(cancelled_handler_without_an_executor_throws_out_of_run)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k");
        asio::cancellation_signal cancel;
        env.locker->async_acquire(
            "k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) { throw handler_failed(); }));
        env.ready();
        cancel.emit(asio::cancellation_type::terminal);
        BOOST_TEST(run_and_count_failures(env.io()) == 1);
        held = {};
        env.ready();
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(handler_that_throws_does_not_stop_the_other_waiters)
{
    struct counter : observer
    {
        int granted_count = 0;
        int released_count = 0;
        void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override { ++granted_count; }
        void released(std::string_view, std::chrono::nanoseconds) noexcept override { ++released_count; }
    };
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        const auto counted = std::make_shared<counter>();
        virtual_fixture env(kind, {.observer = counted});
        auto held = env.acquire("k");
        int called = 0;
        for (int n = 0; n < 10; ++n) {
            env.locker->async_acquire(
                "k", {.mode = lock_mode::shared}, [&called](error_code code, const lock& granted) {
                    BOOST_TEST(!code);
                    BOOST_TEST(granted.held());
                    if (++called == 3)
                        throw handler_failed();
                });
        }
        env.ready();
        held = {};
        BOOST_TEST(run_and_count_failures(env.io()) == 1);
        BOOST_TEST(called == 10);
        BOOST_TEST(counted->granted_count == 11);
        BOOST_TEST(counted->released_count == 11);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(an_operation_resumes_on_its_callers_executor)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        asio::io_context mine;
        bool done = false;
        const auto body = [&]() -> asio::awaitable<void> {
            const auto here = [&] { return mine.get_executor().running_in_this_thread(); };
            auto first = co_await env.locker->acquire("k");
            BOOST_TEST(here());
            asio::post(env.io(), [&first] { first = {}; });
            auto held = co_await env.locker->acquire("k");
            BOOST_TEST(here());
            co_await held.extend(10s);
            BOOST_TEST(here());
            BOOST_TEST(co_await held.is_locked());
            BOOST_TEST(here());
            BOOST_TEST(co_await env.locker->is_locked("k"));
            BOOST_TEST(here());
            asio::post(env.io(), [&held] { held = {}; });
            static_cast<void>(co_await held.lost());
            BOOST_TEST(here());
            co_await env.locker->with_lock("k", [&]() -> asio::awaitable<void> {
                BOOST_TEST(here());
                co_await asio::post(asio::deferred);
                BOOST_TEST(here());
            });
            BOOST_TEST(here());
            auto group = co_await env.locker->acquire_all({"a", "b"});
            BOOST_TEST(here());
            static_cast<void>(co_await group.release());
            BOOST_TEST(here());
            static_cast<void>(co_await env.locker->shutdown());
            BOOST_TEST(here());
        };
        asio::co_spawn(mine, body(), [&](std::exception_ptr failure) {
            BOOST_TEST(!failure);
            done = true;
        });
        run_both(env.io(), mine, [&] { return done; });
    }
}

BOOST_AUTO_TEST_CASE(a_handler_runs_on_its_associated_executor)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        asio::io_context mine;
        int called = 0;
        const auto bound = [&](auto check) {
            return asio::bind_executor(mine.get_executor(), [&, check](auto, auto... results) {
                BOOST_TEST(mine.get_executor().running_in_this_thread());
                check(std::move(results)...);
                ++called;
            });
        };
        env.locker->async_acquire("k", bound([](const lock& held) { BOOST_TEST(held.held()); }));
        run_both(env.io(), mine, [&] { return called == 1; });
        env.locker->async_with_lock(
            "k", [&] { return env.io().get_executor().running_in_this_thread(); },
            bound([](bool inside) { BOOST_TEST(inside); }));
        run_both(env.io(), mine, [&] { return called == 2; });
        env.locker->async_is_locked("k", bound([](bool locked) { BOOST_TEST(!locked); }));
        run_both(env.io(), mine, [&] { return called == 3; });
        env.locker->async_shutdown(1s, bound([](const shutdown_report& report) { BOOST_TEST(report.clean()); }));
        run_both(env.io(), mine, [&] { return called == 4; });
    }
}

BOOST_AUTO_TEST_CASE(a_handler_is_never_called_inside_the_call_that_starts_it)
{
    virtual_fixture env;
    // The operations are started inside the context, where a dispatch would run the handler at once.
    asio::post(env.io(), [&] {
        bool returned = false;
        env.locker->async_acquire("k", [&returned](error_code, lock) { BOOST_TEST(returned); });
        env.locker->async_with_lock("w", [] {}, [&returned](std::exception_ptr) { BOOST_TEST(returned); });
        env.locker->async_acquire("", [&returned](error_code code, lock) {
            BOOST_TEST(returned);
            BOOST_TEST((code == errc::invalid_key));
        });
        returned = true;
        env.ready();
    });
    env.ready();
}

BOOST_AUTO_TEST_CASE(result_that_is_ready_uses_the_immediate_executor)
{
    virtual_fixture env;
    bool called = false;
    // An immediate executor that calls the handler inside the function that starts the operation.
    const auto at_once = [](auto handler) {
        return asio::bind_immediate_executor(asio::system_executor(), std::move(handler));
    };
    lock held;
    env.locker->async_acquire("k", at_once([&](error_code code, lock granted) {
        BOOST_TEST(!code);
        held = std::move(granted);
        called = true;
    }));
    BOOST_TEST(std::exchange(called, false));
    // An operation that waits calls the handler on its own executor.
    env.locker->async_acquire("k", at_once([&](error_code code, const lock& granted) {
        BOOST_TEST(!code);
        BOOST_TEST(granted.held());
        called = true;
    }));
    held.async_release(at_once([&](error_code code) {
        BOOST_TEST(!code);
        BOOST_TEST(!called);
    }));
    BOOST_TEST(!called);
    env.ready();
    BOOST_TEST(called);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(waiting_handler_of_another_context_keeps_that_of_the_locker_at_work)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        asio::io_context mine;
        lock held = env.acquire("k", {.ttl = 0ms});
        BOOST_TEST(env.idle());
        bool called = false;
        env.locker->async_acquire(
            "k", asio::bind_executor(mine.get_executor(), [&](error_code code, const lock& granted) {
                BOOST_TEST(!code);
                BOOST_TEST(granted.held());
                called = true;
            }));
        BOOST_TEST(!env.idle());
        held = {};
        run_both(env.io(), mine, [&] { return called; });
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(waiting_handler_keeps_its_context_at_work_though_no_timer_is_armed)
{
    for (const bool is_foreign : {false, true}) {
        virtual_fixture env;
        asio::io_context theirs;
        lock held = env.acquire("k", {.ttl = 0ms});
        BOOST_TEST(env.idle());
        bool called = false;
        held.async_lost(asio::bind_executor(
            is_foreign ? theirs.get_executor() : env.io().get_executor(), [&](error_code code, lost_reason reason) {
                BOOST_TEST(!code);
                BOOST_TEST((reason == lost_reason::released));
                called = true;
            }));
        BOOST_TEST(!env.idle());
        static_cast<void>(theirs.poll());
        BOOST_TEST(theirs.stopped() != is_foreign);
        held = {};
        run_both(env.io(), theirs, [&] { return called; });
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(no_timer_stays_armed)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        // A held lock keeps nothing running if nobody waits for its end.
        auto held = env.acquire("k");
        BOOST_TEST(env.idle());
        // The same is true after a wait for its end was cancelled.
        asio::cancellation_signal cancel;
        held.async_lost(asio::bind_cancellation_slot(cancel.slot(), [](error_code, lost_reason) {}));
        BOOST_TEST(!env.idle());
        cancel.emit(asio::cancellation_type::terminal);
        BOOST_TEST(env.idle());
        env.run(held.extend(20s));
        BOOST_TEST(env.idle());
        BOOST_TEST(env.run(held.is_locked()));
        BOOST_TEST(env.idle());
        // An acquire that has ended by its policy, by cancellation or by a grant keeps nothing running, either.
        auto timed = env.start(env.locker->acquire("k", {.retry = within(1s)}));
        env.advance_by_steps(3s, 500ms);
        BOOST_TEST(timed.done());
        BOOST_TEST(env.idle());
        env.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
        BOOST_TEST(!env.idle());
        cancel.emit(asio::cancellation_type::terminal);
        BOOST_TEST(env.idle());
        env.run(env.locker->with_lock("other", [] {}));
        BOOST_TEST(env.idle());
        env.run(held.release());
        BOOST_TEST(env.idle());
    }
}

BOOST_AUTO_TEST_CASE(handler_with_a_type_erased_executor_is_invoked_there)
{
    virtual_fixture env;
    asio::io_context mine;
    lock held = env.acquire("k");
    int called = 0;
    const auto erased = [&](auto handler) {
        using signature = void(error_code, lock);
        return asio::any_completion_handler<signature>(
            asio::bind_executor(mine.get_executor(), [&mine, &called, handler](error_code code, const lock& granted) {
                BOOST_TEST(mine.get_executor().running_in_this_thread());
                ++called;
                handler(code, granted);
            }));
    };
    env.locker->async_acquire("k", erased([](error_code code, const lock& granted) {
        BOOST_TEST(!code);
        BOOST_TEST(granted.held());
    }));
    env.locker->async_acquire(
        "", erased([](error_code code, const lock&) { BOOST_TEST((code == errc::invalid_key)); }));
    held = {};
    run_both(env.io(), mine, [&] { return called == 2; });
}

BOOST_AUTO_TEST_CASE(handler_may_be_movable_only)
{
    virtual_fixture env;
    bool called = false;
    env.locker->async_acquire("k", [&called, owned = std::make_unique<int>(1)](error_code code, const lock& granted) {
        BOOST_TEST(!code);
        BOOST_TEST(granted.held());
        called = *owned == 1;
    });
    env.ready();
    BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(cancellation_inside_the_function_that_starts_an_operation_ends_it)
{
    asio::cancellation_signal cancel;
    struct canceller : observer
    {
        asio::cancellation_signal* signal = nullptr;
        void waiting(std::string_view) noexcept override { signal->emit(asio::cancellation_type::terminal); }
    };
    const auto observed = std::make_shared<canceller>();
    observed->signal = &cancel;
    virtual_fixture env(backend_kind::memory, {.observer = observed});
    lock held = env.acquire("k");
    bool called = false;
    env.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock&) {
        BOOST_TEST((code == asio::error::operation_aborted));
        called = true;
    }));
    env.ready();
    BOOST_TEST(called);
}

namespace {

struct tally
{
    std::size_t allocated = 0;
    std::size_t live = 0;
};

template <class T>
struct counting_allocator
{
    using value_type = T;
    tally* counts;

    explicit counting_allocator(tally& where) : counts(&where) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) : counts(other.counts)
    {
    }
    T* allocate(std::size_t n)
    {
        ++counts->allocated;
        ++counts->live;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* memory, std::size_t n)
    {
        --counts->live;
        std::allocator<T>().deallocate(memory, n);
    }
    template <class U>
    bool operator==(const counting_allocator<U>& other) const
    {
        return counts == other.counts;
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(the_handlers_allocator_is_used)
{
    tally counts;
    {
        virtual_fixture env(backend_kind::scripted);
        bool called = false;
        env.locker->async_acquire(
            "k", asio::bind_allocator(counting_allocator<char>(counts), [&](error_code, lock) { called = true; }));
        env.ready();
        BOOST_TEST(called);
        BOOST_TEST(counts.allocated > 0U);
        BOOST_TEST(counts.live == 0U);
        const auto before = counts.allocated;
        env.locker->async_with_lock(
            "k", [] { return 1; },
            asio::bind_allocator(counting_allocator<char>(counts), [](std::exception_ptr, int) {}));
        env.ready();
        BOOST_TEST(counts.allocated > before);
        env.script->always(operation::create, step::hold());
        env.locker->async_acquire("k", asio::bind_allocator(counting_allocator<char>(counts), [](error_code, lock) {}));
        env.ready();
    }
    BOOST_TEST(counts.live == 0U);
}

BOOST_AUTO_TEST_CASE(immediate_grants_let_others_run)
{
    const auto starve = [](auto operation) {
        virtual_fixture env;
        int in_a_row = 0;
        int longest = 0;
        bool done = false;
        std::function<void()> others = [&] {
            longest = std::max(longest, std::exchange(in_a_row, 0));
            if (!done)
                asio::post(env.io(), others);
        };
        asio::post(env.io(), others);
        asio::co_spawn(
            env.io(),
            [&]() -> asio::awaitable<void> {
                for (int n = 0; n < 1000; ++n) {
                    ++in_a_row;
                    co_await operation(*env.locker);
                }
                done = true;
            },
            asio::detached);
        env.ready();
        BOOST_TEST(done);
        BOOST_TEST(longest <= 64);
        env.check_clean();
    };
    starve([](locker by) -> asio::awaitable<void> {
        auto held = co_await by.acquire("k");
        co_await held.release();
    });
    starve([](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.acquire("k")); });
    starve([](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.try_acquire("k")); });
    starve([](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.acquire_all({"a", "b"})); });
}

BOOST_AUTO_TEST_SUITE_END()
