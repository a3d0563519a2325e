// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/backend.hpp"

#include "../../tools/built_backends.hpp"
#include "command/exit_code.hpp"

#include <colock/connect.hpp>
#include <colock/logging_observer.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string_view>
#include <utility>

namespace command {

namespace {

/// Time for which colock waits at its end until its locks are released. Locks that are left end with their ttl.
constexpr std::chrono::seconds shutdown_timeout(2);

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

asio::awaitable<int> with_shutdown(colock::locker locker, asio::awaitable<int> body)
{
    std::exception_ptr failure;
    int code = success;
    try {
        code = co_await std::move(body);
    } catch (...) {
        failure = std::current_exception();
    }
    co_await locker.shutdown(shutdown_timeout);
    if (failure)
        std::rethrow_exception(failure);
    co_return code;
}

} // namespace

backend_address address_of(const invocation& call)
{
    backend_address result{.url = call.text("backend"), .password = {}};
    if (result.url.empty())
        result.url = environment("COLOCK_BACKEND");
    else if (contains_password(result.url) && !call.flag("quiet")) {
        print_line("warning: other users can see the password in --backend; use COLOCK_BACKEND or "
                   "COLOCK_PASSWORD_FILE");
    }
    if (result.url.empty())
        throw usage_error("no backend is given; use --backend URL or the environment variable COLOCK_BACKEND");
    if (const std::string file = environment("COLOCK_PASSWORD_FILE"); !file.empty())
        result.password = read_password(file);
    return result;
}

void add_session_timeout(backend_address& address, std::chrono::milliseconds ttl)
{
    using namespace std::chrono_literals;
    if (!address.url.starts_with("zookeeper:") || address.url.find("session_timeout=") != std::string::npos)
        return;
    const std::chrono::milliseconds timeout = std::clamp<std::chrono::milliseconds>(ttl, 1s, 1h);
    address.url += address.url.find('?') == std::string::npos ? '?' : '&';
    address.url += "session_timeout=" + std::to_string(timeout.count()) + "ms";
}

std::shared_ptr<colock::adapter> open_adapter(const asio::any_io_executor& executor, const backend_address& address)
{
    auto adapter = colock::make_adapter(
        executor, address.url, tools::built_backends(), {.user = {}, .password = address.password, .tls = {}});
    if (adapter->traits().name == "memory")
        throw usage_error("locks in memory exclude no other process; use the URL of a server");
    return adapter;
}

backend open_backend(const asio::any_io_executor& executor, const invocation& call, const backend_address& address)
{
    colock::locker_options options;
    if (call.flag("verbose")) {
        options.observer = std::make_shared<colock::logging_observer>(
            std::cerr, colock::logging_options{.level = colock::log_level::debug});
    }
    auto adapter = open_adapter(executor, address);
    return {.adapter = adapter, .locker = colock::locker(adapter, std::move(options))};
}

int run_context(asio::io_context& io, colock::locker locker, asio::awaitable<int> body)
{
    std::exception_ptr failure;
    int result = success;
    asio::co_spawn(io, with_shutdown(std::move(locker), std::move(body)), [&](std::exception_ptr problem, int code) {
        failure = std::move(problem);
        result = code;
        io.stop(); // Nothing that still waits matters to the result.
    });
    io.run();
    if (failure)
        std::rethrow_exception(failure);
    return result;
}

int run_with_locker(const invocation& call, const std::function<asio::awaitable<int>(colock::locker)>& body)
{
    std::signal(SIGPIPE, SIG_IGN); // A server that closes a connection does not end colock.
    asio::io_context io(1);
    const backend opened = open_backend(io.get_executor(), call, address_of(call));
    return run_context(io, opened.locker, body(opened.locker));
}

} // namespace command
