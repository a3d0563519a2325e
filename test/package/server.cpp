// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/colock.hpp>
#include <colock/redis/adapter.hpp>

#include <boost/asio/io_context.hpp>

int main()
{
    boost::asio::io_context io;
    const colock::locker locker(colock::redis::make_adapter(io.get_executor()));
}
