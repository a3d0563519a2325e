// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/line.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace colock::zookeeper::detail {

namespace {

struct entry
{
    place at;
    const std::string* name;
};

} // namespace

standing stand_in_line(layout how, std::span<const std::string> names, std::string_view own, std::size_t max_holders)
{
    if (std::ranges::find(names, own) == names.end())
        return {};
    const auto mine = parse_node(how, own);
    if (!mine)
        return {};
    std::optional<entry> nearest;
    std::size_t readers = 0;
    for (const auto& name : names) {
        const auto other = parse_node(how, name);
        if (!other || name == own || !is_before(*other, *mine))
            continue;
        if (other->wants == role::shared)
            ++readers;
        if (mine->wants == role::shared && other->wants == role::shared)
            continue;
        if (!nearest || is_before(nearest->at, *other))
            nearest = entry{*other, &name};
    }
    const bool is_limited = mine->wants == role::shared && max_holders > 0;
    if (is_limited && (nearest || readers >= max_holders))
        return {.what = standing::kind::behind_some};
    if (nearest)
        return {.what = standing::kind::behind_one, .blocker = *nearest->name};
    return {.what = standing::kind::first};
}

std::vector<std::string> front_of_line(layout how, std::span<const std::string> names)
{
    std::vector<entry> line;
    for (const auto& name : names) {
        if (const auto at = parse_node(how, name))
            line.push_back({*at, &name});
    }
    // Numbers are compared by their distance: an order as long as all of them stand within half of their range.
    std::ranges::sort(line, [](const entry& one, const entry& other) { return is_before(one.at, other.at); });
    std::vector<std::string> front;
    for (const auto& [at, name] : line) {
        if (at.wants == role::exclusive) {
            if (front.empty())
                front.push_back(*name);
            break;
        }
        front.push_back(*name);
    }
    return front;
}

std::vector<std::string> made_for(std::string_view prefix, std::span<const std::string> names)
{
    std::vector<std::string> found;
    std::ranges::copy_if(
        names, std::back_inserter(found), [prefix](const std::string& name) { return name.starts_with(prefix); });
    return found;
}

} // namespace colock::zookeeper::detail
