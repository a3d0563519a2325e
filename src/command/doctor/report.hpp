// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/doctor/checks.hpp"

#include <ostream>
#include <span>

namespace command {

/// Prints a table. The servers are left out if all lines have the same.
void print_table(std::ostream& out, std::span<const finding> lines, bool with_colours);
/// Prints one JSON object for each line.
void print_json(std::ostream& out, std::span<const finding> lines);

} // namespace command
