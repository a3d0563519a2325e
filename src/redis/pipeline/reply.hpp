// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/redis/resp3/node.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace colock::redis::detail {

/// One reply of the server, whatever its shape. Replies that do not fit what was asked are the asker's problem alone:
/// reading never fails.
struct reply
{
    enum class kind : unsigned char
    {
        none,
        null,
        number,
        /// Simple and bulk strings, and everything else that is one value.
        text,
        error,
        /// Arrays, sets, maps (key and value in turn) and pushes.
        array,
    };
    kind what = kind::none;
    std::int64_t number = 0;
    std::string text{};
    std::vector<reply> items{};

    [[nodiscard]] bool is(kind expected) const noexcept { return what == expected; }
    [[nodiscard]] bool is_error() const noexcept { return what == kind::error; }
    /// The item, or an empty reply.
    [[nodiscard]] const reply& at(std::size_t index) const noexcept;

    /// Empty again, with its memory kept.
    void clear() noexcept;
    /// Takes up the next node of the reply whose root this is.
    void add(const boost::redis::resp3::node_view& node);
};

/// The replies to an operation's commands; few operations have more of them.
using reply_list = boost::container::small_vector<reply, 3>;

} // namespace colock::redis::detail
