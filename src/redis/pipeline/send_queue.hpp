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

namespace colock::redis::detail {

using batch_ptr = std::unique_ptr<batch>;

/// What was not sent yet, in the parts in which it will travel: the load goes in several, so that the server works on
/// some while we do on others.
///
/// Does no I/O and reads no clock. Thread safety: `add` may be called from any thread; all else from the client's
/// strand, and from the one thread that ends the context or forks.
class send_queue
{
public:
    /// What waits here was certainly not sent, so more parts than that would help nobody.
    static constexpr std::size_t most_in_flight = 8;

    enum class added : unsigned char
    {
        /// Nothing else was queued: nobody has been asked to send it.
        first,
        behind_others,
        /// Dropped: it is closed.
        never,
    };
    added add(operation_ptr which);
    /// The next part; null if there is none.
    /// \param under_way operations that have been sent already
    [[nodiscard]] batch_ptr next(std::size_t under_way);
    /// Keeps its memory for another part.
    void recycle(batch_ptr used) noexcept;
    [[nodiscard]] bool empty() const noexcept;
    /// How many operations travel together by now.
    [[nodiscard]] std::size_t part() const noexcept;

    /// Moves every deadline.
    void postpone(lease_clock::duration by) noexcept;
    enum class unwanted : unsigned char
    {
        stay,
        go,
    };
    /// Takes out some of what is overdue, and of what nobody waits for unless that may stay.
    ///
    /// Looks at no more than about `room` operations, which is less by those afterwards: 0 if there may be more. The
    /// next look goes on behind them, unless `look_anew` was called.
    [[nodiscard]] std::vector<operation_ptr> take_overdue(
        lease_clock::time_point now, unwanted others, std::size_t& room);
    void look_anew() noexcept { looked_at_ = 0; }
    [[nodiscard]] std::deque<batch_ptr> take_all() noexcept;
    /// The same; and from now on nothing is taken in.
    [[nodiscard]] std::deque<batch_ptr> close() noexcept;

private:
    [[nodiscard]] batch_ptr fresh();

    mutable colock::detail::light_mutex mutex_;
    std::deque<batch_ptr> parts_;
    std::size_t operations_ = 0;
    /// How many operations were under way at a time of late. Written on the strand only.
    std::size_t load_ = 0;
    std::vector<batch_ptr> spare_;
    bool closed_ = false;
    /// Where the next look at what is overdue goes on. On the strand only.
    std::size_t looked_at_ = 0;
};

/// How whoever adds to an outbox has it flushed.
///
/// Thread safety: safe.
struct flush_hints
{
    /// The last answer found nothing else to do: the next operation need not wait for others to travel with.
    std::atomic<bool> one_at_a_time{false};
    /// A flush has been posted that will find whatever is queued before it begins.
    std::atomic<bool> is_due{false};
};

} // namespace colock::redis::detail
