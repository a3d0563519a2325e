// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Contexts that end while other threads use locks on them.
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(ended_contexts)

namespace {

struct tally
{
    std::atomic<int> ended{0};
    std::atomic<int> wrong{0};

    void count(const error_code& why)
    {
        // A with_lock that was granted just before reports the loss.
        const bool expected = why == errc::shutting_down || why == errc::lost || why == asio::error::operation_aborted;
        if (!expected)
            ++wrong;
        ++ended;
    }
    auto handler()
    {
        return [this](const std::exception_ptr& failure) {
            try {
                if (failure)
                    std::rethrow_exception(failure);
                count({});
            } catch (const boost::system::system_error& failed) {
                count(failed.code());
            }
        };
    }
};

asio::awaitable<void> use_until_it_ends(locker by, std::string key)
{
    for (;;) {
        {
            auto held = co_await by.acquire(key, {.ttl = 1h, .renewal = renewal::automatic});
            co_await held.extend(2h);
        }
        static_cast<void>(co_await by.try_acquire("k"));
        static_cast<void>(co_await by.acquire_all({key, key + "2"}));
        static_cast<void>(co_await by.with_lock(key, [] { return 1; }));
    }
}

asio::awaitable<void> wait_until_it_ends(locker by)
{
    static_cast<void>(co_await by.acquire("k"));
}

} // namespace

BOOST_AUTO_TEST_CASE(lockers_context_ends_while_threads_of_another_context_use_it)
{
    constexpr int users = 4;
    for (int round = 0; round < 100; ++round) {
        asio::thread_pool pool(2);
        auto context = std::make_unique<asio::io_context>();
        std::array<asio::cancellation_signal, 2 * users> stop;
        tally ends;
        {
            const auto backend = memory::make_adapter(context->get_executor());
            const locker by(backend), other(backend);
            auto held = run_coro(*context, other.acquire("k", {.ttl = 0ms}));
            for (std::size_t n = 0; n < 2 * users; ++n) {
                const auto strand = asio::make_strand(pool.get_executor());
                auto work = n % 2 == 0 ? use_until_it_ends(by, "own" + std::to_string(n)) : wait_until_it_ends(by);
                asio::co_spawn(strand, std::move(work), asio::bind_cancellation_slot(stop[n].slot(), ends.handler()));
                if (round % 2 == 0 && n >= users) {
                    asio::post(strand, [&stop, n, round] {
                        std::this_thread::sleep_for(std::chrono::microseconds(round));
                        stop[n].emit(asio::cancellation_type::terminal);
                    });
                }
            }
            std::this_thread::sleep_for(std::chrono::microseconds(7 * (round % 30)));
            context.reset();
            pool.join();
        }
        BOOST_TEST(ends.ended == 2 * users);
        BOOST_TEST(ends.wrong == 0);
    }
}

BOOST_AUTO_TEST_CASE(coroutines_on_other_kinds_of_executors_wait_and_end)
{
    const auto check = [](const asio::any_io_executor& executor, bool is_destroyed) {
        auto context = std::make_unique<asio::io_context>();
        const locker by(memory::make_adapter(context->get_executor()));
        auto held = run_coro(*context, by.acquire("k"));
        std::promise<error_code> ended;
        auto result = ended.get_future();
        asio::co_spawn(executor, wait_until_it_ends(by), [&](const std::exception_ptr& failure) {
            try {
                if (failure)
                    std::rethrow_exception(failure);
                ended.set_value({});
            } catch (const boost::system::system_error& failed) {
                ended.set_value(failed.code());
            }
        });
        while (by.stats().waiting == 0)
            std::this_thread::yield();
        if (is_destroyed) {
            context.reset();
            BOOST_TEST((result.get() == errc::shutting_down));
        } else {
            run_coro(*context, held.release());
            while (result.wait_for(0s) != std::future_status::ready)
                run_ready(*context);
            BOOST_TEST((result.get() == error_code()));
        }
    };
    asio::thread_pool pool(2);
    for (const bool is_destroyed : {false, true}) {
        check(pool.get_executor(), is_destroyed);
        check(asio::make_strand(pool.get_executor()), is_destroyed);
        check(asio::make_strand(asio::any_io_executor(pool.get_executor())), is_destroyed);
        check(asio::make_strand(asio::system_executor()), is_destroyed);
    }
    // A handler without an executor of its own, and one with the system executor.
    auto context = std::make_unique<asio::io_context>();
    const locker by(memory::make_adapter(context->get_executor()));
    auto granted = by.async_acquire("k", asio::use_future);
    run_ready(*context);
    auto held = granted.get();
    auto never_granted = by.async_acquire("k", asio::use_future);
    run_ready(*context);
    context.reset();
    BOOST_CHECK_THROW(static_cast<void>(never_granted.get()), std::exception);
}

BOOST_AUTO_TEST_SUITE_END()
