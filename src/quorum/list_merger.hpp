// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace colock::quorum {

/// Merges what the nodes list: a lock is held if a majority tells of the same holder. Tokens differ from node to node
/// and are told by none, so that the same holder is one of the same description.
///
/// Thread safety: add may be called from any thread.
class list_merger
{
public:
    list_merger(std::size_t nodes, completion<list_outcome> done)
        : needed_(nodes / 2 + 1), missing_(nodes), done_(std::move(done))
    {
    }

    void add(list_outcome told);

private:
    struct entry
    {
        lock_status status{};
        std::size_t nodes = 0;
        /// The number of the answer that was counted last: a node has one vote, however often it tells of a holder.
        std::size_t counted_in = 0;
    };
    void note(lock_status&& each);

    std::mutex mutex_;
    const std::size_t needed_;
    std::size_t missing_;
    std::size_t answered_ = 0;
    failure_ptr why_;
    std::size_t told_ = 0;
    /// By description: lists may be long.
    std::unordered_map<std::string, entry> known_;
    completion<list_outcome> done_;
};

} // namespace colock::quorum
