// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

/// What could travel in one transaction with others: the creation of a node, its removal, or a removal and a creation
/// that must not be parted.
struct batch_item
{
    /// Where the node is.
    std::string_view parent;
    bool creates = true;
    /// One, or two where they must not be parted.
    std::size_t operations = 1;
    std::size_t bytes = 0;
    /// It may fail for reasons of its own, and would take the others with it.
    bool by_itself = false;
};

struct part_limits
{
    std::size_t parcels = 8;
    std::size_t operations = 32;
    std::size_t bytes = std::size_t{256} * 1024;
};

/// Which go together, in their order. All creations of a transaction share one number, from which fences are made: no
/// part has two for one parent.
[[nodiscard]] std::vector<std::vector<std::size_t>> in_parts(
    std::span<const batch_item> ready, part_limits limits = {});

/// What has become of a transaction: of all of it, or of nothing.
struct multi_outcome
{
    bool done;
    /// Whose fault it is, if that was told.
    std::optional<std::size_t> culprit{};
};
/// \param code of the call; where it is no success no member has happened, whatever its own code says: members before
/// the culprit are called successful although they were rolled back, and those behind it inconsistent.
/// \param codes of the members; 0 is success
[[nodiscard]] multi_outcome outcome_of(int code, std::span<const int> codes);

} // namespace colock::zookeeper::detail
