// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <colock/observer.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

/// The cause of the failures below.
inline const error_code connection_refused = make_error_code(boost::system::errc::connection_refused);

/// Lets a request fail because the backend cannot be reached.
inline step fails()
{
    return step::fail(errc::unavailable, "nobody listens", connection_refused);
}

/// The failure of an attempt to connect.
inline failure_ptr no_connection()
{
    return make_failure(errc::unavailable, "no connection", connection_refused);
}

/// Delivers everything that the script holds back, and waits for the clean-up.
inline void finish_cleanup(virtual_fixture& env)
{
    if (env.script) {
        env.script->reset();
        while (env.script->deliver())
            env.ready();
    }
    env.wind_down_and_check();
}

using words = std::vector<std::string>;

/// Records events of the backend, waits and losses.
struct event_recorder : observer
{
    words events;

    void ready(std::string_view) noexcept override { events.emplace_back("ready"); }
    void reconnected(std::string_view) noexcept override { events.emplace_back("reconnected"); }
    void suspended(std::string_view, const error_code&) noexcept override { events.emplace_back("suspended"); }
    void unreachable(
        std::string_view, const error_code& why, std::string_view address, std::string_view detail) noexcept override
    {
        events.push_back(
            (why == connection_refused ? "refused by " : "no ") + std::string(address) + ": " + std::string(detail));
    }
    void waiting(std::string_view key) noexcept override { events.push_back("waiting for " + std::string(key)); }
    void lost(std::string_view, lost_reason reason, std::chrono::nanoseconds) noexcept override
    {
        events.push_back(std::string("lost: ") + to_string(reason));
    }
    [[nodiscard]] words take() { return std::exchange(events, {}); }
};

} // namespace colock::testing
