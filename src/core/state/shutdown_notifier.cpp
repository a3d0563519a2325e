// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/shutdown_notifier.hpp"

#include "core/state/core.hpp"

#include <mutex>
#include <new>

namespace colock::inline v0::detail {

void shutdown_notifier::begin(scope notified)
{
    {
        const std::lock_guard guard(shard_.mutex);
        shard_.closed_to_new = true;
        ends_leases_ = ends_leases_ || notified == scope::waiters_and_leases;
        is_notifying_ = true;
    }
    notify_in_batches();
}

void shutdown_notifier::notify_in_batches()
{
    for (bool more = true; more;) {
        deferred_actions actions;
        {
            const std::lock_guard guard(shard_.mutex);
            more = notify_batch(actions);
        }
        actions.run(shard_);
        if (!more)
            return;
        try {
            const auto self = owner_.lock();
            // Without a context there is no event loop that could be blocked.
            if (!self || !self->post_to_context([owner = owner_] {
                    if (const auto alive = owner.lock())
                        alive->notifier.notify_in_batches();
                }))
                continue;
            return;
        } catch (const std::bad_alloc&) {
            // Without memory to post, the next batch follows at once.
            continue;
        }
    }
}

/// Returns false if this was the last batch.
bool shutdown_notifier::notify_batch(deferred_actions& actions)
{
    if (!is_notifying_)
        return false;
    for (std::size_t n = 0; n < max_items_per_handler; ++n) {
        if (!shard_.suspended_until_closed.empty()) {
            actions.wakes.add(shard_.suspended_until_closed.front());
        } else if (!ends_leases_ || !leases_.shut_down_next(actions)) {
            is_notifying_ = false;
            cleanup_.drained().notify(actions.wakes);
            return false;
        }
    }
    return true;
}

} // namespace colock::inline v0::detail
