// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace asio = boost::asio;

/// The seats, in blocks. The class represents a database without locks: it answers after a delay, and accepts every
/// write.
class hall
{
public:
    hall(std::size_t seats, std::size_t blocks)
    {
        for (std::size_t block = 0; block < blocks; ++block)
            blocks_.push_back({.buyers = std::vector<unsigned>(seats / blocks + (block < seats % blocks ? 1 : 0))});
    }

    asio::awaitable<std::optional<std::size_t>> find_free(std::size_t block)
    {
        co_await answer_time();
        const auto& buyers = blocks_[block].buyers;
        const auto free = std::find(buyers.begin(), buyers.end(), 0U);
        if (free == buyers.end())
            co_return std::nullopt;
        co_return static_cast<std::size_t>(free - buyers.begin());
    }

    asio::awaitable<void> sell(std::size_t block, std::size_t seat)
    {
        co_await answer_time();
        ++blocks_[block].buyers[seat];
        ++sales_;
    }

    /// Checks that each grant of a block's lock has a higher fence than the grant before.
    void note_fence(std::size_t block, std::uint64_t fence)
    {
        auto& last = blocks_[block].last_fence;
        if (last != 0 && fence <= last)
            ++stale_fences_;
        last = fence;
        highest_fence_ = std::max(highest_fence_, fence);
        lowest_fence_ = std::min(lowest_fence_, fence);
    }

    std::size_t blocks() const { return blocks_.size(); }
    std::size_t sales() const { return sales_; }
    std::size_t oversold() const
    {
        std::size_t count = 0;
        for (const block& each : blocks_)
            for (const unsigned buyers : each.buyers)
                count += buyers > 1 ? buyers - 1 : 0;
        return count;
    }
    std::uint64_t lowest_fence() const { return lowest_fence_; }
    std::uint64_t highest_fence() const { return highest_fence_; }
    std::size_t stale_fences() const { return stale_fences_; }

private:
    struct block
    {
        std::vector<unsigned> buyers;
        std::uint64_t last_fence = 0;
    };

    static asio::awaitable<void> answer_time()
    {
        asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
        co_await timer.async_wait(asio::deferred);
    }

    std::vector<block> blocks_;
    std::size_t sales_ = 0;
    std::uint64_t lowest_fence_ = UINT64_MAX;
    std::uint64_t highest_fence_ = 0;
    std::size_t stale_fences_ = 0;
};
