// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

// Included by the files in which run.py has put mutants.

#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>

/// Whether the environment variable COLOCK_MUTANT selects this mutant. False in a constant expression.
constexpr bool is_mutant(std::string_view name)
{
    if (std::is_constant_evaluated())
        return false;
    const auto selected = []() -> std::string_view {
        static const char* const value = std::getenv("COLOCK_MUTANT");
        return value ? value : "";
    };
    return selected() == name;
}

/// Returns a text with its first `from` replaced by `to`. Aborts if there is none.
inline std::string mutated(std::string_view text, std::string_view from, std::string_view to)
{
    const auto at = text.find(from);
    if (at == std::string_view::npos)
        std::abort();
    return std::string(text).replace(at, from.size(), to);
}
