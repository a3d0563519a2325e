// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

/// How folders of keys were found when they were last looked at. Forgets, and takes one for another now and then, and
/// they change: what rests on it may cost a request more, and nothing else.
///
/// Thread safety: none.
class folder_cache
{
public:
    enum class found : unsigned char
    {
        unknown,
        /// There, with one node of ours at most.
        quiet,
        /// With several nodes.
        crowded,
    };

    void note(std::string_view folder, found how)
    {
        if (table_.empty())
            table_.resize(size);
        const auto hash = std::hash<std::string_view>()(folder);
        table_[hash % size] = sign_of(hash) | static_cast<std::uint32_t>(how);
    }
    [[nodiscard]] found recall(std::string_view folder) const noexcept
    {
        if (table_.empty())
            return found::unknown;
        const auto hash = std::hash<std::string_view>()(folder);
        const auto entry = table_[hash % size];
        return (entry & ~kinds) == sign_of(hash) ? static_cast<found>(entry & kinds) : found::unknown;
    }

private:
    static constexpr std::size_t size = 16'384;
    static constexpr std::uint32_t kinds = 3;

    static std::uint32_t sign_of(std::size_t hash) noexcept
    {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(hash) >> 32) & ~kinds;
    }

    std::vector<std::uint32_t> table_;
};

} // namespace colock::zookeeper::detail
