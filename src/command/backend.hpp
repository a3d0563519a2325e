// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/invocation.hpp"

#include <colock/locker.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace command {

namespace asio = boost::asio;

/// The server that --backend, or else the environment variable COLOCK_BACKEND, names, and the password in the file that
/// COLOCK_PASSWORD_FILE names.
struct backend_address
{
    std::string url;
    /// The password; empty: that in the URL, if any.
    std::string password;
};

/// Returns the address of the backend. Writes a warning to stderr if --backend contains a password, unless --quiet.
/// \throws usage_error no backend is given, or the password file cannot be read
[[nodiscard]] backend_address address_of(const invocation& call);

/// Adds `session_timeout` to a ZooKeeper URL that has none: the ttl, from 1 s to 1 h. The lock of a process that was
/// killed is then free after the ttl, as on the other backends.
void add_session_timeout(backend_address& address, std::chrono::milliseconds ttl);

/// Makes the adapter of the backend. Does no I/O.
/// \throws usage_error the backend is the memory of one process
/// \throws colock::validation_error the URL is wrong
[[nodiscard]] std::shared_ptr<colock::adapter> open_adapter(
    const asio::any_io_executor& executor, const backend_address& address);

/// An adapter, and a locker on it.
struct backend
{
    std::shared_ptr<colock::adapter> adapter;
    colock::locker locker;
};

/// Makes the adapter and a locker, which logs its events to stderr with --verbose. Does no I/O.
/// \throws colock::validation_error the URL is wrong
[[nodiscard]] backend open_backend(
    const asio::any_io_executor& executor, const invocation& call, const backend_address& address);

/// Runs the context until `body` has ended and the locker is shut down, and returns the result of the body.
[[nodiscard]] int run_context(asio::io_context& io, colock::locker locker, asio::awaitable<int> body);

/// Opens the backend, and calls `run_context` with the coroutine that `body` returns for its locker.
[[nodiscard]] int run_with_locker(
    const invocation& call, const std::function<asio::awaitable<int>(colock::locker)>& body);

} // namespace command
