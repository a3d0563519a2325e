// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Two checkouts of the same cart run at the same time. With the lock, the second checkout finds the cart empty. Without
// the lock, both would charge the customer.

//[ quickstart
#include <colock/colock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> checkout(colock::locker locker, int& cart)
{
    // Waits for the lock, renews its lease while the body runs, and releases it afterwards.
    co_await locker.with_lock("cart:7", [&cart](colock::lock& held) -> asio::awaitable<void> {
        if (cart > 0) {
            asio::steady_timer payment(co_await asio::this_coro::executor, 50ms);
            co_await payment.async_wait(asio::deferred);
            std::cout << "charged " << cart << ", fence " << held.fence() << '\n';
            cart = 0;
        } else {
            std::cout << "nothing to charge\n";
        }
    });
}

int main()
{
    asio::io_context io;
    colock::locker locker(colock::memory::make_adapter(io.get_executor()));
    const auto rethrow = [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    };

    int cart = 30;
    asio::co_spawn(io, checkout(locker, cart), rethrow);
    asio::co_spawn(io, checkout(locker, cart), rethrow);
    io.run();
}
//]
