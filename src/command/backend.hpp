// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/invocation.hpp"

#include <colock/locker.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

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
    /// Empty: that in the URL, if any.
    std::string password;
};

/// Returns the address of the backend. Writes a warning to stderr if --backend contains a password, unless --quiet.
/// \throws usage_error no backend is given, it is in the memory of one process, or the password file cannot be read
[[nodiscard]] backend_address address_of(const invocation& call);

/// Makes the adapter of the backend. Does no I/O.
/// \throws colock::validation_error the URL is wrong
[[nodiscard]] std::shared_ptr<colock::adapter> open_adapter(
    const asio::any_io_executor& executor, const backend_address& address);

/// Makes the locker on the backend, with an observer that logs to stderr with --verbose.
[[nodiscard]] colock::locker open_locker(
    const asio::any_io_executor& executor, const invocation& call, colock::locker_options options = {});

/// Runs `body` with a locker of the backend, shuts the locker down, and returns the result of the body.
[[nodiscard]] int run_with_locker(
    const invocation& call, const std::function<asio::awaitable<int>(colock::locker)>& body);

} // namespace command
