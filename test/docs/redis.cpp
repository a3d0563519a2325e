// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/redis.md.

#include <colock/connect.hpp>
#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

namespace asio = boost::asio;

BOOST_AUTO_TEST_SUITE(redis_page)

BOOST_AUTO_TEST_CASE(making_an_adapter_does_no_io)
{
    //[ adapter
    // #include <colock/locker.hpp>
    // #include <colock/redis/adapter.hpp>
    asio::io_context io;
    colock::locker locker(colock::redis::make_adapter(io.get_executor(), {.url = "redis://127.0.0.1:6379"}));
    //]
    BOOST_TEST(io.run() == 0U);
}

BOOST_AUTO_TEST_CASE(url_with_options_makes_an_adapter)
{
    const std::string password = "from a vault";
    //[ by_url
    // #include <colock/connect.hpp>
    // #include <colock/locker.hpp>
    // #include <colock/redis/adapter.hpp>
    asio::io_context io;
    colock::locker locker(colock::make_adapter(io.get_executor(),
        "redis://127.0.0.1:6379?connect_timeout=500ms&prefix=app:", {colock::redis::by_url},
        {.user = "app", .password = password}));
    //]
    BOOST_TEST(io.run() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
