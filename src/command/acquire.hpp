// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/terminal.hpp"

#include <colock/lock.hpp>
#include <colock/locker.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <string>
#include <vector>

namespace command {

class signal_source;

/// Acquires all keys or none.
[[nodiscard]] boost::asio::awaitable<std::vector<colock::lock>> acquire(
    colock::locker locker, std::vector<std::string> keys, colock::acquire_options options);

/// Lets a terminating signal or SIGQUIT end an operation that waits for locks, and shows on stderr who holds the locks.
/// Must be used on an executor with one thread.
class interruptible_wait
{
public:
    /// \param watched_keys the keys whose holder is shown; empty: nothing is shown
    interruptible_wait(const boost::asio::any_io_executor& executor, colock::locker locker,
        std::vector<std::string> watched_keys, signal_source& signals);
    interruptible_wait(const interruptible_wait&) = delete;
    interruptible_wait& operator=(const interruptible_wait&) = delete;
    ~interruptible_wait();

    /// Runs the operation, which is cancelled by a signal and by `end`. Called once.
    [[nodiscard]] boost::asio::awaitable<void> run(boost::asio::awaitable<void> operation);
    /// Called when the operation has got its locks: hides the line on stderr, and removes the signal handler, so that
    /// the caller can set its own.
    void detach_signals();
    /// Called when the operation waits for locks again: sets the signal handler.
    void attach_signals();
    /// Cancels the operation.
    void end() { interruption_.cancel(); }

    /// Returns the signal that has ended the operation, or 0.
    [[nodiscard]] int signal() const noexcept { return signal_; }
    /// \throws exit_error with 128 + n if the signal n has ended the operation
    void throw_if_interrupted() const;

private:
    [[nodiscard]] boost::asio::awaitable<void> show_progress();

    colock::locker locker_;
    std::vector<std::string> watched_keys_;
    signal_source& signals_;
    boost::asio::steady_timer interruption_;
    progress_line line_;
    bool has_locks_ = false;
    int signal_ = 0;
};

/// Waits for `operation`, unless a terminating signal or SIGQUIT arrives.
/// \param watched_keys the keys whose holder is shown on stderr meanwhile; empty: nothing is shown
/// \throws exit_error with 128 + n after the signal n; nothing is held then
[[nodiscard]] boost::asio::awaitable<std::vector<colock::lock>> wait_interruptibly(
    boost::asio::awaitable<std::vector<colock::lock>> operation, colock::locker locker,
    std::vector<std::string> watched_keys, signal_source& signals);

} // namespace command
