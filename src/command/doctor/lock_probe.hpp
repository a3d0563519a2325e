// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/backend.hpp"
#include "command/doctor/checks.hpp"
#include "command/invocation.hpp"

#include <exception>

namespace command {

/// Measurements and warnings of one use of a lock.
struct lock_probe
{
    /// For `lock_checks`. The value `waiting` is for MongoDB.
    server_values values{};
    adapter_warnings warnings{};
    /// The error, if the backend cannot be reached or does not answer.
    std::exception_ptr unavailable{};
};

/// Acquires, queries and releases the lock `colock-doctor`, and measures how soon a waiter of a second adapter gets it.
[[nodiscard]] lock_probe probe_lock(const invocation& call, const backend_address& address);

} // namespace command
