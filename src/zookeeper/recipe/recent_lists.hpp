// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"

#include <colock/clock.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// The last list of the children of each folder, for a short time, so that thousands of claims that are woken together
/// do not need a list each.
///
/// A list proves that a claim has its lock if it shows the claim's node, and no node ahead of it that excludes the
/// claim. This remains true while the node exists, because the server gives each later node a higher number. A list
/// does not prove that a claim has to wait, because the nodes ahead may be gone now. It does not show either that the
/// claim's own node was removed later, by `break_lock` or an administrator. So lists are forgotten after `max_age`, and
/// with the connection, because the next server may have an older copy of the data.
///
/// Thread safety: none.
class recent_lists
{
public:
    using time_point = lease_clock::time_point;

    static constexpr lease_clock::duration max_age = std::chrono::seconds(1);

    /// A list of a single node is not kept: it concerns one claim only.
    /// \param listed the reply to a request for the children of the folder
    void note(std::string_view folder, const reply& listed, time_point now)
    {
        if (listed.children && listed.children->names().size() > 1)
            lists_.insert_or_assign(
                std::string(folder), entry{.children = listed.children,
                                         .modified_in = static_cast<std::uint64_t>(listed.stat.children_modified_in),
                                         .arrived = now});
    }
    /// Returns the list of a folder as it was after that transaction; null if there is none.
    [[nodiscard]] const folder_children* find(
        std::string_view folder, std::uint64_t transaction, time_point now) const noexcept
    {
        const auto found = lists_.find(folder);
        // After the folder was removed and created again, a node can get the name of an earlier one.
        if (found == lists_.end() || found->second.modified_in < transaction || is_old(found->second, now))
            return nullptr;
        return found->second.children.get();
    }
    void forget_old(time_point now) noexcept
    {
        std::erase_if(lists_, [now](const auto& each) { return is_old(each.second, now); });
    }
    void clear() noexcept { lists_.clear(); }

private:
    struct entry
    {
        std::shared_ptr<const folder_children> children;
        /// Number of the last transaction that created or removed a child.
        std::uint64_t modified_in;
        time_point arrived;
    };

    [[nodiscard]] static bool is_old(const entry& list, time_point now) noexcept
    {
        return now - list.arrived >= max_age;
    }

    std::map<std::string, entry, std::less<>> lists_;
};

} // namespace colock::inline v0::zookeeper::detail
