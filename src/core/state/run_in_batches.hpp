// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/core.hpp"
#include "core/state/deferred_actions.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>

namespace colock::inline v0::detail {

/// Maximum number of items processed per handler, so that a large backlog does not block the event loop.
inline constexpr std::size_t max_items_per_handler = 256;

/// Calls `batch(deferred_actions&)` under the mutex until it returns false. Each call but the first is made in a
/// handler of its own, so that many items do not block the event loop. The mutex must not be held.
template <class Batch>
void run_in_batches(core& self, Batch batch)
{
    while (self.update(batch)) {
        try {
            const auto weak = self.weak_from_this();
            // While the core is destroyed, or without a context, there is no event loop that could be blocked.
            if (!weak.expired() && self.post_to_context([weak, batch] {
                    if (const auto alive = weak.lock())
                        run_in_batches(*alive, batch);
                }))
                return;
        } catch (const std::bad_alloc&) {
            // Without memory to post, the next batch follows at once.
            continue;
        }
    }
}

} // namespace colock::inline v0::detail
