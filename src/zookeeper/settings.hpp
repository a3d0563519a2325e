// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/deadlines.hpp"
#include "zookeeper/url.hpp"

#include <colock/zookeeper/adapter.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

struct session_settings
{
    location target{};
    /// Access rights of created nodes; empty: all rights for the user, or for everybody if there is no user.
    std::vector<access_right> access{};
    /// Requested timeout; the server decides.
    std::chrono::milliseconds session_timeout{15'000};
    /// The servers' tickTime. Default: 2 s, or half of the timeout that leases count on if that is less.
    std::optional<std::chrono::milliseconds> server_tick{};
    /// The smallest timeout that any server may grant. Default: the timeout that was granted.
    std::optional<std::chrono::milliseconds> smallest_timeout{};
    /// How long one server may take to accept a connection and the session.
    std::chrono::milliseconds connect_timeout{2000};
};

/// Validated options.
struct settings
{
    session_settings session;
    zookeeper::layout layout = zookeeper::layout::standard;
    std::chrono::milliseconds operation_timeout{5000};
    std::chrono::milliseconds idle_timeout{10'000};

    /// \throws validation_error
    explicit settings(const options& options);

    [[nodiscard]] remote::deadlines deadlines() const noexcept { return remote::deadlines(operation_timeout); }
    [[nodiscard]] bool standard() const noexcept { return layout == zookeeper::layout::standard; }
    [[nodiscard]] const std::string& chroot() const noexcept { return session.target.chroot; }
    /// Returns the servers' addresses, for messages.
    [[nodiscard]] std::string address() const;
};

} // namespace colock::inline v0::zookeeper::detail
