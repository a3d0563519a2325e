// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/unsent_operations.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace colock::inline v0::redis::detail {

void unsent_operations::add(std::deque<batch_ptr> operations, const failure_ptr& why)
{
    for (auto& each : operations)
        operations_.push_back({std::move(each), why});
}

void unsent_operations::add(remote::wait_sources::completions waits)
{
    std::ranges::move(waits, std::back_inserter(waits_));
}

bool unsent_operations::end_some()
{
    for (std::size_t budget = max_per_handler; budget > 0 && !operations_.empty();) {
        auto [operations, why] = std::move(operations_.front());
        operations_.pop_front();
        budget -= std::min(budget, operations->size());
        end(std::move(operations), why);
    }
    for (std::size_t budget = max_per_handler; budget > 0 && !waits_.empty(); --budget) {
        auto ended = std::move(waits_.front());
        waits_.pop_front();
        ended(wait_outcome{});
    }
    return !empty();
}

void unsent_operations::end(batch_ptr unsent, const failure_ptr& why)
{
    for (auto& owner : unsent->take_all()) {
        auto& target = *owner;
        target.end(std::move(owner), delivery::unsent, why);
    }
    send_queue_.recycle(std::move(unsent));
}

} // namespace colock::inline v0::redis::detail
