// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/shutdown_notifier.hpp"

#include "core/state/run_in_batches.hpp"

#include <mutex>

namespace colock::inline v0::detail {

void shutdown_notifier::begin(bool ends_leases)
{
    {
        const std::lock_guard guard(core_.mutex);
        core_.closed_to_new = true;
        ends_leases_ = ends_leases_ || ends_leases;
        is_notifying_ = true;
    }
    notify_remaining();
}

void shutdown_notifier::notify_remaining()
{
    run_in_batches(core_, [this](deferred_actions& actions) { return notify_batch(actions); });
}

void shutdown_notifier::notify_drained()
{
    core_.update([this](deferred_actions& actions) { drained_.notify(actions.wakes); });
}

/// Returns false if this was the last batch.
bool shutdown_notifier::notify_batch(deferred_actions& actions)
{
    if (!is_notifying_)
        return false;
    for (std::size_t n = 0; n < max_items_per_handler; ++n) {
        if (!core_.suspended_until_closed.empty()) {
            actions.wakes.add(core_.suspended_until_closed.front());
        } else if (!ends_leases_ || !core_.leases.shut_down_next(actions)) {
            is_notifying_ = false;
            drained_.notify(actions.wakes);
            return false;
        }
    }
    return true;
}

} // namespace colock::inline v0::detail
