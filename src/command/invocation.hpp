// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace command {

namespace program_options = boost::program_options;

struct subcommand;

/// The parsed command line of one subcommand.
struct invocation
{
    /// The options. Flags are values of the type bool.
    program_options::variables_map options;
    /// The words before `--` that are neither options nor their values.
    std::vector<std::string> words;
    /// The words after `--`.
    std::vector<std::string> child;

    /// Returns whether a flag is set.
    [[nodiscard]] bool flag(const char* name) const { return options[name].as<bool>(); }
    /// Returns the text of an option; empty if it is not given.
    [[nodiscard]] std::string text(const char* name) const
    {
        return options.count(name) == 0 ? std::string() : options[name].as<std::string>();
    }
    /// Returns the value of an option with a number, or nothing if the option is not given.
    /// \throws usage_error the number is less than `min` or greater than `max`
    [[nodiscard]] std::optional<std::int64_t> number(
        const char* name, std::int64_t min, std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
    /// Returns the value of an option with a duration, or nothing if the option is not given.
    /// \throws usage_error the text is not a duration
    [[nodiscard]] std::optional<std::chrono::milliseconds> duration(const char* name) const;
};

/// Returns the options of a subcommand, with those that all subcommands have.
[[nodiscard]] program_options::options_description options_of(const subcommand& selected);

/// Parses the words that follow the name of the subcommand.
/// \throws usage_error an option is unknown or has a wrong value
[[nodiscard]] invocation parse(const subcommand& selected, std::vector<std::string> arguments);

/// Parses a whole number with a unit: `500ms`, `30s`, `5m`, `1h`; or `0`.
/// \param name of the option, for the message
/// \throws usage_error the text is not a duration of at most ten years
[[nodiscard]] std::chrono::milliseconds parse_duration(std::string_view name, std::string_view text);

} // namespace command
