// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// A request that can share a transaction with others: the creation of a node together with the write to its folder, or
/// the removal of a node.
struct batch_item
{
    /// The folder of the node.
    std::string_view parent;
    bool creates = true;
    /// Number of operations, which must not be separated.
    std::size_t operations = 1;
    std::size_t bytes = 0;
    /// The item must be sent alone, because its failure would make the other items fail.
    bool is_alone = false;
};

struct batch_limits
{
    std::size_t max_items = 8;
    std::size_t max_operations = 32;
    std::size_t max_bytes = std::size_t{256} * 1024;
};

/// Returns which items share a transaction, in their order. All creations of a transaction share one transaction
/// number, from which fencing tokens are made. So no transaction contains two creations in one folder.
[[nodiscard]] std::vector<std::vector<std::size_t>> make_batches(
    std::span<const batch_item> items, batch_limits limits = {});

/// Outcome of a transaction, which is carried out completely or not at all.
struct multi_outcome
{
    bool done;
    /// Index of the member that has failed, if it is known.
    std::optional<std::size_t> failed_member{};
};
/// \param code code of the call. If it is not 0, no member has taken effect, whatever its own code is: members before
/// the failed member have the code of success although they were rolled back, and members after it have the code of an
/// inconsistency.
/// \param codes codes of the members; 0 is success
[[nodiscard]] multi_outcome outcome_of(int code, std::span<const int> codes);

} // namespace colock::inline v0::zookeeper::detail
