// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/send_queue.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::redis::detail {

namespace {

constexpr std::size_t largest_part = 128;
constexpr std::size_t most_spare = send_queue::most_in_flight;

/// How many of the operations under way travel together. Each part costs both sides a wake-up and some system calls,
/// which shows in CPU time; too few parts leave both sides waiting for each other, which shows in the rate. Measured
/// (docs/benchmarks.md): a small load goes fastest in many parts, and the larger it is, the less they gain.
constexpr std::size_t part_of(std::size_t load)
{
    constexpr std::size_t worthwhile = 32;
    const auto split = [load](std::size_t parts) { return (load + parts - 1) / parts; };
    if (load < 6)
        return 2;
    if (load <= 24)
        return split(8);
    if (load <= 56)
        return split(4);
    return std::clamp(split(4), std::min(split(2), worthwhile), largest_part);
}

} // namespace

batch_ptr send_queue::fresh()
{
    if (spare_.empty())
        return std::make_unique<batch>();
    auto reused = std::move(spare_.back());
    spare_.pop_back();
    return reused;
}

send_queue::added send_queue::add(operation_ptr which)
{
    const std::lock_guard guard(mutex_);
    if (closed_)
        return added::never;
    const bool first = parts_.empty();
    // A burst is more than the load has been, and goes in parts that grow with it.
    if (first || parts_.back()->size() >= std::clamp(operations_ / 2, part_of(load_), largest_part))
        parts_.push_back(fresh());
    parts_.back()->add(std::move(which));
    ++operations_;
    return first ? added::first : added::behind_others;
}

batch_ptr send_queue::next(std::size_t under_way)
{
    const std::lock_guard guard(mutex_);
    if (parts_.empty())
        return nullptr;
    auto taken = std::move(parts_.front());
    parts_.pop_front();
    load_ = std::max(operations_ + under_way, load_ - (load_ + 63) / 64);
    operations_ -= taken->size();
    return taken;
}

void send_queue::recycle(batch_ptr used) noexcept
{
    used->clear();
    const std::lock_guard guard(mutex_);
    if (spare_.size() < most_spare)
        spare_.push_back(std::move(used));
}

bool send_queue::empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return parts_.empty();
}

std::size_t send_queue::part() const noexcept
{
    return part_of(load_);
}

void send_queue::postpone(lease_clock::duration by) noexcept
{
    const std::lock_guard guard(mutex_);
    for (auto& each : parts_)
        each->postpone(by);
}

std::vector<operation_ptr> send_queue::take_overdue(lease_clock::time_point now, unwanted others, std::size_t& room)
{
    std::vector<operation_ptr> taken;
    const std::lock_guard guard(mutex_);
    while (room > 0 && looked_at_ < parts_.size()) {
        const auto place = parts_.begin() + static_cast<std::ptrdiff_t>(looked_at_);
        batch& each = **place;
        const bool passed_over = each.is_in_time(now) && others == unwanted::stay;
        room -= std::min(room, passed_over ? 1 : each.size());
        auto given_up = each.take_overdue(now);
        if (others == unwanted::go)
            std::ranges::move(each.take_unwanted(), std::back_inserter(given_up));
        if (!given_up.empty())
            each.close_gaps();
        std::ranges::move(given_up, std::back_inserter(taken));
        if (each.empty())
            parts_.erase(place);
        else
            ++looked_at_;
    }
    operations_ -= taken.size();
    return taken;
}

std::deque<batch_ptr> send_queue::take_all() noexcept
{
    const std::lock_guard guard(mutex_);
    operations_ = 0;
    return std::exchange(parts_, {});
}

std::deque<batch_ptr> send_queue::close() noexcept
{
    const std::lock_guard guard(mutex_);
    closed_ = true;
    operations_ = 0;
    return std::exchange(parts_, {});
}

} // namespace colock::redis::detail
