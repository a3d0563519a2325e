// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/zookeeper.md.

#include <colock/locker.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(zookeeper_page)

BOOST_AUTO_TEST_CASE(making_an_adapter_does_no_io)
{
    //[ adapter
    // #include <colock/locker.hpp>
    // #include <colock/zookeeper/adapter.hpp>
    asio::io_context io;
    colock::locker locker(
        colock::zookeeper::make_adapter(io.get_executor(), {.url = "zookeeper://h1:2181,h2:2181,h3:2181/locks"}));
    //]
    BOOST_TEST(io.run() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
