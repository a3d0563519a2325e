// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/invocation.hpp"

namespace command {

void add_doctor_options(program_options::options_description& options);
/// Checks the servers of the backend, and prints one line for each check.
[[nodiscard]] int doctor(const invocation& call);

} // namespace command
