// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/redis/adapter.hpp>

#include "fixture.hpp"
#include "server.hpp"
#include "support/driver.hpp"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

/// An adapter with its own server.
struct served
{
    explicit served(redis::options settings = {}, std::vector<std::string> server_settings = {})
        : server(std::move(server_settings))
    {
        if (settings.url == redis::options{}.url)
            settings.url = server.url();
        test_driver.emplace(io, redis::make_adapter(io.get_executor(), std::move(settings)));
    }
    ~served()
    {
        if (test_driver)
            run_coro(io, test_driver->backend().close(5s));
    }

    std::string raw(std::initializer_list<std::string_view> words) { return server(words); }

    redis_server server;
    asio::io_context io;
    std::optional<driver> test_driver;
};

/// Number of times that the server has executed a command since CONFIG RESETSTAT.
inline int calls_of(served& f, const std::string& command)
{
    const auto name = "cmdstat_" + command + ":calls=";
    const auto reply = f.raw({"INFO", "commandstats"});
    const auto at = reply.find(name);
    BOOST_TEST_REQUIRE(at != std::string::npos);
    return std::stoi(reply.substr(at + name.size()));
}

} // namespace colock::testing
