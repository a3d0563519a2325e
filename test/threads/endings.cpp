// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/run.hpp"
#include "support/scripted_adapter.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// A thread that the scheduler stops inside the backend, until it may go on.
class stopped_inside
{
public:
    stopped_inside(scripted_adapter& backend, operation where)
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

/// A verb on a thread and a context of its own.
class elsewhere
{
public:
    explicit elsewhere(asio::awaitable<void> verb)
    {
        // Without run_coro: Boost.Test's notes are its main thread's.
        thread_ = std::thread([this, verb = std::move(verb)]() mutable {
            asio::io_context mine;
            asio::co_spawn(
                mine, std::move(verb), [this](std::exception_ptr failure) { failure_ = std::move(failure); });
            mine.run();
        });
    }
    elsewhere(const elsewhere&) = delete;
    elsewhere& operator=(const elsewhere&) = delete;
    ~elsewhere() { join(); }

    /// Its end, once the thread has ended too: who frees an exception is the standard library's affair, and that is
    /// not built with the sanitizer's notes.
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

/// A locker over memory, which answers inside the call, and a place to stop a thread in there.
struct stage
{
    asio::io_context io;
    std::shared_ptr<scripted_adapter> backend =
        std::make_shared<scripted_adapter>(memory::make_adapter(io.get_executor()), timing::immediate);
    std::optional<colock::locker> by{std::in_place, backend};

    /// Until the locker's own context has nothing to do but to wait.
    void run_ready() { testing::run_ready(io); }
    /// That nothing keeps the core, which keeps the backend.
    void check_freed()
    {
        by.reset();
        run_ready();
        const std::weak_ptr<scripted_adapter> alive = std::exchange(backend, nullptr);
        BOOST_TEST(alive.expired());
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(endings)

BOOST_AUTO_TEST_CASE(two_threads_may_release_one_lock)
{
    for (const auto report : {on_failure::quiet, on_failure::raise}) {
        stage on;
        lock shared = run_coro(on.io, on.by->acquire("k"));
        stopped_inside first_release(*on.backend, operation::release);
        elsewhere first(shared.release());
        first_release.wait_until_reached();
        asio::io_context second_thread;
        auto second = start(second_thread, shared.release(report));
        run_ready(second_thread);
        first_release.go_on();
        first.get();
        BOOST_CHECK_NO_THROW(second.get(second_thread));
        BOOST_TEST(on.by->stats().releases == 1U);
        shared = {};
        on.check_freed();
    }
}

BOOST_AUTO_TEST_CASE(a_body_may_end_while_another_thread_releases_its_lock)
{
    // After every step on the way from the end of the body to the release of its lock, which another thread has by
    // then.
    bool ended = false;
    for (std::size_t steps = 0; !ended; ++steps) {
        BOOST_TEST_REQUIRE(steps < 1000U);
        stage on;
        lock moved_out;
        asio::io_context second_thread;
        auto body = start(second_thread, on.by->with_lock("k", {.ttl = 0ms}, [&](lock& held) {
            moved_out = std::move(held);
            return 7;
        }));
        run_until(second_thread, [&] { return bool(moved_out); });
        for (std::size_t n = 0; n < steps && !body.done(); ++n)
            second_thread.poll_one();
        ended = body.done();
        if (!ended) {
            stopped_inside first_release(*on.backend, operation::release);
            elsewhere first(moved_out.release());
            first_release.wait_until_reached();
            run_ready(second_thread);
            BOOST_TEST(!body.done(), "a with_lock has ended before its lock was released");
            first_release.go_on();
            first.get();
        }
        BOOST_TEST(body.get(second_thread) == 7);
        moved_out = {};
        on.check_freed();
    }
}

BOOST_AUTO_TEST_CASE(a_release_that_leaves_early_during_that_of_another_thread_keeps_nothing_alive)
{
    stage on;
    lock shared = run_coro(on.io, on.by->acquire("k"));
    stopped_inside first_release(*on.backend, operation::release);
    elsewhere first(shared.release());
    first_release.wait_until_reached();
    {
        asio::io_context second_thread;
        auto second = start(second_thread, shared.release(on_failure::raise));
        run_ready(second_thread);
    }
    shared = {};
    first_release.go_on();
    first.get();
    on.check_freed();
}

BOOST_AUTO_TEST_CASE(a_shutdown_waits_for_a_release_that_is_being_carried_out)
{
    for (const auto deadline : {0ms, 60'000ms}) {
        stage on;
        lock held = run_coro(on.io, on.by->acquire("k"));
        stopped_inside releasing(*on.backend, operation::release);
        elsewhere release(held.release());
        releasing.wait_until_reached();
        auto shutdown = start(on.io, on.by->shutdown(deadline));
        on.run_ready();
        BOOST_TEST(!shutdown.done());
        releasing.go_on();
        release.get();
        BOOST_TEST(shutdown.get(on.io).clean());
        held = {};
        on.check_freed();
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_granted_after_a_shutdown)
{
    struct row
    {
        bool only_tries;
        std::chrono::milliseconds deadline;
    };
    for (const auto& [only_tries, deadline] : {row{false, 0ms}, row{false, 1min}, row{true, 0ms}, row{true, 1min}}) {
        stage on;
        stopped_inside granting(*on.backend, operation::create);
        const auto acquire = [](colock::locker by, bool tries) -> asio::awaitable<void> {
            if (tries)
                static_cast<void>(co_await by.try_acquire("k", {.ttl = 0ms}));
            else
                static_cast<void>(co_await by.acquire("k", {.ttl = 0ms}));
        };
        elsewhere acquiring(acquire(*on.by, only_tries));
        granting.wait_until_reached();
        auto shutdown = start(on.io, on.by->shutdown(deadline));
        on.run_ready();
        BOOST_TEST(!shutdown.done(), "a shutdown does not wait for an acquire that is under way");
        granting.go_on();
        BOOST_CHECK_EXCEPTION(acquiring.get(), create_error,
            [](const create_error& refused) { return refused.code() == errc::shutting_down; });
        BOOST_TEST(shutdown.get(on.io).clean());
        BOOST_TEST(on.by->stats().held == 0U);
        BOOST_TEST(!run_coro(on.io, on.by->is_locked("k")));
        on.check_freed();
    }
}

BOOST_AUTO_TEST_SUITE_END()
