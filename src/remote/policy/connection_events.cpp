// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/connection_events.hpp"

#include <utility>

namespace colock::inline v0::remote {

connection_events::event connection_events::began() const noexcept
{
    return open_ > 0 ? event::none : event::connecting;
}

connection_events::event connection_events::opened() noexcept
{
    const bool has_others = open_++ > 0;
    const bool is_first = !std::exchange(was_ready_, true);
    if (std::exchange(is_lost_, false))
        return event::reconnected;
    if (is_first)
        return event::ready;
    return has_others ? event::none : event::connecting_ended;
}

connection_events::event connection_events::failed() noexcept
{
    if (open_ > 0)
        return event::none;
    is_lost_ = was_ready_;
    return event::unreachable;
}

connection_events::event connection_events::gave_up() const noexcept
{
    return open_ > 0 ? event::none : event::connecting_ended;
}

connection_events::event connection_events::lost() noexcept
{
    if (--open_ > 0)
        return event::none;
    is_lost_ = true;
    return event::suspended;
}

} // namespace colock::inline v0::remote
