// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace command {

class inherited_state;
class signal_source;

/// How a child runs.
struct child_options
{
    /// The program and its arguments.
    std::vector<std::string> words;
    /// Time from SIGTERM to SIGKILL.
    std::chrono::milliseconds grace{0};
    /// Whether a line on stderr says that the child is stopped.
    bool reports_stop = false;
};

/// How a child has ended.
struct child_result
{
    /// The exit code of the child, or 128 + n if the signal n has ended it.
    int code = 0;
    /// Whether this process got SIGTERM, SIGINT or SIGHUP, which it has forwarded.
    bool received_signal = false;
    /// Reason why the lock was lost before the child had ended; empty if it was held all the time.
    std::string loss{};
};

/// Runs the child under the locks, whose leases are renewed by their locker, until it has ended. Must run on an
/// executor with one thread, and with cancellation disabled.
///
/// Forwards signals to the child's group. Ends the child before the earliest lease can end, or if a lock is lost.
/// \throws exit_error the child cannot be executed
[[nodiscard]] boost::asio::awaitable<child_result> supervise(std::span<const colock::lock> locks, child_options options,
    signal_source& signals, const inherited_state& inherited);

/// Runs the child as `supervise` does, and releases the locks.
/// \return the exit code of the child
/// \throws exit_error the child cannot be executed; `lost`: a lock was lost before the child had ended
[[nodiscard]] boost::asio::awaitable<int> run_child(
    std::vector<colock::lock> locks, child_options options, signal_source& signals, const inherited_state& inherited);

} // namespace command
