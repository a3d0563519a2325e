// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/listening_plan.hpp"

#include <utility>

namespace colock::inline v0::remote {

namespace {

/// Limits the number of new connections if a host name resolves to different servers in turn.
constexpr unsigned max_wrong_servers = 4;

} // namespace

listening_plan::action listening_plan::resume(event input, view current)
{
    using kind = action::kind;
    switch (input) {
    case event::needed:
        return on_needed(current);
    case event::connected_here:
        return on_connected(kind::listen);
    case event::connected_elsewhere:
        if (wrong_server_count_++ < max_wrong_servers)
            return {kind::close};
        return on_connected(kind::listen_elsewhere);
    case event::confirmed:
        delays_.reset();
        return ready() ? action{kind::listen} : action{};
    case event::refused:
    case event::denied:
        // The connection is closed in both cases, because the refusal may have answered another subscription.
        if (phase_ != phase::opening && phase_ != phase::ready)
            return {};
        phase_ = phase::closing;
        polls_ = input == event::denied;
        return {kind::close};
    case event::closed:
        return on_closed(current);
    case event::due:
        if (phase_ == phase::waiting)
            phase_ = phase::closed;
        return on_needed(current);
    case event::timer:
        return on_timer(current);
    case event::requests_here:
    case event::requests_elsewhere:
        return on_requests_moved(input);
    }
    return {};
}

listening_plan::action listening_plan::on_needed(view current)
{
    using kind = action::kind;
    if (polls_ || !current.needed || phase_ == phase::waiting)
        return {};
    if (phase_ != phase::closed)
        return ready() ? action{kind::listen} : action{};
    if (current.requests == connection_plan::phase::idle)
        return {kind::connect_requests};
    if (current.requests != connection_plan::phase::open)
        return {};
    phase_ = phase::opening;
    return {kind::connect};
}

listening_plan::action listening_plan::on_connected(action::kind step) noexcept
{
    phase_ = phase::ready;
    return {step};
}

listening_plan::action listening_plan::on_closed(view current)
{
    phase_ = phase::closed;
    if (polls_ || !current.needed)
        return {};
    phase_ = phase::waiting;
    return {action::kind::wait, delays_.next()};
}

listening_plan::action listening_plan::on_timer(view current) noexcept
{
    if (current.needed || phase_ == phase::closed)
        return {};
    if (phase_ != phase::waiting)
        return {action::kind::close};
    phase_ = phase::closed;
    return {action::kind::stop_waiting};
}

listening_plan::action listening_plan::on_requests_moved(event input) noexcept
{
    wrong_server_count_ = 0;
    if (std::exchange(polls_, false))
        return {action::kind::subscribe_again};
    return ready() && input == event::requests_elsewhere ? action{action::kind::close} : action{};
}

} // namespace colock::inline v0::remote
