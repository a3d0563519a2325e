// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/invocation.hpp"

namespace command {

/// Adds the options of `run`, of `lead`, of `detach` and of `adopt`.
void add_run_options(program_options::options_description& options);
void add_lead_options(program_options::options_description& options);
void add_detach_options(program_options::options_description& options);
void add_adopt_options(program_options::options_description& options);

/// Acquires the locks, runs a command under them, and releases them.
[[nodiscard]] int run(const invocation& call);
/// Runs a command in each term in which this process leads, until a signal ends it.
[[nodiscard]] int lead(const invocation& call);
/// Acquires a lock, and writes its ticket to a file.
[[nodiscard]] int detach(const invocation& call);
/// Takes over the lock of a ticket, runs a command under it, and releases it.
[[nodiscard]] int adopt(const invocation& call);

} // namespace command
