// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/mongodb.md.

#include <colock/locker.hpp>
#include <colock/mongo/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(mongodb_page)

BOOST_AUTO_TEST_CASE(making_an_adapter_does_no_io)
{
    //[ adapter
    // #include <colock/locker.hpp>
    // #include <colock/mongo/adapter.hpp>
    asio::io_context io;
    colock::locker locker(
        colock::mongo::make_adapter(io.get_executor(), {.url = "mongodb://h1,h2,h3/?replicaSet=rs0"}));
    //]
    BOOST_TEST(io.run() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
