// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/completion.hpp>

#include <cstdint>
#include <string>
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
    parted,
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
    /// Of the children, in no order.
    std::vector<std::string> names{};
    /// Of a transaction: its members'.
    std::vector<reply> members{};

    [[nodiscard]] bool ok() const noexcept { return what == status::ok; }
};

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
