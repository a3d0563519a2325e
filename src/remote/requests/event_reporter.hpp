// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/connection_events.hpp"

#include <colock/spi/contact.hpp>

#include <memory>
#include <string_view>
#include <utility>

namespace colock::inline v0::remote {

/// Reports the events of the connections to the adapter that has made the client.
///
/// Thread safety: none; belongs to the strand.
class event_reporter
{
public:
    explicit event_reporter(std::weak_ptr<contact> to) : to_(std::move(to)) {}

    /// \param loss the error of `lost`
    /// \param problem the failure of `failed`
    /// \param address the address of `failed` and `connecting`
    void report(connection_events::event event, const error_code& loss, const failure_ptr& problem,
        std::string_view address) const;
    /// The adapter reports each message only once.
    void warn(std::string_view message) const;

private:
    const std::weak_ptr<contact> to_;
};

} // namespace colock::inline v0::remote
