// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/status.hpp>

#include <ostream>
#include <vector>

namespace command {

/// Sorts locks by key, and the locks of a key by their creation.
void sort_by_key(std::vector<colock::lock_status>& locks);

/// Prints a table for people, with a line of headings. A value that the backend does not report, and the remaining time
/// of a lock without a ttl, is "-". Prints nothing if there are no locks.
/// \param terminal whether the output is a terminal, on which long columns are cut and headings are bold
void print_table(std::ostream& out, const std::vector<colock::lock_status>& locks, bool terminal);

/// Prints one JSON object for each lock. Times are in UTC, `remaining_ms` in milliseconds. `created`, `renewed`,
/// `remaining_ms` and `fence` are null if the backend does not report them; `remaining_ms` also for a lock without a
/// ttl.
void print_json(std::ostream& out, const std::vector<colock::lock_status>& locks);

} // namespace command
