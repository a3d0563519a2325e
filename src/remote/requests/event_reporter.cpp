// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/event_reporter.hpp"

namespace colock::inline v0::remote {

void event_reporter::report(
    connection_events::event event, const error_code& loss, const failure_ptr& problem, std::string_view address) const
{
    using kind = connection_events::event;
    const auto to = to_.lock();
    if (!to)
        return;
    switch (event) {
    case kind::none:
        return;
    case kind::connecting:
        return to->set_connecting(address);
    case kind::idle:
        return to->set_idle();
    case kind::up:
        // The first request is sent after this call.
        return to->set_up(lease_clock::now());
    case kind::lost:
        return to->set_down(loss);
    case kind::failed:
        return to->set_down(problem, address);
    }
}

void event_reporter::warn(std::string_view message) const
{
    if (const auto to = to_.lock())
        to->warn(message);
}

} // namespace colock::inline v0::remote
