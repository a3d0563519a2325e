// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <ostream>

namespace command {

struct subcommand;

/// Prints the list of all subcommands.
void print_help(std::ostream& out);
/// Prints the texts and the options of one subcommand.
void print_help(std::ostream& out, const subcommand& selected);
/// Prints the version of colock and the backends of this build.
void print_version(std::ostream& out);

} // namespace command
