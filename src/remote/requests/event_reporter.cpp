// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/event_reporter.hpp"

namespace colock::inline v0::remote {

void event_reporter::report(
    connection_events::event what, const error_code& loss, const failure_ptr& problem, std::string_view address) const
{
    using event = connection_events::event;
    const auto to = to_.lock();
    if (!to)
        return;
    switch (what) {
    case event::none:
        return;
    case event::connecting:
        return to->set_connecting(address);
    case event::idle:
        return to->set_idle();
    case event::up:
        // The first request is sent after this call.
        return to->set_up(lease_clock::now());
    case event::lost:
        return to->set_down(loss);
    case event::failed:
        return to->set_down(problem, address);
    }
}

void event_reporter::warn(std::string_view message) const
{
    if (const auto to = to_.lock())
        to->warn(message);
}

} // namespace colock::inline v0::remote
