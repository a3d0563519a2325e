// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <cstddef>

namespace {

/// Number of allocations by aligned_alloc of this thread that succeed before one fails; negative: all succeed.
constinit thread_local long aligned_allocations_left = -1;

/// Number of allocations that have failed on this thread.
constinit thread_local long failed_allocations = 0;

/// Counts an allocation. Returns whether it must fail.
bool fails_now(long& allocations_left)
{
    if (allocations_left < 0 || allocations_left-- > 0)
        return false;
    ++failed_allocations;
    return true;
}

} // namespace

// With --wrap, the linker redirects the program's calls of aligned_alloc to the second function.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
extern "C" void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size)
{
    return fails_now(aligned_allocations_left) ? nullptr : __real_aligned_alloc(alignment, size);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

// ThreadSanitizer brings its own operators, which cannot be replaced. A test with one thread has nothing to show it.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COLOCK_KEEPS_OPERATOR_NEW
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define COLOCK_KEEPS_OPERATOR_NEW
#endif
#ifndef COLOCK_KEEPS_OPERATOR_NEW

#include "support/driver.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/version.hpp>

#include <cstdlib>
#include <new>
#include <thread>

namespace {

/// Number of allocations of this thread that succeed before one fails; negative: all succeed.
constinit thread_local long allocations_left = -1;

/// Whether allocations that do not throw may fail, too.
constinit thread_local bool nothrow_fails = false;

} // namespace

void* operator new(std::size_t size)
{
    if (fails_now(allocations_left))
        throw std::bad_alloc();
    if (void* const memory = std::malloc(size == 0 ? 1 : size))
        return memory;
    throw std::bad_alloc();
}
// All operators without alignment are replaced, so that memory of these is never freed by an operator of the sanitizer.
void* operator new[](std::size_t size)
{
    return operator new(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    return nothrow_fails && fails_now(allocations_left) ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept
{
    return nothrow_fails && fails_now(allocations_left) ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory) noexcept
{
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept
{
    std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept
{
    std::free(memory);
}

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Runs `work` while the n-th allocation from now fails. Returns false if `work` needed no more than n.
template <class Work>
[[nodiscard]] bool fails_at(long n, Work&& work)
{
    allocations_left = n;
    try {
        std::forward<Work>(work)();
    } catch (const std::bad_alloc&) {
        allocations_left = -1;
        return true;
    }
    return std::exchange(allocations_left, -1) < 0;
}

/// Awaits `make()` while the n-th allocation fails. Returns its result; an empty result, and true in `failed`, if that
/// allocation was reported as the cause.
template <class Make>
auto with_failing_allocation(long n, Make make, bool& failed) -> decltype(make())
{
    using result = typename decltype(make())::value_type;
    allocations_left = n;
    try {
        co_return co_await make();
    } catch (const std::bad_alloc&) {
        failed = true;
    } catch (const boost::system::system_error& error) {
        BOOST_TEST((error.code() == boost::system::errc::not_enough_memory), error.what());
        failed = true;
    }
    co_return result();
}

/// An adapter that has memory to check a lock.
class checking_adapter : public instrumented_adapter
{
public:
    using instrumented_adapter::instrumented_adapter;

    void start_is_valid(claim_ptr claim, completion<valid_outcome> done) override
    {
        allocations_left = -1;
        instrumented_adapter::start_is_valid(std::move(claim), std::move(done));
    }
};

/// After a second thread has existed, a process uses real mutexes. A mutex that is locked twice is then detected.
void have_had_threads()
{
    std::thread([] {}).join();
}

/// Runs a test with 0, 1, ... successful allocations, until it returns that no allocation has failed.
template <class Test>
void for_each_allocation(Test test, backend_kind kind = backend_kind::memory)
{
    have_had_threads();
    bool is_hit = true;
    for (long n = 0; is_hit; ++n) {
        BOOST_TEST_REQUIRE(n < 1000);
        virtual_fixture env(kind);
        is_hit = test(env, n);
        env.wind_down_and_check();
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(out_of_memory)

BOOST_AUTO_TEST_CASE(an_acquire_that_fails_leaves_nothing)
{
    have_had_threads();
    for (long n = 0, failed = 1; failed != 0; ++n) {
        BOOST_TEST_REQUIRE(n < 1000);
        virtual_fixture env(backend_kind::memory);
        failed = 0;
        env.run([](virtual_fixture& by, long at, long& count) -> asio::awaitable<void> {
            // Counts only allocations while the operation is made and awaited.
            lock held;
            allocations_left = at;
            try {
                held = co_await by.locker->acquire("a key that is too long to be stored in place",
                    {.renewal = renewal::automatic, .comment = "and a comment that is, too, much too long"});
            } catch (const std::bad_alloc&) {
                ++count;
            }
            allocations_left = -1;
            BOOST_TEST(held.held() == (count == 0));
        }(env, n, failed));
        env.check_clean();
    }
}

// In older versions of Asio, the creation of a strand without memory accesses invalid memory.
#if BOOST_VERSION >= 108900
BOOST_AUTO_TEST_CASE(async_function_that_fails_reports_the_error_and_leaves_nothing)
{
    have_had_threads();
    nothrow_fails = true;
    for (long n = 0, failed = 1; failed != 0; ++n) {
        BOOST_TEST_REQUIRE(n < 1000);
        virtual_fixture env(backend_kind::memory);
        failed = 0;
        lock first = env.acquire("a key that is too long to be stored in place");
        const auto note = [&failed](error_code code, const lock& granted) {
            if (code) {
                BOOST_TEST((code == boost::system::errc::not_enough_memory), code.message());
                ++failed;
            }
            BOOST_TEST(granted.held() == !code);
        };
        allocations_left = n;
        try {
            env.locker->async_acquire("another key that is too long to be stored in place", note);
            env.locker->async_acquire("a key that is too long to be stored in place", note);
        } catch (const std::bad_alloc&) {
            ++failed;
        }
        allocations_left = -1;
        first = {};
        env.ready();
        env.check_clean();
    }
    nothrow_fails = false;
}

BOOST_AUTO_TEST_CASE(function_that_starts_a_coroutine_throws_only_bad_alloc)
{
    have_had_threads();
    nothrow_fails = true;
    for (const bool is_group : {true, false}) {
        for (long n = 0, failed = 1; failed != 0; ++n) {
            BOOST_TEST_REQUIRE(n < 1000);
            virtual_fixture env(backend_kind::memory);
            failed = 0;
            // Another exception than std::bad_alloc leaves the test.
            const bool threw = fails_at(n, [&] {
                if (is_group)
                    env.locker->async_acquire_all({"a", "b"}, [&](error_code code, const lock_group&) {
                        BOOST_TEST((!code || code == boost::system::errc::not_enough_memory), code.message());
                        failed += code ? 1 : 0;
                    });
                else
                    env.locker->async_with_lock(
                        "k", [] {}, [&](const std::exception_ptr& why) { failed += why ? 1 : 0; });
            });
            failed += threw ? 1 : 0;
            env.wind_down();
            const auto stats = env.locker->stats();
            BOOST_TEST(stats.grants == stats.releases);
            env.check_clean();
        }
    }
    nothrow_fails = false;
}
#endif

BOOST_AUTO_TEST_CASE(the_memory_store_stays_whole)
{
    have_had_threads();
    using operation = std::function<void(adapter&, const claim_ptr&)>;
    constexpr auto ignore = [](auto&&) {};
    const operation operations[] = {
        [&](adapter& env, const claim_ptr& held) { env.start_release(held, release_guarantee::released, ignore); },
        [&](adapter& env, const claim_ptr& held) { env.start_extend(held, 1s, ignore); },
        [&](adapter& env, const claim_ptr&) {
            env.start_listing({.action = listing_action::break_key, .filter = {.key = "k"}}, ignore);
        },
        [&](adapter& env, const claim_ptr&) { env.start_listing({.action = listing_action::purge}, ignore); },
        [&](adapter& env, const claim_ptr&) { env.start_listing({}, ignore); },
    };
    for (const auto& operate : operations) {
        for (long n = 0, failed = 1; failed != 0; ++n) {
            BOOST_TEST_REQUIRE(n < 1000);
            virtual_clock clock;
            asio::io_context io;
            driver env(io, memory::make_adapter(io.get_executor()));
            // A driver that does not record events, because recording would allocate, too.
            const auto held = sent_now(claim_ptr(new claim({.key = "k", .ttl = 2s})));
            env.grant(held);
            int woken_readers = 0;
            std::vector<plain_claim_ptr> readers;
            for (int reader = 0; reader < 3; ++reader) {
                readers.push_back(driver::shared("k"));
                env.check_refused(readers.back());
                env.backend().start_wait(
                    readers.back(), lease_clock::time_point::max(), [&](wait_outcome) { ++woken_readers; });
            }
            if (&operate == &operations[3])
                clock.skip(3s);
            failed = fails_at(n, [&] { operate(env.backend(), held); }) ? 1 : 0;
            // What the failure has prevented can be done now.
            static_cast<void>(env.abandon(sent_now(held)));
            for (const auto& reader : readers) {
                BOOST_TEST((env.create(sent_now(reader)).status == create_status::granted));
                static_cast<void>(env.abandon(sent_now(reader)));
            }
            BOOST_TEST(woken_readers == 3);
            BOOST_TEST(env.list().empty());
        }
    }
}

BOOST_AUTO_TEST_CASE(wait_that_runs_out_of_memory_ends_and_leaves_nothing)
{
    for_each_allocation([](virtual_fixture& env, long n) {
        lock first = env.acquire("a key that is too long to be stored in place");
        bool failed = false;
        auto waiting = env.start(with_failing_allocation(
            n, [&] { return env.locker->acquire("a key that is too long to be stored in place"); }, failed));
        env.io().restart();
        static_cast<void>(env.io().poll());
        const bool is_hit = std::exchange(allocations_left, -1) < 0;
        first = {};
        // A request that could not be sent is tried again under the policy.
        env.advance(10s);
        BOOST_TEST_REQUIRE(waiting.done(), "allocation " << n);
        lock second = waiting.get(env.io());
        BOOST_TEST(second.held() == !failed);
        second = {};
        return is_hit;
    });
}

BOOST_AUTO_TEST_CASE(acquire_all_that_runs_out_of_memory_ends_and_leaves_nothing)
{
    for_each_allocation([](virtual_fixture& env, long n) {
        bool failed = false;
        auto acquiring = env.start(with_failing_allocation(
            n, [&] { return env.locker->acquire_all({"a", "b", "c"}, {.renewal = renewal::automatic}); }, failed));
        env.io().restart();
        static_cast<void>(env.io().poll());
        const bool is_hit = std::exchange(allocations_left, -1) < 0;
        env.advance(10s);
        BOOST_TEST_REQUIRE(acquiring.done(), "allocation " << n);
        {
            const lock_group all = acquiring.get(env.io());
            BOOST_TEST(all.held() == !failed);
        }
        return is_hit;
    });
}

BOOST_AUTO_TEST_CASE(waiter_is_granted_after_a_release_that_runs_out_of_memory)
{
    for_each_allocation([](virtual_fixture& env, long n) {
        lock first = env.acquire("a key that is too long to be stored in place");
        auto waiting = env.start(env.locker->acquire("a key that is too long to be stored in place"));
        env.ready();
        allocations_left = n;
        first = {};
        const bool is_hit = std::exchange(allocations_left, -1) < 0;
        env.advance(30s);
        BOOST_TEST_REQUIRE(waiting.done(), "allocation " << n);
        static_cast<void>(waiting.get(env.io()));
        return is_hit;
    });
}

BOOST_AUTO_TEST_CASE(renewals_without_memory_are_tried_again)
{
    for_each_allocation([](virtual_fixture& env, long n) {
        std::vector<lock> held;
        // More locks than requests that are collected without an allocation.
        for (const char* const key : {"a", "b", "c", "d"})
            held.push_back(env.acquire(key, {.ttl = 3s, .renewal = renewal::automatic}));
        const bool is_hit = fails_at(n, [&] { env.advance(1500ms); });
        env.advance_by_steps(10s, 500ms);
        for (const lock& each : held)
            BOOST_TEST(each.held(), each.key() << ", allocation " << n);
        held.clear();
        return is_hit;
    });
}

BOOST_AUTO_TEST_CASE(locks_stay_usable_after_a_check_that_runs_out_of_memory)
{
    for_each_allocation(
        [](virtual_fixture& env, long n) {
            env.script = std::make_shared<checking_adapter>(env.memory, env.io().get_executor());
            env.locker.emplace(env.script);
            std::vector<lock> held;
            // More locks than requests that are collected without an allocation.
            for (int i = 0; i < 4; ++i)
                held.push_back(env.acquire("k", {.ttl = 1h, .mode = lock_mode::shared}));
            // The outcome of the break is unknown, so each holder is checked.
            env.script->next(operation::break_key, step::lose_request());
            auto breaking = env.start(env.locker->break_lock("k"));
            const long failed_before = failed_allocations;
            static_cast<void>(fails_at(n, [&] { env.ready(); }));
            const bool is_hit = failed_allocations != failed_before;
            env.advance_by_steps(1min, 1s);
            if (!is_hit)
                BOOST_TEST(env.script->count(operation::is_valid) == held.size());
            for (lock& each : held) {
                BOOST_CHECK_NO_THROW(env.run(each.extend(2h)));
                BOOST_CHECK_NO_THROW(env.run(each.release(on_failure::raise)));
            }
            return is_hit;
        },
        backend_kind::scripted);
}

BOOST_AUTO_TEST_CASE(lease_is_renewed_after_the_timer_could_not_be_armed)
{
    for_each_allocation([](virtual_fixture& env, long n) {
        lock first;
        const bool is_hit = fails_at(n, [&] { first = env.acquire("a", {.ttl = 3s, .renewal = renewal::automatic}); });
        const bool was_granted = first.held();
        // The operation needs the timer, too.
        lock second = env.acquire("b", {.ttl = 3s, .renewal = renewal::automatic});
        env.advance_by_steps(10s, 500ms);
        BOOST_TEST(first.held() == was_granted, "allocation " << n);
        BOOST_TEST(second.held());
        first = {};
        second = {};
        return is_hit;
    });
}

BOOST_AUTO_TEST_CASE(shutdown_that_runs_out_of_memory_leaves_nothing)
{
    for_each_allocation([](virtual_fixture& env, long n) {
        std::vector<lock> held;
        for (const char* const key : {"a", "b", "c", "d"})
            held.push_back(env.acquire(key, {.ttl = 1h}));
        auto waiting = env.start(env.locker->acquire("a"));
        env.ready();
        auto closing = env.start(env.locker->shutdown(1min));
        const bool is_hit = fails_at(n, [&] { env.ready(); });
        env.wind_down();
        BOOST_TEST(env.stored().empty(), "allocation " << n);
        BOOST_TEST(waiting.done());
        BOOST_TEST(closing.done());
        return is_hit;
    });
}

BOOST_AUTO_TEST_CASE(wake_up_without_memory_is_posted_later)
{
    for_each_allocation([](virtual_fixture& env, long n) {
        lock first = env.acquire("k");
        auto waiting = env.start(env.locker->acquire("k"));
        env.ready();
        aligned_allocations_left = n;
        first = {};
        const bool is_hit = std::exchange(aligned_allocations_left, -1) < 0;
        // The first allocation is that of the post, without which nothing else would have to be done.
        BOOST_TEST((n > 0 || is_hit));
        env.ready();
        BOOST_TEST_REQUIRE(waiting.done(), "allocation " << n);
        lock second = waiting.get(env.io());
        BOOST_TEST(second.held());
        second = {};
        return is_hit;
    });
}

BOOST_AUTO_TEST_SUITE_END()

#endif
