// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/redis/resp3/node.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

/// One reply of the server, of any shape. Reading never fails. The operation that has sent the request checks the
/// shape.
struct reply
{
    enum class kind : unsigned char
    {
        none,
        null,
        number,
        /// Simple strings, bulk strings, and all other single values.
        text,
        error,
        /// Arrays, sets, maps (keys and values alternate) and pushes.
        array,
    };
    kind type = kind::none;
    std::int64_t number = 0;
    std::string text{};
    std::vector<reply> items{};

    [[nodiscard]] bool is(kind expected) const noexcept { return type == expected; }
    [[nodiscard]] bool is_error() const noexcept { return type == kind::error; }
    /// Returns the item, or an empty reply if there is none.
    [[nodiscard]] const reply& at(std::size_t index) const noexcept;

    /// Empties the reply and keeps its memory.
    void clear() noexcept;
    /// Adds the next node. This reply is the root of the node's tree.
    void add(const boost::redis::resp3::node_view& node);
};

/// Replies to the commands of an operation. Few operations have more than three.
using reply_list = boost::container::small_vector<reply, 3>;

} // namespace colock::inline v0::redis::detail
