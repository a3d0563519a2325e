// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Cancellation and deadlines: all ways to limit a wait. An acquire that ends without a lock leaves nothing behind.

#include <colock/colock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

//[ deadline
// Asio's own deadline. The error code identifies a timeout, and no exception is thrown.
asio::awaitable<void> with_deadline(colock::locker& locker)
{
    auto [failed, lock] = co_await locker.async_acquire("printer", asio::cancel_after(50ms, asio::as_tuple));
    if (failed == asio::error::operation_aborted)
        std::cout << "deadline: not within 50 ms\n";
}
//]

//[ policy
// The retry policy's limit: one deadline for the whole call, however many attempts it makes.
asio::awaitable<void> with_policy(colock::locker& locker)
{
    try {
        const auto policy = colock::within(50ms);
        colock::lock lock = co_await locker.acquire("printer", {.retry = policy});
        std::cout << "policy: granted\n";
    } catch (const colock::retry_error& failure) {
        std::cout << "policy: " << failure.key() << " stayed busy\n";
    }
}
//]

//[ without_waiting
// Without waiting: busy is a result here, not an error.
asio::awaitable<void> without_waiting(colock::locker& locker)
{
    if (std::optional<colock::lock> lock = co_await locker.try_acquire("printer"))
        std::cout << "try: granted\n";
    else
        std::cout << "try: busy\n";
}
//]

//[ signal
// Cancellation by an asio::cancellation_signal. The code that starts the coroutine keeps the signal and emits it.
asio::awaitable<void> with_signal(colock::locker& locker)
{
    const auto executor = co_await asio::this_coro::executor;
    const auto job = [](colock::locker printers) -> asio::awaitable<void> {
        colock::lock lock = co_await printers.acquire("printer");
        std::cout << "signal: granted\n";
    };
    asio::cancellation_signal stop;
    asio::co_spawn(executor, job(locker), asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr failure) {
        std::cout << (failure ? "signal: stopped\n" : "signal: done\n");
    }));

    asio::steady_timer timer(executor, 20ms);
    co_await timer.async_wait(asio::deferred);
    stop.emit(asio::cancellation_type::terminal);
    timer.expires_after(20ms);
    co_await timer.async_wait(asio::deferred);
}
//]

asio::awaitable<void> run(colock::locker locker)
{
    colock::lock held = co_await locker.acquire("printer");
    co_await with_deadline(locker);
    co_await with_policy(locker);
    co_await without_waiting(locker);
    co_await with_signal(locker);
    co_await held.release();
    std::cout << "waiting: " << locker.stats().waiting << ", held: " << co_await locker.is_locked("printer") << '\n';
}

int main()
{
    asio::io_context io;
    colock::locker locker(colock::memory::make_adapter(io.get_executor()));
    asio::co_spawn(io, run(locker), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    io.run();
}
