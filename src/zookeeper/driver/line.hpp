// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/recipe/names.hpp"

#include <colock/spi/claim.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
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
    std::string predecessor{};
};

/// The nodes of a key's folder, sorted once by their sequence numbers. Looking up a node takes logarithmic time, so
/// that thousands of claims can share one list of the folder.
class lock_queue
{
public:
    /// \param names all children of the folder, in no order; those that are no nodes of the layout are ignored. They
    /// have to live as long as the queue.
    lock_queue(layout how, std::span<const std::string> names);

    /// Returns where a node stands.
    /// \param max_holders of a shared claim; 0: any number
    [[nodiscard]] standing find(std::string_view own, std::size_t max_holders) const;
    /// Returns the nodes that may hold the key, in order: the first one, or the shared ones before all exclusive ones.
    [[nodiscard]] std::vector<std::string> front() const;

private:
    struct entry
    {
        place at;
        std::string_view name;
        /// Number of shared nodes before this one.
        std::size_t readers_before = 0;
        /// Index of the nearest exclusive node before this one.
        std::optional<std::size_t> writer_before{};
    };

    [[nodiscard]] std::vector<entry>::const_iterator lower_bound(place at) const;

    const layout layout_;
    /// A number of this queue. Distances from it order all numbers that are within half of their range.
    std::int32_t origin_ = 0;
    std::vector<entry> entries_;
};

/// Those that were made for that claim.
[[nodiscard]] std::vector<std::string> made_for(std::string_view prefix, std::span<const std::string> names);

} // namespace colock::zookeeper::detail
