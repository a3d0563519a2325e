// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/url.hpp"
#include "remote/policy/deadlines.hpp"

#include <colock/mongo/adapter.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace colock::inline v0::mongo::detail {

/// Validated options.
struct settings
{
    /// Minimum time for which an unused document is kept. A client that asks within this time finds the last fence of
    /// the key. Later, the fences of the key may start again from the server's clock.
    static constexpr std::chrono::minutes min_purge_after{1};

    location target;
    tls_options tls;
    std::string database;
    std::string collection;
    std::chrono::milliseconds operation_timeout{5000};
    std::chrono::milliseconds connect_timeout{2000};
    std::chrono::milliseconds idle_timeout{10'000};
    std::chrono::milliseconds poll_interval{250};
    std::size_t connections = 8;
    std::chrono::milliseconds purge_after{};
    std::optional<std::chrono::milliseconds> max_clock_lead;

    /// \throws validation_error
    explicit settings(const options& options);

    [[nodiscard]] remote::deadlines deadlines() const noexcept { return remote::deadlines(operation_timeout); }
    /// Returns the addresses of all hosts, for messages.
    [[nodiscard]] std::string address() const;
};

} // namespace colock::inline v0::mongo::detail
