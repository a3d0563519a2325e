// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Releases, shutdowns and ends of bodies on several threads at the same time.
#include "support/instrumented_adapter.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Stops a thread inside the backend until it may continue.
class backend_blocker
{
public:
    backend_blocker(instrumented_adapter& backend, operation where)
    {
        backend.next(where, step::pass().before([this] {
            reached_.set_value();
            may_go_on_.get_future().wait();
        }));
    }
    void wait_until_reached() { reached_.get_future().wait(); }
    void go_on() { may_go_on_.set_value(); }

private:
    std::promise<void> reached_;
    std::promise<void> may_go_on_;
};

/// Runs an operation on a thread and a context of its own.
class thread_operation
{
public:
    explicit thread_operation(asio::awaitable<void> coroutine)
    {
        // Does not use run_coro, because Boost.Test may record checks only on the main thread.
        thread_ = std::thread([this, coroutine = std::move(coroutine)]() mutable {
            asio::io_context mine;
            asio::co_spawn(
                mine, std::move(coroutine), [this](std::exception_ptr failure) { failure_ = std::move(failure); });
            mine.run();
        });
    }
    thread_operation(const thread_operation&) = delete;
    thread_operation& operator=(const thread_operation&) = delete;
    ~thread_operation() { join(); }

    /// Waits for the end of the thread, and throws the exception of the operation, if any. The thread must end first:
    /// the standard library frees the exception, and is not built with the sanitizer's annotations.
    void get()
    {
        join();
        if (failure_)
            std::rethrow_exception(std::exchange(failure_, nullptr));
    }

private:
    void join()
    {
        if (thread_.joinable())
            thread_.join();
    }

    std::exception_ptr failure_;
    std::thread thread_;
};

/// A locker on the memory backend, which completes operations inside the call. A `backend_blocker` can stop a thread
/// in such a call.
struct blocking_fixture
{
    asio::io_context io;
    std::shared_ptr<instrumented_adapter> backend =
        std::make_shared<instrumented_adapter>(memory::make_adapter(io.get_executor()), timing::immediate);
    std::optional<colock::locker> by{std::in_place, backend};

    /// Runs until the locker's own context has nothing left but waits.
    void run_ready() { testing::run_ready(io); }
    /// Checks that nothing keeps the core alive, which would keep the backend.
    void check_freed()
    {
        by.reset();
        run_ready();
        const std::weak_ptr<instrumented_adapter> alive = std::exchange(backend, nullptr);
        BOOST_TEST(alive.expired());
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(endings)

BOOST_AUTO_TEST_CASE(two_threads_may_release_one_lock)
{
    for (const auto report : {on_failure::quiet, on_failure::raise}) {
        blocking_fixture env;
        lock shared = run_coro(env.io, env.by->acquire("k"));
        backend_blocker first_release(*env.backend, operation::release);
        thread_operation first(shared.release());
        first_release.wait_until_reached();
        asio::io_context second_context;
        auto second = start(second_context, shared.release(report));
        run_ready(second_context);
        first_release.go_on();
        first.get();
        BOOST_CHECK_NO_THROW(second.get(second_context));
        BOOST_TEST(env.by->stats().releases == 1U);
        shared = {};
        env.check_freed();
    }
}

BOOST_AUTO_TEST_CASE(a_body_may_end_while_another_thread_releases_its_lock)
{
    // The other thread releases the lock after each possible step between the end of the body and the release by
    // `with_lock`.
    bool ended = false;
    for (std::size_t steps = 0; !ended; ++steps) {
        BOOST_TEST_REQUIRE(steps < 1000U);
        blocking_fixture env;
        lock moved_out;
        asio::io_context second_context;
        auto body = start(second_context, env.by->with_lock("k", {.ttl = 0ms}, [&](lock& held) {
            moved_out = std::move(held);
            return 7;
        }));
        run_until(second_context, [&] { return bool(moved_out); });
        for (std::size_t n = 0; n < steps && !body.done(); ++n)
            second_context.poll_one();
        ended = body.done();
        if (!ended) {
            backend_blocker first_release(*env.backend, operation::release);
            thread_operation first(moved_out.release());
            first_release.wait_until_reached();
            run_ready(second_context);
            BOOST_TEST(!body.done(), "a with_lock has ended before its lock was released");
            first_release.go_on();
            first.get();
        }
        BOOST_TEST(body.get(second_context) == 7);
        moved_out = {};
        env.check_freed();
    }
}

BOOST_AUTO_TEST_CASE(release_cancelled_during_that_of_another_thread_keeps_nothing_alive)
{
    blocking_fixture env;
    lock shared = run_coro(env.io, env.by->acquire("k"));
    backend_blocker first_release(*env.backend, operation::release);
    thread_operation first(shared.release());
    first_release.wait_until_reached();
    {
        asio::io_context second_context;
        auto second = start(second_context, shared.release(on_failure::raise));
        run_ready(second_context);
    }
    shared = {};
    first_release.go_on();
    first.get();
    env.check_freed();
}

BOOST_AUTO_TEST_CASE(shutdown_waits_for_a_release_in_progress)
{
    for (const auto deadline : {0ms, 60'000ms}) {
        blocking_fixture env;
        lock held = run_coro(env.io, env.by->acquire("k"));
        backend_blocker releasing(*env.backend, operation::release);
        thread_operation release(held.release());
        releasing.wait_until_reached();
        auto shutdown = start(env.io, env.by->shutdown(deadline));
        env.run_ready();
        BOOST_TEST(!shutdown.done());
        releasing.go_on();
        release.get();
        BOOST_TEST(shutdown.get(env.io).clean());
        held = {};
        env.check_freed();
    }
}

BOOST_AUTO_TEST_CASE(a_shutdown_ends_at_its_deadline_while_another_thread_is_inside_the_backend)
{
    for (const auto where : {operation::create, operation::release}) {
        blocking_fixture env;
        lock held;
        if (where == operation::release)
            held = run_coro(env.io, env.by->acquire("k"));
        backend_blocker blocker(*env.backend, where);
        const auto acquire = [](colock::locker by) -> asio::awaitable<void> {
            static_cast<void>(co_await by.acquire("k", {.ttl = 0ms}));
        };
        thread_operation other(where == operation::release ? held.release(on_failure::raise) : acquire(*env.by));
        blocker.wait_until_reached();
        const auto report = run_coro(env.io, env.by->shutdown(150ms));
        BOOST_TEST(!report.clean());
        BOOST_TEST(report.unfinished_calls == 1U);
        blocker.go_on();
        if (where == operation::release)
            BOOST_CHECK_NO_THROW(other.get());
        else
            BOOST_CHECK_THROW(other.get(), create_error);
        BOOST_TEST(!run_coro(env.io, env.by->is_locked("k")));
        BOOST_TEST(run_coro(env.io, env.by->shutdown(0ms)).clean());
        held = {};
        env.check_freed();
    }
}

BOOST_AUTO_TEST_CASE(raising_release_and_detach_may_run_at_the_same_time)
{
    constexpr int count = 4000;
    blocking_fixture env;
    lock shared;
    std::string ticket;
    std::barrier<> both(2);
    // Each round begins and ends with both threads at the barrier. The release begins a little later each time.
    const auto release_each_time = [](lock& subject, std::barrier<>& meet) -> asio::awaitable<void> {
        std::exception_ptr first_failure;
        for (int round = 0; round < count; ++round) {
            meet.arrive_and_wait();
            for (int n = 0; n < 20 * (round % 200); ++n)
                std::atomic_signal_fence(std::memory_order_seq_cst);
            try {
                co_await subject.release(on_failure::raise);
            } catch (...) {
                first_failure = first_failure ? first_failure : std::current_exception();
            }
            meet.arrive_and_wait();
        }
        if (first_failure)
            std::rethrow_exception(first_failure);
    };
    thread_operation releasing(release_each_time(shared, both));
    int detached_count = 0;
    for (int round = 0; round < count; ++round) {
        shared = run_coro(env.io, env.by->acquire("k"));
        ticket.clear();
        both.arrive_and_wait();
        try {
            ticket = run_coro(env.io, shared.detach());
        } catch (const error& failed) {
            BOOST_TEST((failed.code() == errc::not_held), failed.what());
        }
        both.arrive_and_wait();
        if (!ticket.empty()) {
            ++detached_count;
            run_coro(env.io, env.by->adopt(ticket)) = {};
        }
    }
    BOOST_CHECK_NO_THROW(releasing.get());
    BOOST_TEST_MESSAGE(detached_count << " of " << count << " were detached");
    env.run_ready();
    BOOST_TEST(!run_coro(env.io, env.by->is_locked("k")));
}

BOOST_AUTO_TEST_CASE(nothing_is_granted_after_a_shutdown)
{
    struct row
    {
        bool single_attempt;
        std::chrono::milliseconds deadline;
    };
    for (const auto& [single_attempt, deadline] : {row{false, 0ms}, row{false, 1min}, row{true, 0ms}, row{true, 1min}})
    {
        blocking_fixture env;
        backend_blocker granting(*env.backend, operation::create);
        const auto acquire = [](colock::locker by, bool tries) -> asio::awaitable<void> {
            if (tries)
                static_cast<void>(co_await by.try_acquire("k", {.ttl = 0ms}));
            else
                static_cast<void>(co_await by.acquire("k", {.ttl = 0ms}));
        };
        thread_operation acquiring(acquire(*env.by, single_attempt));
        granting.wait_until_reached();
        auto shutdown = start(env.io, env.by->shutdown(deadline));
        env.run_ready();
        BOOST_TEST(!shutdown.done(), "a shutdown does not wait for an acquire that is under way");
        granting.go_on();
        BOOST_CHECK_EXCEPTION(acquiring.get(), create_error,
            [](const create_error& refused) { return refused.code() == errc::shutting_down; });
        BOOST_TEST(shutdown.get(env.io).clean());
        BOOST_TEST(env.by->stats().held == 0U);
        BOOST_TEST(!run_coro(env.io, env.by->is_locked("k")));
        env.check_freed();
    }
}

BOOST_AUTO_TEST_SUITE_END()
