// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Compiled and linked by a project that only uses colock. Prints nothing and returns 0 on success.
#include <colock/colock.hpp>
#ifdef WITH_CONNECT
#include <colock/connect.hpp>
#endif
#ifdef WITH_REDIS
#include <colock/redis/adapter.hpp>
#endif

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <exception>
#include <iostream>

namespace asio = boost::asio;

asio::awaitable<void> use(colock::locker locker, bool& done)
{
    colock::lock lock = co_await locker.acquire("key");
    co_await lock.release();
    done = co_await locker.with_lock("key", [] { return true; });
}

int main()
{
    asio::io_context io;
#ifdef WITH_CONNECT
    colock::locker locker(colock::make_adapter(io.get_executor(), "memory:"));
#else
    colock::locker locker(colock::memory::make_adapter(io.get_executor()));
#endif
#ifdef WITH_REDIS
    // An adapter does no I/O before its first use. The test only checks that the program links.
    colock::locker remote(colock::redis::make_adapter(io.get_executor(), {.url = "redis://127.0.0.1:1"}));
#endif

    bool done = false;
    asio::co_spawn(io, use(locker, done), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    io.run();
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
