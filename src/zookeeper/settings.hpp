// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/deadlines.hpp"
#include "zookeeper/session/session.hpp"

#include <colock/zookeeper/adapter.hpp>

#include <chrono>
#include <string>

namespace colock::inline v0::zookeeper::detail {

/// Validated options.
struct settings
{
    session_settings session;
    zookeeper::layout layout = zookeeper::layout::standard;
    std::chrono::milliseconds operation_timeout{5000};
    std::chrono::milliseconds idle_timeout{10'000};

    /// \throws validation_error
    explicit settings(const options& given);

    [[nodiscard]] remote::deadlines deadlines() const noexcept { return remote::deadlines(operation_timeout); }
    [[nodiscard]] bool standard() const noexcept { return layout == zookeeper::layout::standard; }
    [[nodiscard]] const std::string& chroot() const noexcept { return session.where.chroot; }
    /// Returns the servers' addresses, for messages.
    [[nodiscard]] std::string address() const;
};

} // namespace colock::inline v0::zookeeper::detail
