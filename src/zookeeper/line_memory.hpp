// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/names.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

/// The last node of ours that stood alone in a folder. It may prove that the next one does, too, without a count and
/// without a look at the line.
///
/// A server numbers the nodes of a folder in the order in which they are made. If ours was alone, and has gone, and the
/// next that we make has the next number, nobody came in between. Or the folder has gone, too, and was made anew, and
/// as many have come since as that number says. Each of them takes a transaction of its own (`parts` sees to that, and
/// nobody else makes nodes there), and a leader numbers its transactions one by one: where fewer lie between our two
/// nodes, it is the same folder still. Under another leader that difference is far larger than any number of a node.
///
/// Thread safety: none; belongs to the strand.
class line_memory
{
public:
    struct node
    {
        std::int32_t number;
        /// The number of the transaction.
        std::int64_t created_in;
    };

    /// A node of ours was made. True if it is known to be alone there.
    /// \param crowd how many the server has counted there, which is certain; 0: it has not
    [[nodiscard]] bool entered(std::string_view folder, node which, std::int32_t crowd)
    {
        if (table_.empty())
            table_.resize(size);
        auto& known = table_[index_of(folder)];
        const bool is_next = known.gone && known.folder == folder && follows(known.last, which);
        if (crowd == 0 ? !is_next : crowd > 1) {
            if (known.folder == folder)
                known = {};
            return false;
        }
        known.proven = is_next ? known.proven + 1 : 0;
        known.distance = which.created_in - known.last.created_in;
        known.folder = folder;
        known.last = which;
        known.gone = false;
        return true;
    }
    /// The server has removed a node of ours.
    void left(std::string_view folder, std::int64_t created_in) noexcept
    {
        if (table_.empty())
            return;
        auto& known = table_[index_of(folder)];
        if (known.folder == folder && known.last.created_in == created_in)
            known.gone = true;
    }
    /// The next one of ours need not be counted, as far as one can tell: it was so several times, and as many
    /// transactions may have passed again.
    [[nodiscard]] bool expects(std::string_view folder) const noexcept
    {
        if (table_.empty())
            return false;
        const auto& known = table_[index_of(folder)];
        return known.gone && known.proven >= enough && known.folder == folder &&
               2 * known.distance <= known.last.number;
    }
    /// Another session has begun.
    void clear() noexcept { table_.clear(); }

private:
    struct entry
    {
        std::string folder{};
        node last{};
        /// Between it and the one before.
        std::int64_t distance = 0;
        /// How many in a row have followed one another.
        unsigned proven = 0;
        bool gone = false;
    };

    static constexpr std::size_t size = 1024;
    /// A guess that is wrong costs a request: who takes turns with others at random should seldom guess.
    static constexpr unsigned enough = 4;

    static bool follows(node last, node next) noexcept
    {
        if (last.number < 0 || !is_sound(next.number) || next.number - last.number != 1)
            return false;
        const auto passed = next.created_in - last.created_in;
        return passed > 0 && passed <= next.number;
    }
    static std::size_t index_of(std::string_view folder) noexcept
    {
        return std::hash<std::string_view>()(folder) % size;
    }

    std::vector<entry> table_;
};

} // namespace colock::zookeeper::detail
