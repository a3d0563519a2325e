// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/slot.hpp"
#include "redis/url.hpp"
#include "remote/policy/deadlines.hpp"

#include <colock/redis/adapter.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::redis::detail {

/// Checked options, and the names of the keys that colock uses.
struct settings
{
    detail::location location;
    tls_options tls;
    std::string sentinel_user;
    std::string sentinel_password;
    std::function<void(completion<redis::credentials>)> credentials;
    redis::layout layout = redis::layout::standard;
    std::chrono::milliseconds operation_timeout{5000};
    std::chrono::milliseconds connect_timeout{2000};
    std::chrono::milliseconds idle_timeout{10'000};
    std::chrono::milliseconds health_interval{500};
    std::chrono::milliseconds poll_interval{250};
    std::size_t replicas = 0;
    std::chrono::milliseconds replica_timeout{100};
    std::optional<std::chrono::milliseconds> max_clock_lead;
    std::map<std::string, std::string> address_map;
    /// Whether the server is one of the masters of a quorum.
    bool is_quorum_node = false;
    /// Prefix of the key of every lock. The members below are the names, or the prefixes of the names, of colock's own
    /// keys. No lock can have such a key.
    std::string prefix;
    std::string probe_key;
    std::string group_prefix;

    /// \throws validation_error
    explicit settings(const options& options);
    /// Returns the address at which this program reaches a node whose address the cluster has reported.
    [[nodiscard]] endpoint reachable(endpoint reported) const;
    /// Returns the settings of the client of one node of the cluster.
    [[nodiscard]] settings for_node(endpoint node) const;

    [[nodiscard]] remote::deadlines deadlines() const noexcept { return remote::deadlines(operation_timeout); }
    /// Tells whether `key` is not available to users, because its name, or the key that it is stored under, may be one
    /// of colock's own. Only the plain layout has such keys: the standard layout stores locks under another prefix.
    [[nodiscard]] bool reserves(std::string_view key) const;
    /// Tells whether all keys are in one slot of a cluster.
    [[nodiscard]] bool has_hash_tag() const noexcept { return !hash_tag(prefix).empty(); }
    /// Tells whether the locks are on all masters of a cluster. False if the URL names one master of a cluster.
    [[nodiscard]] bool cluster() const noexcept { return location.cluster; }
    /// Returns the key of the counter of fences. In a cluster, each slot has a counter, which is in that slot.
    [[nodiscard]] std::string fence_key(std::optional<slot_number> slot) const;
    [[nodiscard]] bool plain() const noexcept { return layout == redis::layout::plain; }

private:
    /// If all keys are in one slot, the counter is that of a single server with this prefix.
    [[nodiscard]] bool has_counter_per_slot() const noexcept { return cluster() && !has_hash_tag(); }

    /// Name of the counter of fences, or the first part of the names.
    std::string fence_key_;
};

} // namespace colock::inline v0::redis::detail
