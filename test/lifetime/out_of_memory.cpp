// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// ThreadSanitizer brings operators of its own, which cannot be replaced; one thread has nothing to show it.
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
#include "support/rig.hpp"

#include <cstdlib>
#include <new>
#include <thread>

namespace {

/// How many allocations of this thread succeed before one fails; negative: all do.
constinit thread_local long allocations_left = -1;

} // namespace

void* operator new(std::size_t size)
{
    if (allocations_left >= 0 && allocations_left-- == 0)
        throw std::bad_alloc();
    if (void* const memory = std::malloc(size == 0 ? 1 : size))
        return memory;
    throw std::bad_alloc();
}
// All of them that are not aligned, so that what one of these gives is never taken back by one of the sanitizer's.
void* operator new[](std::size_t size)
{
    return operator new(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept
{
    return std::malloc(size == 0 ? 1 : size);
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

/// Does `work` while the n-th allocation from now fails; false if it needed no more than n.
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

/// With a second thread in its past, a process has real mutexes: one that is taken twice is found.
void have_had_threads()
{
    std::thread([] {}).join();
}

} // namespace

BOOST_AUTO_TEST_SUITE(out_of_memory)

BOOST_AUTO_TEST_CASE(an_acquire_that_fails_leaves_nothing)
{
    have_had_threads();
    for (long n = 0, failed = 1; failed != 0; ++n) {
        BOOST_TEST_REQUIRE(n < 1000);
        rig on(behind::memory);
        failed = 0;
        on.run([](rig& by, long at, long& count) -> asio::awaitable<void> {
            // What is allocated while the verb is made and awaited, and not what surrounds it.
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
        }(on, n, failed));
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(async_function_that_fails_says_why_and_leaves_nothing)
{
    have_had_threads();
    for (long n = 0, failed = 1; failed != 0; ++n) {
        BOOST_TEST_REQUIRE(n < 1000);
        rig on(behind::memory);
        failed = 0;
        lock first = on.acquire("a key that is too long to be stored in place");
        const auto note = [&failed](error_code code, const lock& granted) {
            if (code) {
                BOOST_TEST((code == boost::system::errc::not_enough_memory), code.message());
                ++failed;
            }
            BOOST_TEST(granted.held() == !code);
        };
        allocations_left = n;
        try {
            on.locker->async_acquire("another key that is too long to be stored in place", note);
            on.locker->async_acquire("a key that is too long to be stored in place", note);
        } catch (const std::bad_alloc&) {
            ++failed;
        }
        allocations_left = -1;
        first = {};
        on.ready();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(the_memory_store_stays_whole)
{
    have_had_threads();
    using operation = std::function<void(adapter&, const claim_ptr&)>;
    constexpr auto ignore = [](auto&&) {};
    const operation operations[] = {
        [&](adapter& on, const claim_ptr& held) { on.start_release(held, ignore); },
        [&](adapter& on, const claim_ptr& held) { on.start_extend(held, 1s, ignore); },
        [&](adapter& on, const claim_ptr&) { on.start_break("k", ignore); },
        [&](adapter& on, const claim_ptr&) { on.start_purge(0, {}, ignore); },
        [&](adapter& on, const claim_ptr&) { on.start_list({}, {}, ignore); },
    };
    for (const auto& operate : operations) {
        for (long n = 0, failed = 1; failed != 0; ++n) {
            BOOST_TEST_REQUIRE(n < 1000);
            virtual_clock clock;
            asio::io_context io;
            driver on(io, memory::make_adapter(io.get_executor()));
            // One that does not write down what it hears: that would allocate, too.
            const auto held = sent_now(claim_ptr(new claim({.key = "k", .ttl = 2s})));
            on.grant(held);
            int woken_readers = 0;
            std::vector<plain_claim_ptr> readers;
            for (int reader = 0; reader < 3; ++reader) {
                readers.push_back(driver::shared("k"));
                on.refuse(readers.back());
                on.backend().start_wait(
                    readers.back(), lease_clock::time_point::max(), [&](woken) { ++woken_readers; });
            }
            if (&operate == &operations[3])
                clock.skip(3s);
            failed = fails_at(n, [&] { operate(on.backend(), held); }) ? 1 : 0;
            // Whatever the failure has kept from being done, can be done now.
            static_cast<void>(on.abandon(sent_now(held)));
            for (const auto& reader : readers) {
                BOOST_TEST((on.create(sent_now(reader)).status == create_status::granted));
                static_cast<void>(on.abandon(sent_now(reader)));
            }
            BOOST_TEST(woken_readers == 3);
            BOOST_TEST(on.list().empty());
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

#endif
