// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/names.hpp"

#include <colock/claim.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

/// Where one stands in the line of a key.
struct standing
{
    enum class kind : unsigned char
    {
        /// Not in the line at all.
        absent,
        first,
        /// One node is in the way, whose end is awaited.
        behind_one,
        /// Any of several may make room.
        behind_some,
    };
    kind what = kind::absent;
    /// The name of that one node.
    std::string blocker{};
};

/// \param names of all that stand there, in no order, and of what else is there
/// \param max_holders of a shared claim; 0: any number
[[nodiscard]] standing stand_in_line(
    layout how, std::span<const std::string> names, std::string_view own, std::size_t max_holders);

/// Those that may hold the key, in order: the first one, or the readers in front of all writers.
[[nodiscard]] std::vector<std::string> front_of_line(layout how, std::span<const std::string> names);

/// Those that were made for that claim.
[[nodiscard]] std::vector<std::string> made_for(std::string_view prefix, std::span<const std::string> names);

} // namespace colock::zookeeper::detail
