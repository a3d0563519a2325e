// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A program that compiles Boost.Redis, which colock::redis does already.

#include <colock/redis/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/redis/src.hpp>

int main()
{
    boost::asio::io_context io;
    return colock::redis::make_adapter(io.get_executor()) == nullptr;
}
