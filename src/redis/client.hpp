// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/operation_client.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Client of one server. Owns the connections and all requests that are sent on them.
///
/// Commands use one connection and are sent in batches. A second connection receives messages while there are waiters.
/// The client connects on first use, reconnects while a connection is needed, and closes connections that are not
/// needed.
///
/// Thread safety: `submit`, `watch` and the waits may be called from any thread. Other functions state their own
/// requirements.
class client final : public operation_client
{
public:
    [[nodiscard]] static std::shared_ptr<client> make(
        const asio::any_io_executor& executor, settings config, std::weak_ptr<contact> reports);
    /// Makes the client of another node of the cluster to which this client belongs. It uses the same strand, and
    /// reports to the same adapter.
    /// \param number distinguishes the nodes; above 0. Belongs to the strand.
    [[nodiscard]] std::shared_ptr<client> make_for_node(endpoint node, std::uint64_t number);
    client(settings config, std::uint64_t number);
    ~client() override;

    /// Implements the adapter's `max_clock_lead`. Replicas that have been seen once are counted forever, because a
    /// replica that is disconnected now may be promoted later.
    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept;

    /// Must be called before the first use, if this client belongs to a cluster.
    void join_cluster(std::weak_ptr<router> routes) { routes_ = std::move(routes); }
    [[nodiscard]] std::shared_ptr<client> shared() { return std::static_pointer_cast<client>(shared_from_this()); }
    /// The address of the server.
    [[nodiscard]] const endpoint& node() const noexcept { return config_.location.hosts.front(); }
    /// Returns whether requests can be sent now. Belongs to the strand.
    [[nodiscard]] bool is_connected() const noexcept;
    /// Returns whether operations or callers wait, and there is no connection. Belongs to the strand.
    [[nodiscard]] bool is_blocked() const noexcept;
    /// See `request_queue`. Belongs to the strand.
    [[nodiscard]] std::vector<remote::operation_ptr> take_waiting(
        const std::function<bool(const remote::operation&)>& is_taken)
    {
        return queue_.take_waiting(is_taken);
    }
    /// Lets the waiters of the keys for which `is_woken` returns true check their locks again. Belongs to the strand.
    void wake_waiters(const std::function<bool(std::string_view)>& is_woken);
    /// Notifies the observers that this server cannot be reached although others can, once until it can. Belongs to the
    /// strand.
    void report_unreachable();
    /// Must not be called after the context has shut down.
    [[nodiscard]] const asio::any_io_executor& strand() const noexcept { return runtime_if_open()->strand; }

    void add_to_batch(operation& operation) override;
    [[nodiscard]] const remote::lost_requests& lost() const noexcept override;
    [[nodiscard]] bool has_sharded_channels() const noexcept override;

private:
    struct parts;

    // The functions below run on the strand.
    [[nodiscard]] parts& active_parts() const noexcept;
    [[nodiscard]] usage current_usage() const noexcept override;
    [[nodiscard]] bool can_start();
    void sweep() override;
    /// Tells the cluster that there is no connection.
    void note_blocked();

    /// The number before that of the first connection to this server.
    const remote::connection_number before_first_;
    bool is_reported_ = false;
    std::atomic<bool> replicas_seen_;
};

} // namespace colock::inline v0::redis::detail
