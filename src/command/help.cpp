// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/help.hpp"

#include "command/subcommands.hpp"

#include <colock/version.hpp>

#include <iomanip>

namespace command {

void print_help(std::ostream& out)
{
    out << "Usage: colock SUBCOMMAND [OPTION]...\n\nDistributed locks for scripts, on Redis, ZooKeeper or MongoDB.\n\n"
           "Subcommands:\n";
    for (const subcommand& each : all_subcommands())
        out << "  " << std::left << std::setw(10) << each.name << each.summary << '\n';
    out << "\n'colock SUBCOMMAND --help' describes a subcommand. 'man colock' is the manual.\n";
}

void print_help(std::ostream& out, const subcommand& selected)
{
    out << "Usage: colock " << selected.name << ' ' << selected.synopsis << "\n\n"
        << selected.description << "\n\n"
        << options_of(selected);
}

void print_version(std::ostream& out)
{
    out << "colock " << COLOCK_VERSION_MAJOR << '.' << COLOCK_VERSION_MINOR << '.' << COLOCK_VERSION_PATCH << '\n';
}

} // namespace command
