// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/reply.hpp"

#include <charconv>

namespace colock::inline v0::redis::detail {

const reply& reply::at(std::size_t index) const noexcept
{
    static const reply none;
    return index < items.size() ? items[index] : none;
}

void reply::clear() noexcept
{
    type = kind::none;
    number = 0;
    text.clear();
    items.clear();
}

void reply::add(const boost::redis::resp3::node_view& node)
{
    using boost::redis::resp3::type;
    reply* target = this;
    for (std::size_t depth = 0; depth < node.depth; ++depth) {
        if (depth + 1 == node.depth)
            target->items.emplace_back();
        else if (target->items.empty())
            return;
        target = &target->items.back();
    }
    switch (node.data_type) {
    case type::array:
    case type::push:
    case type::set:
    case type::map:
    case type::attribute:
        target->type = kind::array;
        return;
    case type::null:
        target->type = kind::null;
        return;
    case type::number: {
        target->type = kind::number;
        std::from_chars(node.value.data(), node.value.data() + node.value.size(), target->number);
        return;
    }
    case type::simple_error:
    case type::blob_error:
        target->type = kind::error;
        break;
    default:
        target->type = kind::text;
        break;
    }
    target->text.assign(node.value);
}

} // namespace colock::inline v0::redis::detail
