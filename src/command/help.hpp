// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <ostream>

namespace command {

struct subcommand;

/// Prints the list of all subcommands, the environment variables and the exit codes.
void print_help(std::ostream& out);
/// Prints the texts and the options of one subcommand.
void print_help(std::ostream& out, const subcommand& selected);
/// Prints the same texts as a manual page. The build stores it as colock.1.
void print_manual_page(std::ostream& out);
/// Prints the version of colock.
void print_version(std::ostream& out);

} // namespace command
