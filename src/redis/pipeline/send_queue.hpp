// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/batch.hpp"

#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace colock::inline v0::redis::detail {

using batch_ptr = std::unique_ptr<batch>;

/// Queue of operations that have not been sent, divided into batches. A large load is sent in several batches, so
/// that the server works on some of them while the client works on others.
///
/// Performs no I/O and reads no clock.
///
/// Thread safety: `add` may be called from any thread. All other functions are called on the client's strand, or from
/// the only thread that shuts the context down.
class send_queue
{
public:
    /// Maximum number of batches in flight. Further operations stay in the queue, where they are known to be unsent. A
    /// higher limit would not be faster.
    static constexpr std::size_t max_in_flight = 8;

    enum class add_result : unsigned char
    {
        /// The queue was empty, so no flush has been requested yet.
        first,
        queued,
        /// The queue is closed, and the operation was dropped.
        closed,
    };
    add_result add(operation_ptr which);
    /// Returns the next batch, or null if the queue is empty.
    /// \param in_flight number of operations that have been sent or are being completed
    [[nodiscard]] batch_ptr next(std::size_t in_flight);
    /// Keeps a used batch to reuse its memory.
    void recycle(batch_ptr used) noexcept;
    [[nodiscard]] bool empty() const noexcept;
    /// Number of operations that are sent in one batch at the current load.
    [[nodiscard]] std::size_t batch_size() const noexcept;

    /// Postpones all deadlines.
    void postpone(lease_clock::duration by) noexcept;
    enum class unwanted_policy : unsigned char
    {
        keep,
        remove,
    };
    /// Removes overdue operations. If `unwanted` is `remove`, also removes those for which `operation::is_unwanted` is
    /// true.
    ///
    /// Examines about `budget` operations and reduces `budget` by their number. If `budget` becomes 0, there may be
    /// more operations to examine. The next call continues after the last batch that was examined, unless
    /// `restart_overdue_check` was called.
    [[nodiscard]] std::vector<operation_ptr> take_overdue(
        lease_clock::time_point now, unwanted_policy unwanted, std::size_t& budget);
    void restart_overdue_check() noexcept { next_overdue_check_ = 0; }
    [[nodiscard]] std::deque<batch_ptr> take_all() noexcept;
    /// Closes the queue and removes all operations. Operations that are added later are dropped.
    [[nodiscard]] std::deque<batch_ptr> close() noexcept;

private:
    [[nodiscard]] batch_ptr take_spare();

    mutable colock::detail::light_mutex mutex_;
    std::deque<batch_ptr> batches_;
    std::size_t operation_count_ = 0;
    /// Recent load: number of operations in the queue or in flight, which decays slowly. Written on the strand only.
    std::size_t load_ = 0;
    std::vector<batch_ptr> spare_;
    bool closed_ = false;
    /// Index of the batch at which the next `take_overdue` continues. Used on the strand only.
    std::size_t next_overdue_check_ = 0;
};

/// Hints for `submit`: whether it has to request a flush, and how.
///
/// Thread safety: safe.
struct flush_hints
{
    /// True if no operation was queued or in flight after the last answer. Then the next operation is sent at once
    /// and does not wait for others.
    std::atomic<bool> is_idle{false};
    /// True if a flush is posted, which will send all operations that are queued before it runs.
    std::atomic<bool> is_due{false};
};

} // namespace colock::inline v0::redis::detail
