// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/connection_events.hpp"

#include <utility>

namespace colock::remote {

connection_events::item connection_events::began() const noexcept
{
    return open_ > 0 ? item::none : item::connecting;
}

connection_events::item connection_events::opened() noexcept
{
    const bool has_others = open_++ > 0;
    const bool is_first = !std::exchange(was_ready_, true);
    if (std::exchange(is_lost_, false))
        return item::reconnected;
    if (is_first)
        return item::ready;
    return has_others ? item::none : item::connecting_ended;
}

connection_events::item connection_events::failed() noexcept
{
    if (open_ > 0)
        return item::none;
    is_lost_ = was_ready_;
    return item::unreachable;
}

connection_events::item connection_events::gave_up() const noexcept
{
    return open_ > 0 ? item::none : item::connecting_ended;
}

connection_events::item connection_events::lost() noexcept
{
    if (--open_ > 0)
        return item::none;
    is_lost_ = true;
    return item::suspended;
}

} // namespace colock::remote
