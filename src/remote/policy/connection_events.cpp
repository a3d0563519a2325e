// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/connection_events.hpp"

namespace colock::inline v0::remote {

connection_events::event connection_events::began() const noexcept
{
    return open_ > 0 ? event::none : event::connecting;
}

connection_events::event connection_events::opened() noexcept
{
    return open_++ > 0 ? event::none : event::up;
}

connection_events::event connection_events::failed() const noexcept
{
    return open_ > 0 ? event::none : event::failed;
}

connection_events::event connection_events::gave_up() const noexcept
{
    return open_ > 0 ? event::none : event::idle;
}

connection_events::event connection_events::lost() noexcept
{
    return --open_ > 0 ? event::none : event::lost;
}

connection_events::event connection_events::closed() noexcept
{
    --open_;
    return gave_up();
}

} // namespace colock::inline v0::remote
