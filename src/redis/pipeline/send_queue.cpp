// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/send_queue.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

constexpr std::size_t max_batch_size = 128;
constexpr std::size_t max_spare = send_queue::max_in_flight;

/// Returns how many operations are sent in one batch at this load. Each batch costs both sides a wake-up and some
/// system calls, which increases the CPU time. Too few batches make both sides wait for each other, which lowers the
/// throughput. Measured (docs/benchmarks.md): many batches are fastest at a small load, and their advantage shrinks as
/// the load grows.
constexpr std::size_t batch_size_for(std::size_t load)
{
    constexpr std::size_t min_size_at_high_load = 32;
    const auto split = [load](std::size_t parts) { return (load + parts - 1) / parts; };
    if (load < 6)
        return 2;
    if (load <= 24)
        return split(8);
    if (load <= 56)
        return split(4);
    return std::clamp(split(4), std::min(split(2), min_size_at_high_load), max_batch_size);
}

} // namespace

batch_ptr send_queue::take_spare()
{
    if (spare_.empty())
        return std::make_unique<batch>();
    auto reused = std::move(spare_.back());
    spare_.pop_back();
    return reused;
}

send_queue::add_result send_queue::add(operation_ptr which)
{
    const std::lock_guard guard(mutex_);
    if (closed_)
        return add_result::closed;
    const bool first = batches_.empty();
    // A burst exceeds the recent load, so the batch size grows with the queue.
    if (first || batches_.back()->size() >= std::clamp(operation_count_ / 2, batch_size_for(load_), max_batch_size))
        batches_.push_back(take_spare());
    batches_.back()->add(std::move(which));
    ++operation_count_;
    return first ? add_result::first : add_result::queued;
}

batch_ptr send_queue::next(std::size_t in_flight)
{
    const std::lock_guard guard(mutex_);
    if (batches_.empty())
        return nullptr;
    auto taken = std::move(batches_.front());
    batches_.pop_front();
    load_ = std::max(operation_count_ + in_flight, load_ - (load_ + 63) / 64);
    operation_count_ -= taken->size();
    return taken;
}

void send_queue::recycle(batch_ptr used) noexcept
{
    used->clear();
    const std::lock_guard guard(mutex_);
    if (spare_.size() < max_spare)
        spare_.push_back(std::move(used));
}

bool send_queue::empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return batches_.empty();
}

std::size_t send_queue::batch_size() const noexcept
{
    return batch_size_for(load_);
}

void send_queue::postpone(lease_clock::duration by) noexcept
{
    const std::lock_guard guard(mutex_);
    for (auto& each : batches_)
        each->postpone(by);
}

std::vector<operation_ptr> send_queue::take_overdue(
    lease_clock::time_point now, unwanted_policy unwanted, std::size_t& budget)
{
    std::vector<operation_ptr> taken;
    const std::lock_guard guard(mutex_);
    while (budget > 0 && next_overdue_check_ < batches_.size()) {
        const auto place = batches_.begin() + static_cast<std::ptrdiff_t>(next_overdue_check_);
        batch& each = **place;
        const bool is_skipped = each.is_in_time(now) && unwanted == unwanted_policy::keep;
        budget -= std::min(budget, is_skipped ? 1 : each.size());
        auto removed = each.take_overdue(now);
        if (unwanted == unwanted_policy::remove)
            std::ranges::move(each.take_unwanted(), std::back_inserter(removed));
        if (!removed.empty())
            each.remove_empty_slots();
        std::ranges::move(removed, std::back_inserter(taken));
        if (each.empty())
            batches_.erase(place);
        else
            ++next_overdue_check_;
    }
    operation_count_ -= taken.size();
    return taken;
}

std::deque<batch_ptr> send_queue::take_all() noexcept
{
    const std::lock_guard guard(mutex_);
    operation_count_ = 0;
    return std::exchange(batches_, {});
}

std::deque<batch_ptr> send_queue::close() noexcept
{
    const std::lock_guard guard(mutex_);
    closed_ = true;
    operation_count_ = 0;
    return std::exchange(batches_, {});
}

} // namespace colock::inline v0::redis::detail
