// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/core.hpp"
#include "core/state/deferred_actions.hpp"

#include <memory>
#include <mutex>
#include <new>

namespace colock::inline v0::detail {

/// Calls `batch(deferred_actions&)` under the mutex until it returns false. Each call but the first is made in a
/// handler of its own, so that many items do not block the event loop. The mutex must not be held.
/// \param owner keeps nothing alive; may be empty while the core is destroyed
template <class Batch>
void run_in_batches(shard& of, const std::weak_ptr<core>& owner, Batch batch)
{
    for (;;) {
        if (!of.update(batch))
            return;
        try {
            const auto self = owner.lock();
            // Without a context there is no event loop that could be blocked.
            if (self && self->post_to_context([owner, batch] {
                    if (const auto alive = owner.lock())
                        run_in_batches(*alive, owner, batch);
                }))
                return;
        } catch (const std::bad_alloc&) {
            // Without memory to post, the next batch follows at once.
            continue;
        }
    }
}

} // namespace colock::inline v0::detail
