// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/event_reporter.hpp"

namespace colock::inline v0::remote {

void event_reporter::report(
    connection_events::event what, const error_code& loss, const failure_ptr& problem, std::string_view address) const
{
    using event = connection_events::event;
    const auto events = to_.lock();
    if (!events)
        return;
    switch (what) {
    case event::none:
        return;
    case event::connecting:
        events->on_connecting(address);
        return;
    case event::connecting_ended:
        events->on_connecting_ended();
        return;
    case event::ready:
        events->on_ready();
        return;
    case event::suspended:
        events->on_suspended(loss);
        return;
    case event::reconnected:
        events->on_reconnected();
        return;
    case event::unreachable:
        events->on_unreachable(problem, address);
        return;
    }
}

void event_reporter::warn(std::string_view message) const
{
    if (const auto events = to_.lock())
        events->on_warning(message);
}

} // namespace colock::inline v0::remote
