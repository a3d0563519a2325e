// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>
#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>

#include <string>
#include <vector>

namespace command {

class signal_source;

/// Acquires all keys or none.
[[nodiscard]] boost::asio::awaitable<std::vector<colock::lock>> acquire(
    colock::locker locker, std::vector<std::string> keys, colock::acquire_options options);

/// Waits for `acquiring`, unless a terminating signal or SIGQUIT arrives.
/// \param watched_keys the keys whose holder is shown on stderr meanwhile; empty: nothing is shown
/// \throws exit_error with 128 + n after the signal n; nothing is held then
[[nodiscard]] boost::asio::awaitable<std::vector<colock::lock>> wait_interruptibly(
    boost::asio::awaitable<std::vector<colock::lock>> acquiring, colock::locker locker,
    std::vector<std::string> watched_keys, signal_source& signals);

} // namespace command
