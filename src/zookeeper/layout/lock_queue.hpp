// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/layout/node_names.hpp"

#include <colock/spi/claim.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// Position of a node in the lock queue of a key.
struct queue_position
{
    enum class kind : unsigned char
    {
        /// The node is not in the queue.
        absent,
        first,
        /// The node has to wait until one other node is removed.
        behind_one,
        /// The node has to wait until any of several other nodes is removed.
        behind_some,
    };
    kind type = kind::absent;
    /// The name of the node to wait for if the position is `behind_one`.
    std::string predecessor{};
};

/// The nodes of a key's folder, sorted once by their sequence numbers. Looking up a node takes logarithmic time, so
/// that thousands of claims can share one list of the folder.
class lock_queue
{
public:
    /// \param names all children of the folder, in any order; must live as long as the queue. Names that do not belong
    /// to the layout are ignored.
    lock_queue(layout layout, std::span<const std::string> names);

    /// Returns the position of a node.
    /// \param max_holders maximum number of shared holders; 0: no limit
    [[nodiscard]] queue_position find(std::string_view own, std::size_t max_holders) const;
    /// Returns the nodes that may hold the key, in order: the first one, or the shared ones before all exclusive ones.
    /// The names live as long as those of the queue.
    [[nodiscard]] std::vector<std::string_view> front() const;

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
    /// Number of one of the nodes. The nodes are ordered by the distances of their numbers from this number, which is
    /// correct if no distance exceeds half of the range of numbers.
    std::int32_t origin_ = 0;
    std::vector<entry> entries_;
};

/// Returns the names that begin with the prefix of a claim.
[[nodiscard]] std::vector<std::string> names_with_prefix(std::string_view prefix, std::span<const std::string> names);

} // namespace colock::inline v0::zookeeper::detail
