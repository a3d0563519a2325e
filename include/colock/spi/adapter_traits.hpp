// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/spi/capabilities.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>

namespace colock::inline v0 {

/// The limits of an adapter. Most adapters use the defaults.
struct adapter_limits
{
    /// Minimum ttl. A shorter ttl is rejected with `errc::invalid_ttl`, and no renewal uses a shorter one. Increase
    /// this value to the time resolution of the backend, or to several times its response time; at most 1 s.
    std::chrono::milliseconds min_ttl{100};
    /// Maximum ttl. A longer ttl is rejected too. Reduce this value to the maximum that the backend can store; at least
    /// one day.
    std::chrono::milliseconds max_ttl{std::chrono::hours(24 * 3650)};
    /// Maximum length of a key in bytes. A longer key is rejected with `errc::invalid_key`. Users expect 512 bytes on
    /// every backend. If the backend cannot store such a key, the adapter must encode it.
    std::size_t max_key = 512;
    /// An operation timeout that the adapter enforces with its own timer. If it is not longer than the operation
    /// timeout of the locker, the core starts no timer for releases, extensions and queries. 0: none, and the core
    /// starts a timer for each of them. Keep 0 unless every operation certainly ends within the time.
    std::chrono::milliseconds operation_timeout{0};
};

/// Name, capabilities and limits of an adapter.
struct adapter_traits
{
    /// The name of the backend for messages: "memory", "redis", ... Must stay valid as long as the adapter.
    std::string_view name{};
    /// Features that the backend supports.
    colock::capabilities capabilities{};
    /// The limits of the backend.
    adapter_limits limits{};
};

} // namespace colock::inline v0
