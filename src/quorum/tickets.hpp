// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node_claim.hpp"

#include <colock/spi/completion.hpp>
#include <colock/spi/outcome.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::quorum {

/// Collects the parts of all nodes and joins them to one ticket. A node that has not answered the create yet is waited
/// for, at most until its `operation_timeout`.
///
/// Thread safety: all members may be called from any thread.
class ticket_export : public std::enable_shared_from_this<ticket_export>
{
public:
    ticket_export(std::vector<std::shared_ptr<node_claim>> node_claims, completion<export_outcome> done);

    void start();

private:
    void add(std::size_t index, std::string part);

    const std::vector<std::shared_ptr<node_claim>> node_claims_;
    completion<export_outcome> done_;
    std::mutex mutex_;
    std::vector<std::string> parts_;
    std::size_t missing_;
};

/// Joins the parts of all nodes. Each is preceded by its length, which is 0 for a node that has not granted the lock.
[[nodiscard]] std::string join_tickets(const std::vector<std::string>& parts);

/// Returns the part of each node, or nothing if this is not a ticket for as many nodes.
[[nodiscard]] std::optional<std::vector<std::string>> split_tickets(std::string_view joined, std::size_t nodes);

} // namespace colock::inline v0::quorum
