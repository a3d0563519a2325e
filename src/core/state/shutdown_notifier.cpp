// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/shutdown_notifier.hpp"

#include "core/state/core.hpp"

#include <mutex>
#include <new>

namespace colock::detail {

void shutdown_notifier::begin(what told)
{
    {
        const std::lock_guard guard(shard_.mutex);
        shard_.closed_to_new = true;
        ends_leases_ = ends_leases_ || told == what::waiters_and_leases;
        tells_ = true;
    }
    tell_in_parts();
}

void shutdown_notifier::tell_in_parts()
{
    for (bool more = true; more;) {
        deferred_actions actions;
        {
            const std::lock_guard guard(shard_.mutex);
            more = tell_part(actions);
        }
        actions.run(shard_);
        if (!more)
            return;
        try {
            const auto self = owner_.lock();
            // Without a context there is no loop to be held up.
            if (!self || !self->post_to_context([owner = owner_] {
                    if (const auto alive = owner.lock())
                        alive->notifier.tell_in_parts();
                }))
                continue;
            return;
        } catch (const std::bad_alloc&) {
            // Late is better than never: the next part follows without a pause.
            continue;
        }
    }
}

/// False if that was the last.
bool shutdown_notifier::tell_part(deferred_actions& actions)
{
    if (!tells_)
        return false;
    for (std::size_t n = 0; n < max_items_per_handler; ++n) {
        if (!shard_.suspended_until_closed.empty()) {
            actions.wakes.add(shard_.suspended_until_closed.front());
        } else if (!ends_leases_ || !leases_.shut_down_next(actions)) {
            tells_ = false;
            cleanup_.drained().notify(actions.wakes);
            return false;
        }
    }
    return true;
}

} // namespace colock::detail
