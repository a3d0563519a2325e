// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Compiles and runs the code of docs/redis.md.

#include <colock/connect.hpp>
#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace asio = boost::asio;

namespace {

/// Stands for a request to a token service.
asio::awaitable<colock::redis::credentials> get_token()
{
    co_return colock::redis::credentials{
        .user = "app", .password = "token", .valid_until = std::chrono::system_clock::now() + std::chrono::minutes(15)};
}

//[ credentials
// Gets a token for each connection, and a new one before it expires.
void give_credentials(asio::any_io_executor executor, colock::completion<colock::redis::credentials> done)
{
    asio::co_spawn(executor, get_token(),
        [done = std::move(done)](std::exception_ptr failure, colock::redis::credentials token) mutable {
            if (failure)
                token.error = colock::make_failure(colock::errc::unavailable, "the token service has failed");
            done(std::move(token));
        });
}

colock::redis::options with_tokens(asio::io_context& io)
{
    return {.url = "rediss://cache.example:6379",
        .credentials = [&io](auto done) { give_credentials(io.get_executor(), std::move(done)); }};
}
//]

} // namespace

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

BOOST_AUTO_TEST_CASE(function_gives_credentials)
{
    asio::io_context io;
    const auto settings = with_tokens(io);
    const colock::locker locker(colock::redis::make_adapter(io.get_executor(), settings));
    std::string given;
    settings.credentials([&](const colock::redis::credentials& token) { given = token.user + ":" + token.password; });
    io.run();
    BOOST_TEST(given == "app:token");
}

BOOST_AUTO_TEST_SUITE_END()
