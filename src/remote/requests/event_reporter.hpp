// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/connection_events.hpp"

#include <colock/spi/adapter.hpp>

#include <memory>
#include <string_view>
#include <utility>

namespace colock::inline v0::remote {

/// Receives the events of the connections. Called on the client's strand.
class client_events
{
public:
    virtual ~client_events() = default;
    virtual void on_connecting(std::string_view address) noexcept = 0;
    virtual void on_connecting_ended() noexcept = 0;
    virtual void on_ready() noexcept = 0;
    /// An attempt to connect has failed. `why` contains a description and a code.
    virtual void on_unreachable(const failure_ptr& why, std::string_view address) noexcept = 0;
    virtual void on_suspended(const error_code& why) noexcept = 0;
    virtual void on_reconnected() noexcept = 0;
    virtual void on_warning(std::string_view message) noexcept = 0;
};

/// Reports the events of the connections to the object that has made the client.
///
/// Thread safety: none; belongs to the strand.
class event_reporter
{
public:
    explicit event_reporter(std::weak_ptr<client_events> to) : to_(std::move(to)) {}

    /// \param loss the error of `suspended`
    /// \param problem the failure of `unreachable`
    /// \param address the address of `unreachable` and `connecting`
    void report(connection_events::event what, const error_code& loss, const failure_ptr& problem,
        std::string_view address) const;
    /// The adapter reports each message only once.
    void warn(std::string_view message) const;

private:
    const std::weak_ptr<client_events> to_;
};

} // namespace colock::inline v0::remote
