// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/help.hpp"

#include "command/exit_code.hpp"
#include "command/subcommands.hpp"

#include <colock/version.hpp>

#include <array>
#include <iomanip>
#include <string>
#include <string_view>

namespace command {

namespace {

constexpr std::string_view summary = "locks for scripts, on Redis, ZooKeeper or MongoDB";

/// One row of a table of the help.
struct entry
{
    std::string_view term;
    std::string_view text;
};

constexpr std::array variables{
    entry{"COLOCK_BACKEND", "the server, as --backend; other users cannot see it"},
    entry{"COLOCK_PASSWORD_FILE", "a file whose first line is the password for the server"},
    entry{"NO_COLOR", "if it is not empty, nothing is coloured"},
};

constexpr std::array exit_codes{
    entry{"any", "run, lead, adopt: the exit code of the command"},
    entry{"0", "success"},
    entry{"1", "doctor: a check has failed; break: the answer was no"},
    entry{"64", "the command line or a file is wrong, or the backend cannot do this"},
    entry{"69", "the server is down"},
    entry{"75", "the lock is busy; -E changes this code"},
    entry{"77", "the server denies access"},
    entry{"78", "the configuration of the server does not allow correct locking"},
    entry{"79", "the lock was lost before the command had ended"},
    entry{"126", "the command cannot be executed"},
    entry{"127", "the command was not found"},
    entry{"128 + n", "the signal n ended the command, or the wait for the lock"},
};

void print_table(std::ostream& out, const auto& entries, int width)
{
    for (const entry& each : entries)
        out << "  " << std::left << std::setw(width) << each.term << each.text << '\n';
}

/// The text for troff, in which a '-' would otherwise be a hyphen, and a '.' at the start of a line a request.
std::string roff(std::string_view text)
{
    std::string result;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n'))
            result += "\\&";
        if (c == '\\')
            result += "\\e";
        else if (c == '-')
            result += "\\-";
        else
            result += c;
    }
    return result;
}

/// Paragraphs, which are separated by empty lines.
std::string roff_paragraphs(std::string_view text)
{
    std::string result;
    while (true) {
        const auto end = text.find("\n\n");
        result += ".PP\n" + roff(text.substr(0, end)) + '\n';
        if (end == text.npos)
            return result;
        text.remove_prefix(end + 2);
    }
}

void print_roff_table(std::ostream& out, const auto& entries)
{
    for (const entry& each : entries)
        out << ".TP\n.B " << roff(each.term) << '\n' << roff(each.text) << '\n';
}

void print_roff_options(std::ostream& out, const program_options::options_description& options)
{
    for (const auto& each : options.options()) {
        out << ".TP\n.B " << roff(each->format_name());
        if (const std::string parameter = each->format_parameter(); !parameter.empty())
            out << ' ' << roff(parameter);
        out << '\n' << roff(each->description()) << '\n';
    }
}

} // namespace

void print_help(std::ostream& out)
{
    out << "Usage: colock SUBCOMMAND [OPTION]...\n       colock --help | --version\n\ncolock: " << summary
        << "\n\nSubcommands:\n";
    for (const subcommand& each : all_subcommands())
        out << "  " << std::left << std::setw(10) << each.name << each.summary << '\n';
    out << "\nEnvironment:\n";
    print_table(out, variables, 22);
    out << "\nExit codes:\n";
    print_table(out, exit_codes, 10);
    out << "\n'colock SUBCOMMAND --help' describes a subcommand.\n";
}

void print_help(std::ostream& out, const subcommand& selected)
{
    out << "Usage: colock " << selected.name << ' ' << selected.synopsis << "\n\n"
        << selected.description << "\n\n"
        << options_of(selected);
}

void print_manual_page(std::ostream& out)
{
    out << ".TH COLOCK 1 \"\" \"colock " << COLOCK_VERSION_MAJOR << '.' << COLOCK_VERSION_MINOR << '.'
        << COLOCK_VERSION_PATCH << "\"\n.SH NAME\ncolock \\- " << roff(summary) << "\n.SH SYNOPSIS\n";
    for (const subcommand& each : all_subcommands())
        out << ".B colock " << each.name << "\n" << roff(each.synopsis) << "\n.br\n";
    out << ".SH SUBCOMMANDS\n";
    for (const subcommand& each : all_subcommands()) {
        out << ".SS colock " << each.name << ' ' << roff(each.synopsis) << '\n' << roff_paragraphs(each.description);
        print_roff_options(out, options_of(each));
    }
    out << ".SH ENVIRONMENT\n";
    print_roff_table(out, variables);
    out << ".SH EXIT STATUS\n";
    print_roff_table(out, exit_codes);
}

void print_version(std::ostream& out)
{
    out << "colock " << COLOCK_VERSION_MAJOR << '.' << COLOCK_VERSION_MINOR << '.' << COLOCK_VERSION_PATCH << '\n';
}

} // namespace command
