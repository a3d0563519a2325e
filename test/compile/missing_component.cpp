// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A program that is linked with colock::core alone, but uses colock::memory.

#include <colock/memory/adapter.hpp>

#include <boost/asio/io_context.hpp>

int main()
{
    boost::asio::io_context io;
    return colock::memory::make_adapter(io.get_executor()) == nullptr;
}
