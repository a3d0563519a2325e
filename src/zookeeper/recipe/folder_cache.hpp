// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// Caches the state in which folders were last seen. Entries get lost, a folder may get the entry of another folder
/// with the same hash, and folders change. A wrong entry costs at most an additional request.
///
/// Thread safety: none.
class folder_cache
{
public:
    enum class state : unsigned char
    {
        unknown,
        /// The folder exists, and no other node was seen in it when this client created one.
        uncontended,
        /// The folder exists, and contained several nodes.
        contended,
    };

    void note(std::string_view folder, state new_state)
    {
        if (table_.empty())
            table_.resize(size);
        const auto hash = std::hash<std::string_view>()(folder);
        table_[hash % size] = sign_of(hash) | static_cast<std::uint32_t>(new_state);
    }
    [[nodiscard]] state find(std::string_view folder) const noexcept
    {
        if (table_.empty())
            return state::unknown;
        const auto hash = std::hash<std::string_view>()(folder);
        const auto entry = table_[hash % size];
        return (entry & ~kinds) == sign_of(hash) ? static_cast<state>(entry & kinds) : state::unknown;
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

} // namespace colock::inline v0::zookeeper::detail
