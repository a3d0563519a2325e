// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/master_candidates.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::redis::detail {

void master_candidates::add_address(std::size_t sentinel, endpoint address)
{
    sentinels_[sentinel] = {.address = std::move(address)};
}

void master_candidates::add_failure(std::size_t sentinel, failure_ptr failure)
{
    sentinels_[sentinel] = {.failure = std::move(failure)};
}

bool master_candidates::is_decided() const noexcept
{
    const auto is_named_by_most = [this](const sentinel_state& each) {
        return each.address &&
               static_cast<std::size_t>(std::ranges::count(sentinels_, each.address, &sentinel_state::address)) * 2 >
                   sentinels_.size();
    };
    return std::ranges::any_of(sentinels_, is_named_by_most) || is_complete();
}

bool master_candidates::is_complete() const noexcept
{
    return std::ranges::all_of(sentinels_, [](const auto& each) { return each.address || each.failure; });
}

std::optional<endpoint> master_candidates::take_next()
{
    std::optional<endpoint> best;
    std::ptrdiff_t best_count = 0;
    for (const auto& each : sentinels_) {
        if (!each.address || std::ranges::find(tried_, *each.address) != tried_.end())
            continue;
        const auto count = std::ranges::count(sentinels_, each.address, &sentinel_state::address);
        if (count > best_count) {
            best = each.address;
            best_count = count;
        }
    }
    if (!best)
        return best;
    // The server that has accepted was replaced. Without this, Sentinels that contradict each other could name two
    // servers in turn forever.
    if (confirmed_ && *confirmed_ != *best)
        tried_.push_back(*confirmed_);
    confirmed_.reset();
    tried_.push_back(*best);
    return best;
}

void master_candidates::begin_again(const endpoint& current)
{
    std::ranges::fill(sentinels_, sentinel_state());
    std::erase(tried_, current);
    confirmed_ = current;
}

std::vector<failure_ptr> master_candidates::failures() const
{
    std::vector<failure_ptr> result;
    for (const auto& each : sentinels_) {
        if (each.failure)
            result.push_back(each.failure);
    }
    return result;
}

} // namespace colock::inline v0::redis::detail
