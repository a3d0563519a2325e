// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/scripts/scripts.hpp"
#include "redis/slot.hpp"

#include <colock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Lowest acceptable fence. The counter is kept above the server's clock in microseconds, so a lower fence means that
/// the server has lost its data.
inline constexpr std::int64_t min_fence = 1'600'000'000'000'000;
/// A counter above this limit was not written by colock and might soon overflow.
inline constexpr std::int64_t max_fence = std::int64_t{1} << 62;

/// Keeps the server's fence counter above the server's clock. The counter is raised on each new connection, and once
/// per interval by an operation that takes a fence. In a cluster, the counter of a slot is raised by the first
/// operation that takes a fence of this slot on a new connection.
///
/// Thread safety: none; belongs to the client's strand.
class fence_anchor
{
public:
    /// Returns true if the caller has to raise the counter, once per interval, or once per slot and connection.
    [[nodiscard]] bool is_due(std::optional<slot_number> slot, lease_clock::time_point now)
    {
        if (slot) {
            if (raised_slots_.empty())
                raised_slots_.resize(slot_count);
            const bool was_raised = raised_slots_[*slot];
            raised_slots_[*slot] = true;
            return !was_raised;
        }
        if (now - raised_at_ < interval)
            return false;
        raised_at_ = now;
        return true;
    }
    /// Must be called when the server has become the owner of the slot. It may have lost its latest fences, although
    /// the connection is the same.
    void forget(slot_number slot) noexcept
    {
        if (!raised_slots_.empty())
            raised_slots_[slot] = false;
    }
    /// Must be called when a connection has been prepared. On a single server, this includes that the counter was
    /// raised.
    void on_connected(lease_clock::time_point now) noexcept
    {
        raised_at_ = now;
        raised_slots_.clear();
        is_known_ = false;
    }
    /// Must be called with each answer of the script on a connection to a node of a cluster.
    void note_answer(bool was_executed) noexcept { is_known_ = was_executed; }
    /// Returns the form in which a node of a cluster is sent the script. A single server is sent the whole script when
    /// the connection is prepared.
    [[nodiscard]] script::form form() const noexcept { return is_known_ ? script::form::digest : script::form::whole; }

    /// Adds the command that raises the counter to the server's clock, and takes `count` fences.
    void push(boost::redis::request& request, script::form form, const std::string& fence_key, std::size_t count) const
    {
        scripts::get().anchor.push(request, form, 1, fence_key, *highest_, count);
    }
    /// Tells whether a grant may use this fence. If so, the counter is kept above the fence from now on.
    [[nodiscard]] bool accept(std::int64_t fence) noexcept
    {
        // An operator has to lower a counter above `max_fence`. This client must not raise it to the old value again.
        if (fence > max_fence)
            *highest_ = 0;
        if (fence < min_fence || fence > max_fence)
            return false;
        *highest_ = std::max(*highest_, fence);
        return true;
    }
    /// Uses the same highest fence as `other`, the anchor of another node of the cluster.
    void share_highest(const fence_anchor& other) noexcept { highest_ = other.highest_; }

private:
    static constexpr lease_clock::duration interval = std::chrono::seconds(1);

    lease_clock::time_point raised_at_{};
    /// Whether the node has executed the script on this connection.
    bool is_known_ = false;
    /// Empty if no counter was raised on this connection.
    std::vector<bool> raised_slots_;
    std::shared_ptr<std::int64_t> highest_ = std::make_shared<std::int64_t>(0);
};

} // namespace colock::inline v0::redis::detail
