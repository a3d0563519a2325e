// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>
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

/// Runs the child under the locks, whose leases are renewed by their locker, and releases the locks when the child has
/// ended. Must run on an executor with one thread.
///
/// Forwards signals to the child's group. Ends the child before the earliest lease can end, or if a lock is lost.
/// \return the exit code of the child, 128 + n if a signal has ended it, or `lost`
/// \throws exit_error the child cannot be executed
[[nodiscard]] boost::asio::awaitable<int> run_child(
    std::vector<colock::lock> locks, child_options options, signal_source& signals, const inherited_state& inherited);

} // namespace command
