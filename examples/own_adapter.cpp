// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A custom backend: four operations as coroutines. The core adds waiting, retries, cancellation, renewal, groups, and
// the cleanup of requests with an unknown outcome.

#include "adapters/table_adapter.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <iostream>
#include <memory>

int main()
{
    asio::io_context io;
    colock::locker locker(std::make_shared<table_adapter>(io.get_executor(), std::make_shared<table>()));
    const auto print = [](colock::lock& held) { std::cout << "fence " << held.fence() << '\n'; };
    for (int i = 0; i < 3; ++i)
        asio::co_spawn(io, locker.with_lock("job", print), [](std::exception_ptr failure) {
            if (failure)
                std::rethrow_exception(failure);
        });
    io.run();
}
