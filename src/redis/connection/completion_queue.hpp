// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/batch.hpp"

#include <cstddef>
#include <deque>
#include <utility>

namespace colock::inline v0::redis::detail {

/// Queue of answered batches whose operations have not ended yet. They end batch by batch, and the event loop can
/// handle other events in between. Ending all of them at once would let replies to new requests arrive faster than they
/// are handled.
///
/// Small batches are completed together, so that their new requests form larger batches. `is_round_full` limits how
/// many operations end in one round, which is the work of one handler.
///
/// Thread safety: none; belongs to the strand.
class completion_queue
{
public:
    [[nodiscard]] bool empty() const noexcept { return batches_.empty(); }

    void add(batch_ptr batch) { batches_.push_back(std::move(batch)); }
    void begin_round() noexcept { taken_ = 0; }
    /// Returns the next batch. The queue must not be empty.
    [[nodiscard]] batch_ptr take()
    {
        auto batch = std::move(batches_.front());
        batches_.pop_front();
        taken_ += batch->size();
        return batch;
    }
    /// Number of operations that have been taken in this round.
    [[nodiscard]] std::size_t taken_count() const noexcept { return taken_; }
    /// True if no more batches may be taken in this round, because enough operations have ended.
    /// \param batch_size number of operations that are sent in one batch at the current load
    [[nodiscard]] bool is_round_full(std::size_t batch_size) const noexcept { return taken_ >= batch_size; }

private:
    std::deque<batch_ptr> batches_;
    std::size_t taken_ = 0;
};

} // namespace colock::inline v0::redis::detail
