// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/layout/lock_queue.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

std::int32_t distance(std::int32_t from, std::int32_t to) noexcept
{
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(to) - static_cast<std::uint32_t>(from));
}

} // namespace

lock_queue::lock_queue(layout layout, std::span<const std::string> names) : layout_(layout)
{
    entries_.reserve(names.size());
    for (const auto& name : names) {
        if (const auto at = parse_node(layout, name))
            entries_.push_back({.at = *at, .name = name});
    }
    if (entries_.empty())
        return;
    origin_ = entries_.front().at.number;
    // is_before() cannot be used here: it is not transitive for numbers that are more than half of their range apart.
    std::ranges::sort(entries_, {},
        [this](const entry& each) { return std::tuple(distance(origin_, each.at.number), each.at.wants, each.name); });
    std::size_t readers = 0;
    std::optional<std::size_t> writer;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        entries_[i].readers_before = readers;
        entries_[i].writer_before = writer;
        if (entries_[i].at.wants == role::shared)
            ++readers;
        else
            writer = i;
    }
}

std::vector<lock_queue::entry>::const_iterator lock_queue::lower_bound(place at) const
{
    return std::ranges::lower_bound(entries_, std::pair(distance(origin_, at.number), at.wants), {},
        [this](const entry& each) { return std::pair(distance(origin_, each.at.number), each.at.wants); });
}

queue_position lock_queue::find(std::string_view own, std::size_t max_holders) const
{
    const auto mine = parse_node(layout_, own);
    if (!mine)
        return {};
    // Nodes with the same number and role share a position, and none of them is before another.
    const auto first = lower_bound(*mine);
    auto found = first;
    while (found != entries_.end() && found->at == *mine && found->name != own)
        ++found;
    if (found == entries_.end() || found->name != own)
        return {};
    if (mine->wants == role::exclusive) {
        if (first == entries_.begin())
            return {.type = queue_position::kind::first};
        return {.type = queue_position::kind::behind_one, .predecessor = std::string(std::prev(first)->name)};
    }
    if (first->writer_before)
        return {
            .type = queue_position::kind::behind_one, .predecessor = std::string(entries_[*first->writer_before].name)};
    if (max_holders > 0 && first->readers_before >= max_holders)
        return {.type = queue_position::kind::behind_some};
    return {.type = queue_position::kind::first};
}

std::vector<std::string_view> lock_queue::front() const
{
    std::vector<std::string_view> all;
    for (const auto& each : entries_) {
        if (each.at.wants == role::exclusive) {
            if (all.empty())
                all.emplace_back(each.name);
            break;
        }
        all.emplace_back(each.name);
    }
    return all;
}

std::vector<std::string> names_with_prefix(std::string_view prefix, std::span<const std::string> names)
{
    std::vector<std::string> found;
    std::ranges::copy_if(
        names, std::back_inserter(found), [prefix](const std::string& name) { return name.starts_with(prefix); });
    return found;
}

} // namespace colock::inline v0::zookeeper::detail
