// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace colock::inline v0::memory {

struct entry;

/// Maps each group to the entries in which it has holders. Holders without a group are not in the index.
class group_index
{
public:
    void add(const std::string& group, entry& at)
    {
        if (!group.empty())
            ++groups_[group][&at];
    }
    void remove(const std::string& group, entry& at) noexcept
    {
        if (group.empty())
            return;
        const auto found = groups_.find(group);
        const auto place = found->second.find(&at);
        if (--place->second == 0)
            found->second.erase(place);
        if (found->second.empty())
            groups_.erase(found);
    }
    [[nodiscard]] std::vector<entry*> entries_of(const std::string& group) const
    {
        std::vector<entry*> entries;
        if (const auto found = groups_.find(group); found != groups_.end()) {
            for (const auto& [at, holders] : found->second)
                entries.push_back(at);
        }
        return entries;
    }
    [[nodiscard]] std::size_t size() const noexcept { return groups_.size(); }
    void clear() noexcept { groups_.clear(); }

private:
    /// For each group and entry, the number of holders.
    std::map<std::string, std::map<entry*, std::size_t>> groups_;
};

} // namespace colock::inline v0::memory
