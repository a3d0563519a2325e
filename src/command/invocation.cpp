// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/invocation.hpp"

#include "command/exit_code.hpp"
#include "command/subcommands.hpp"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace command {

namespace {

constexpr const char* words_option = "words";

} // namespace

std::optional<std::int64_t> invocation::number(const char* name, std::int64_t min, std::int64_t max) const
{
    if (options.count(name) == 0)
        return std::nullopt;
    const auto result = options[name].as<std::int64_t>();
    if (result < min || result > max) {
        throw usage_error("--" + std::string(name) + ": " + std::to_string(result) + " is not a number from " +
                          std::to_string(min) + " to " + std::to_string(max));
    }
    return result;
}

std::optional<std::chrono::milliseconds> invocation::duration(const char* name) const
{
    if (options.count(name) == 0)
        return std::nullopt;
    return parse_duration(name, options[name].as<std::string>());
}

std::chrono::milliseconds parse_duration(std::string_view name, std::string_view text)
{
    using std::chrono::milliseconds;
    constexpr milliseconds longest = std::chrono::hours(24 * 3650);
    std::int64_t count = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, problem] = std::from_chars(text.data(), end, count);
    const std::string_view unit(rest, end);
    const milliseconds factor = unit == "ms"                  ? milliseconds(1)
                                : unit == "s"                 ? milliseconds(1'000)
                                : unit == "m"                 ? milliseconds(60'000)
                                : unit == "h"                 ? milliseconds(3'600'000)
                                : unit.empty() && text == "0" ? milliseconds(1)
                                                              : milliseconds(0);
    if (problem != std::errc() || count < 0 || factor.count() == 0 || count > longest / factor) {
        throw usage_error("--" + std::string(name) + ": '" + std::string(text) +
                          "' is not a duration of at most ten years; write a whole number with a unit: 500ms, 30s, 5m "
                          "or 1h");
    }
    return count * factor;
}

program_options::options_description options_of(const subcommand& selected)
{
    program_options::options_description options("Options");
    if (selected.add_options)
        selected.add_options(options);
    add_common_options(options);
    return options;
}

invocation parse(const subcommand& selected, std::vector<std::string> arguments)
{
    invocation result;
    const auto separator = std::ranges::find(arguments, "--");
    const bool has_separator = separator != arguments.end();
    if (has_separator)
        result.child.assign(separator + 1, arguments.end());
    arguments.erase(separator, arguments.end());

    auto options = options_of(selected);
    options.add_options()(words_option, program_options::value<std::vector<std::string>>());
    program_options::positional_options_description positions;
    positions.add(words_option, -1);
    try {
        using namespace program_options::command_line_style;
        program_options::store(program_options::command_line_parser(std::move(arguments))
                                   .options(options)
                                   .positional(positions)
                                   .style(unix_style & ~allow_guessing)
                                   .run(),
            result.options);
        program_options::notify(result.options);
    } catch (const program_options::error& problem) {
        throw usage_error(
            std::string(problem.what()) + "; 'colock " + std::string(selected.name) + " --help' lists the options");
    }
    if (result.options.count(words_option) != 0)
        result.words = result.options[words_option].as<std::vector<std::string>>();
    if (has_separator && !selected.has_child)
        throw usage_error("'colock " + std::string(selected.name) + "' runs no command; remove the words after --");
    return result;
}

} // namespace command
