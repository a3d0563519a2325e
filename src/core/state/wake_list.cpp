// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/wake_list.hpp"

#include "core/state/core.hpp"

namespace colock::inline v0::detail {

void wake_list::add(suspended_handler& next) noexcept
{
    // A closed gate means that all handlers of the context have been resumed before.
    if (const auto& gate = next.owner_.gate(); !gate_ && gate && gate->enter())
        gate_ = gate;
    next.is_woken_by_cancellation = next.is_cancelled;
    woken_.push_back(*next.remove().detach());
}

} // namespace colock::inline v0::detail
