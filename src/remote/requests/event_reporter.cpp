// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/event_reporter.hpp"

namespace colock::remote {

void event_reporter::tell(
    connection_events::item what, const error_code& loss, const failure_ptr& problem, std::string_view address) const
{
    using item = connection_events::item;
    const auto events = to_.lock();
    if (!events)
        return;
    switch (what) {
    case item::none:
        return;
    case item::connecting:
        events->on_connecting(address);
        return;
    case item::connecting_ended:
        events->on_connecting_ended();
        return;
    case item::ready:
        events->on_ready();
        return;
    case item::suspended:
        events->on_suspended(loss);
        return;
    case item::reconnected:
        events->on_reconnected();
        return;
    case item::unreachable:
        events->on_unreachable(problem, address);
        return;
    }
}

void event_reporter::warn_once(std::string message)
{
    const auto [kept, fresh] = warned_.insert(std::move(message));
    if (!fresh)
        return;
    if (const auto events = to_.lock())
        events->on_warning(*kept);
}

} // namespace colock::remote
