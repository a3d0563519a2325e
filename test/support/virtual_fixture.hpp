// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/driver.hpp"
#include "support/instrumented_adapter.hpp"
#include "support/jump.hpp"
#include "support/print.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

enum class backend_kind : unsigned char
{
    /// The memory adapter itself: operations complete inside the call that starts them.
    memory,
    /// The memory adapter behind a scripted adapter: operations complete in their own handlers, as with a remote
    /// backend.
    scripted,
    /// Like `scripted`, with the store on a second context that outlives the context of the locker.
    other_context,
    /// Like `scripted`, but operations complete inside the call that starts them.
    immediate,
};

inline std::ostream& operator<<(std::ostream& out, backend_kind kind)
{
    constexpr const char* names[] = {"memory", "scripted", "other_context", "immediate"};
    return out << names[static_cast<unsigned>(kind)];
}

/// Sleeps by lease_clock, which a test may move.
inline asio::awaitable<void> sleep_for(lease_clock::duration span)
{
    lease_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::deferred);
}

/// A locker with its own context, in virtual time. The members are public so that a test can destroy them in any order.
struct virtual_fixture
{
    using where = std::source_location;

    virtual_clock clock;
    /// Context of the store, if it is not the locker's.
    std::optional<asio::io_context> store_context;
    std::optional<asio::io_context> context{std::in_place};
    std::shared_ptr<adapter> memory;
    /// Null with backend_kind::memory.
    std::shared_ptr<instrumented_adapter> script;
    std::optional<colock::locker> locker;

    explicit virtual_fixture(backend_kind kind = backend_kind::memory, locker_options options = {})
    {
        if (kind == backend_kind::other_context)
            store_context.emplace();
        memory = memory::make_adapter((store_context ? *store_context : *context).get_executor());
        if (kind != backend_kind::memory)
            script = std::make_shared<instrumented_adapter>(
                memory, context->get_executor(), kind == backend_kind::immediate ? timing::immediate : timing::posted);
        locker.emplace(backend(), std::move(options));
    }
    virtual_fixture(const virtual_fixture&) = delete;
    virtual_fixture& operator=(const virtual_fixture&) = delete;
    ~virtual_fixture() { check_contract(); }

    [[nodiscard]] asio::io_context& io() { return *context; }
    [[nodiscard]] std::shared_ptr<adapter> backend() const
    {
        return script ? std::static_pointer_cast<adapter>(script) : memory;
    }

    /// Returns the locks that are stored, without the scripted adapter.
    [[nodiscard]] std::vector<lock_status> stored() const { return stored_in(*memory); }

    template <class T>
    T run(asio::awaitable<T> coroutine, where at = where::current())
    {
        return run_coro(io(), std::move(coroutine), at);
    }
    template <class T>
    [[nodiscard]] running<T> start(asio::awaitable<T> coroutine)
    {
        return testing::start(io(), std::move(coroutine));
    }
    [[nodiscard]] lock acquire(std::string key, acquire_options options = {}, where at = where::current())
    {
        return run(locker->acquire(std::move(key), std::move(options)), at);
    }
    void ready(where at = where::current()) { run_ready(io(), at); }
    void advance(lease_clock::duration span, where at = where::current()) { jump(io(), span, at); }
    void advance_by_steps(lease_clock::duration span, lease_clock::duration step, where at = where::current())
    {
        clock.advance(io(), span, step, at);
    }

    /// Returns whether `io.run()` would return: no timer is armed and nothing waits.
    [[nodiscard]] bool idle(where at = where::current())
    {
        run_ready(io(), at);
        static_cast<void>(io().poll());
        const bool none_left = io().stopped();
        io().restart();
        return none_left;
    }
    /// Runs the background cleanup, which waits between its attempts, to its end.
    void wind_down(lease_clock::duration longest = std::chrono::minutes(2), where at = where::current())
    {
        for (; !idle(at) && longest > longest.zero(); longest -= std::chrono::seconds(1))
            advance(std::chrono::seconds(1), at);
    }

    /// Checks that the core has kept the contract of `adapter`.
    void check_contract() const
    {
        if (!script)
            return;
        for (const auto& breach : script->breaches())
            BOOST_TEST(breach.empty(), "the contract of adapter was broken: " << breach);
    }
    /// Checks that nothing is held, waiting or settling, that the store is empty, and that the context has nothing left
    /// to do.
    void check_clean(where at = where::current())
    {
        BOOST_TEST_CONTEXT("called from " << at.file_name() << ":" << at.line())
        {
            BOOST_TEST(idle(at));
            const auto left = stored();
            BOOST_TEST(left.size() == 0U, left.size() << " stored: " << (left.empty() ? "" : left.front().key));
            if (locker) {
                const auto stats = locker->stats();
                BOOST_TEST(stats.held == 0U);
                BOOST_TEST(stats.waiting == 0U);
                BOOST_TEST(stats.settling == 0U);
            }
        }
    }
    /// Winds down, and checks that nothing is left.
    void wind_down_and_check(where at = where::current())
    {
        wind_down(std::chrono::minutes(2), at);
        check_clean(at);
    }
};

/// Returns the error that `work` throws, or nothing if it throws none.
template <class Exception, class Work>
[[nodiscard]] std::optional<Exception> thrown_by(Work&& work)
{
    try {
        std::forward<Work>(work)();
    } catch (const Exception& failed) {
        return failed;
    }
    return std::nullopt;
}

/// Returns the error that `work` throws. The test case ends if it throws none.
template <class Exception, class Work>
[[nodiscard]] Exception required_error(Work&& work, std::source_location at = std::source_location::current())
{
    auto thrown = thrown_by<Exception>(std::forward<Work>(work));
    BOOST_TEST_REQUIRE(thrown.has_value(), "nothing thrown at " << at.file_name() << ":" << at.line());
    return *std::move(thrown);
}

} // namespace colock::testing

/// Checks that `work` throws an `Exception` with the expected code.
#define COLOCK_THROWS(Exception, expected, ...)                                                                        \
    do {                                                                                                               \
        const auto thrown_here = ::colock::testing::thrown_by<Exception>([&] { static_cast<void>(__VA_ARGS__); });     \
        BOOST_TEST(thrown_here.has_value(), "nothing thrown by " #__VA_ARGS__);                                        \
        if (thrown_here)                                                                                               \
            BOOST_TEST((thrown_here->code() == (expected)), thrown_here->what());                                      \
    } while (false)
