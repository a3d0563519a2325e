// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/send_queue.hpp"

#include <cstddef>
#include <deque>
#include <utility>

namespace colock::redis::detail {

/// What was answered, and is still to be told so: part by part, in turns, between which the event loop can do something
/// else. While a crowd is told, the answers to what it asks next arrive faster than they are told.
///
/// A part that is smaller than the load would have it is told with the next one, so that they grow together; but so
/// many of those may have gathered that only as much as travels together is told in one turn.
///
/// Thread safety: none; belongs to the strand.
class completion_queue
{
public:
    [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
    [[nodiscard]] std::size_t operations() const noexcept { return operations_; }

    void add(batch_ptr answered)
    {
        operations_ += answered->size();
        parts_.push_back(std::move(answered));
    }
    void begin_turn() noexcept { told_ = 0; }
    /// The next to be told. There has to be one.
    [[nodiscard]] batch_ptr take()
    {
        auto taken = std::move(parts_.front());
        parts_.pop_front();
        operations_ -= taken->size();
        told_ += taken->size();
        return taken;
    }
    /// How many operations have been taken in this turn.
    [[nodiscard]] std::size_t told() const noexcept { return told_; }
    /// These are as many as travel together: the next part is for another turn.
    [[nodiscard]] bool is_enough(std::size_t travel_together) const noexcept { return told_ >= travel_together; }
    [[nodiscard]] std::deque<batch_ptr> take_all() noexcept
    {
        operations_ = 0;
        return std::exchange(parts_, {});
    }

private:
    std::deque<batch_ptr> parts_;
    std::size_t operations_ = 0;
    std::size_t told_ = 0;
};

} // namespace colock::redis::detail
