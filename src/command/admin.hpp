// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/invocation.hpp"

namespace command {

/// Adds the options of `ls`, of `break` and of `purge`.
void add_ls_options(program_options::options_description& options);
void add_break_options(program_options::options_description& options);
void add_purge_options(program_options::options_description& options);

/// Lists the held locks.
[[nodiscard]] int ls(const invocation& call);
/// Removes all holders of a key.
[[nodiscard]] int break_key(const invocation& call);
/// Removes expired locks from the backend.
[[nodiscard]] int purge(const invocation& call);

} // namespace command
