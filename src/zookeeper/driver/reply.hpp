// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/line.hpp"

#include <colock/spi/completion.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::zookeeper::detail {

/// What became of a request.
enum class status : unsigned char
{
    ok,
    no_node,
    node_exists,
    not_empty,
    bad_version,
    access_denied,
    /// Answered, and refused for another reason, which `reply::code` tells.
    refused,
    /// Answered, and not carried out for the sake of another that travelled with it: to be asked for by itself.
    batch_aborted,
    /// Certainly not sent.
    unsent,
    /// It may have been sent, and may take effect as long as its session lives.
    unanswered,
    /// Its session is over.
    ended,
};

struct node_stat
{
    /// The number of the transaction that created it, and of the last that wrote it.
    std::int64_t created_in = 0;
    std::int64_t modified_in = 0;
    /// By the server's clock.
    std::int64_t created_ms = 0;
    std::int64_t modified_ms = 0;
    /// The session that it dies with; 0: with none.
    std::int64_t ephemeral_owner = 0;
    std::int32_t version = 0;
    std::int32_t children = 0;
    /// The number of the last transaction that created or removed a child.
    std::int64_t children_modified_in = 0;
};

/// The children of a folder, shared by all who have asked for them in one request.
///
/// Thread safety: none.
class folder_children
{
public:
    explicit folder_children(std::vector<std::string> names) : names_(std::move(names)) {}

    /// In no order.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    /// Returns the queue that they are, which is built at the first call.
    [[nodiscard]] const lock_queue& queue(layout how) const
    {
        if (!queue_)
            queue_.emplace(how, names_);
        return *queue_;
    }

private:
    const std::vector<std::string> names_;
    mutable std::optional<lock_queue> queue_;
};

/// Of one request, or of one member of a transaction.
struct reply
{
    status what = status::unsent;
    /// The driver's own.
    int code = 0;
    /// The path of what was created, or the data of what was read.
    std::string text{};
    node_stat stat{};
    /// Of one that has entered a folder: how many are in that, itself included; 0: they were not counted.
    std::int32_t crowd = 0;
    /// Children of the folder that the request listed; null if it listed none.
    std::shared_ptr<const folder_children> children{};
    /// Of a transaction: its members'.
    std::vector<reply> members{};

    [[nodiscard]] bool ok() const noexcept { return what == status::ok; }
    /// Returns the names of the children; empty if there is no folder.
    [[nodiscard]] const std::vector<std::string>& names() const& noexcept;
    [[nodiscard]] std::vector<std::string> names() && { return names(); }
    /// Returns the queue that the children are.
    [[nodiscard]] const lock_queue& queue(layout how) const&;
};

inline const std::vector<std::string>& reply::names() const& noexcept
{
    static const std::vector<std::string> none;
    return children ? children->names() : none;
}

inline const lock_queue& reply::queue(layout how) const&
{
    static const lock_queue empty(layout::standard, {});
    return children ? children->queue(how) : empty;
}

using replied = completion<reply>;

/// How long a node lives.
enum class node_kind : unsigned char
{
    persistent,
    /// Until its last child has gone, and a while longer.
    container,
    /// As its session.
    ephemeral,
    /// The same, and the server appends a number to its name.
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
    };
    kind what;
    std::string path;
    std::string data{};
    node_kind lives = node_kind::persistent;
};

} // namespace colock::zookeeper::detail
