// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/invocation.hpp"

#include <span>
#include <string_view>

namespace command {

/// One subcommand: its texts, from which `--help` and the manual page are made, and its function.
struct subcommand
{
    std::string_view name;
    /// The rest of the line after `colock NAME`.
    std::string_view synopsis;
    /// One line for the list of all subcommands.
    std::string_view summary;
    /// Paragraphs, separated by empty lines.
    std::string_view description;
    /// Whether a command may follow `--`.
    bool has_child = false;
    /// Adds the options that not all subcommands have; may be null.
    void (*add_options)(program_options::options_description& options) = nullptr;
    /// Carries the subcommand out, and returns the exit code of the process. Exceptions become exit codes.
    int (*execute)(const invocation& call) = nullptr;
};

/// Returns all subcommands in the order of the manual page.
[[nodiscard]] std::span<const subcommand> all_subcommands();

/// Adds --backend, --verbose, --quiet and --help.
void add_common_options(program_options::options_description& options);

} // namespace command
