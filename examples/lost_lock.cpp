// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A lock is lost while its body runs. The body is cancelled before another client can be granted the lock, and the
// caller gets an error. The resource refuses a request that this process had sent before, because its fence is too old.

#include <colock/colock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstdint>
#include <iostream>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> pause(std::chrono::milliseconds time)
{
    co_await asio::steady_timer(co_await asio::this_coro::executor, time).async_wait(asio::deferred);
}

//[ ledger
// The resource that the lock guards. It stores the highest fence that it has seen, and refuses lower ones. This is the
// only protection against a writer or a request that was delayed for longer than the lease.
class ledger
{
public:
    bool write(const std::string& text, std::uint64_t fence)
    {
        const bool accepted = fence >= highest_;
        if (accepted)
            highest_ = fence;
        std::cout << (accepted ? "written: " : "refused: ") << text << '\n';
        return accepted;
    }

private:
    std::uint64_t highest_ = 0;
};
//]

//[ body
asio::awaitable<void> first_writer(colock::locker locker, ledger& books)
{
    std::uint64_t fence = 0;
    try {
        // Without renewal the lease ends after its TTL, like a lease whose renewals do not reach the backend.
        co_await locker.with_lock("books", {.ttl = 300ms, .renewal = colock::renewal::manual},
            [&](colock::lock& held) -> asio::awaitable<void> {
                fence = held.fence();
                for (;;) {
                    books.write("first writer", fence);
                    co_await pause(50ms); // cancelled here, a margin before the lease can end
                }
            });
    } catch (const colock::lost_error& failure) {
        std::cout << "first writer: " << failure.what() << '\n';
    }
    // A request that was on its way when the lock was lost arrives late.
    co_await pause(50ms);
    books.write("first writer, late", fence);
}
//]

asio::awaitable<void> second_writer(colock::locker locker, ledger& books)
{
    colock::lock lock = co_await locker.acquire("books");
    books.write("second writer", lock.fence());
    co_await lock.release();
}

int main()
{
    asio::io_context io;
    colock::locker locker(colock::memory::make_adapter(io.get_executor()));
    ledger books;
    const auto rethrow = [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    };
    asio::co_spawn(io, first_writer(locker, books), rethrow);
    asio::co_spawn(io, second_writer(locker, books), rethrow);
    io.run();
}
