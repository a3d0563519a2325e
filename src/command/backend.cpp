// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/backend.hpp"

#include "../../tools/built_backends.hpp"
#include "command/exit_code.hpp"

#include <colock/connect.hpp>
#include <colock/logging_observer.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>

namespace command {

namespace {

std::string environment(const char* name)
{
    const char* const text = std::getenv(name);
    return text ? text : "";
}

/// Returns whether the part of the URL before the host contains a password.
bool contains_password(std::string_view url)
{
    const auto authority = url.find("://");
    if (authority == url.npos)
        return false;
    url.remove_prefix(authority + 3);
    url = url.substr(0, url.find_first_of("/?#"));
    const auto host = url.rfind('@');
    return host != url.npos && url.substr(0, host).find(':') != url.npos;
}

std::string read_password(const std::string& file)
{
    std::ifstream in(file);
    std::string password;
    if (!std::getline(in, password) || password.empty())
        throw usage_error("COLOCK_PASSWORD_FILE: '" + file + "' cannot be read, or its first line is empty");
    return password;
}

} // namespace

backend_address address_of(const invocation& call)
{
    backend_address result{.url = call.text("backend"), .password = {}};
    if (result.url.empty())
        result.url = environment("COLOCK_BACKEND");
    else if (contains_password(result.url) && !call.flag("quiet")) {
        static_cast<void>(
            std::fputs("colock: warning: other users can see the password in --backend; use COLOCK_BACKEND or "
                       "COLOCK_PASSWORD_FILE\n",
                stderr));
    }
    if (result.url.empty())
        throw usage_error("no backend is given; use --backend URL or the environment variable COLOCK_BACKEND");
    if (result.url.starts_with("memory:"))
        throw usage_error("locks in memory exclude no other process; use the URL of a server");
    if (const std::string file = environment("COLOCK_PASSWORD_FILE"); !file.empty())
        result.password = read_password(file);
    return result;
}

std::shared_ptr<colock::adapter> open_adapter(const asio::any_io_executor& executor, const backend_address& address)
{
    return colock::make_adapter(
        executor, address.url, tools::built_backends(), {.user = {}, .password = address.password, .tls = {}});
}

colock::locker open_locker(
    const asio::any_io_executor& executor, const invocation& call, colock::locker_options options)
{
    if (call.flag("verbose")) {
        options.observer = std::make_shared<colock::logging_observer>(
            std::cerr, colock::logging_options{.level = colock::log_level::debug});
    }
    return colock::locker(open_adapter(executor, address_of(call)), std::move(options));
}

int run_with_locker(const invocation& call, const std::function<asio::awaitable<int>(colock::locker)>& body)
{
    asio::io_context io(1);
    const colock::locker locker = open_locker(io.get_executor(), call);
    std::exception_ptr failure;
    std::optional<int> result;
    // The parameters are copied into the frame, and the closure outlives the coroutine.
    const auto with_shutdown = [&body](colock::locker opened) -> asio::awaitable<int> {
        std::exception_ptr problem;
        int code = success;
        try {
            code = co_await body(opened);
        } catch (...) {
            problem = std::current_exception();
        }
        co_await opened.shutdown();
        if (problem)
            std::rethrow_exception(problem);
        co_return code;
    };
    asio::co_spawn(io, with_shutdown(locker), [&](std::exception_ptr problem, int code) {
        failure = std::move(problem);
        result = code;
    });
    io.run();
    if (failure)
        std::rethrow_exception(failure);
    return result.value();
}

} // namespace command
