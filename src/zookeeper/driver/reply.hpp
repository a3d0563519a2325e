// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/status.hpp"
#include "zookeeper/layout/lock_queue.hpp"

#include <colock/spi/completion.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

struct node_stat
{
    /// Numbers of the transaction that created the node, and of the last transaction that wrote it.
    std::int64_t created_in = 0;
    std::int64_t modified_in = 0;
    /// Times by the server's clock.
    std::int64_t created_ms = 0;
    std::int64_t modified_ms = 0;
    /// Session that owns an ephemeral node; 0 for other nodes.
    std::int64_t ephemeral_owner = 0;
    std::int32_t version = 0;
    std::int32_t children = 0;
    /// Number of the last transaction that created or removed a child.
    std::int64_t children_modified_in = 0;
};

/// The children of a folder, shared by all callers whose requests were answered by the same reply.
///
/// Thread safety: none.
class folder_children
{
public:
    explicit folder_children(std::vector<std::string> names) : names_(std::move(names)) {}

    /// Returns the names, in no particular order.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    /// Returns the lock queue of these children, which is built at the first call.
    [[nodiscard]] const lock_queue& queue(layout layout) const
    {
        if (!queue_)
            queue_.emplace(layout, names_);
        return *queue_;
    }

private:
    const std::vector<std::string> names_;
    mutable std::optional<lock_queue> queue_;
};

/// Reply to a request, or to one member of a transaction.
struct reply
{
    status outcome = status::unsent;
    /// The driver's error code.
    int code = 0;
    /// The path of the node that was created, or the data that was read.
    std::string text{};
    node_stat stat{};
    /// Number of nodes in a folder after `requests::enter`, including the new one; 0 if they were not counted.
    std::int32_t child_count = 0;
    /// Children of the folder that the request listed; null if it listed none.
    std::shared_ptr<const folder_children> children{};
    /// Replies to the members of a transaction.
    std::vector<reply> members{};

    [[nodiscard]] bool ok() const noexcept { return outcome == status::ok; }
    /// Returns the names of the children; empty if the folder does not exist.
    [[nodiscard]] const std::vector<std::string>& names() const& noexcept;
    [[nodiscard]] std::vector<std::string> names() && { return names(); }
    /// Returns the lock queue of the children.
    [[nodiscard]] const lock_queue& queue(layout layout) const&;
};

inline const std::vector<std::string>& reply::names() const& noexcept
{
    static const std::vector<std::string> none;
    return children ? children->names() : none;
}

inline const lock_queue& reply::queue(layout layout) const&
{
    static const lock_queue empty(layout::standard, {});
    return children ? children->queue(layout) : empty;
}

using reply_handler = completion<reply>;

/// Lifetime of a node.
enum class node_kind : unsigned char
{
    persistent,
    /// Removed by the server some time after the last child has gone.
    container,
    /// Removed together with its session.
    ephemeral,
    /// Like `ephemeral`; the server appends a sequence number to the name.
    ephemeral_sequential,
};

/// A member of a transaction.
struct change
{
    enum class kind : unsigned char
    {
        create,
        remove,
        write,
        /// Changes nothing. Fails if the node does not exist.
        check,
    };
    kind type;
    std::string path;
    std::string data{};
    node_kind lifetime = node_kind::persistent;
};

} // namespace colock::inline v0::zookeeper::detail
