// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/operation_client.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <chrono>
#include <memory>

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
    explicit client(settings config);
    ~client() override;

    /// Implements the adapter's `max_clock_lead`. Replicas that have been seen once are counted forever, because a
    /// replica that is disconnected now may be promoted later.
    [[nodiscard]] std::chrono::milliseconds max_clock_lead(std::chrono::milliseconds ttl) const noexcept;

    void add_to_batch(operation& operation) override;
    [[nodiscard]] const remote::lost_requests& lost() const noexcept override;

private:
    struct parts;

    // The functions below run on the strand.
    [[nodiscard]] parts& active_parts() const noexcept;
    [[nodiscard]] usage current_usage() const noexcept override;

    std::atomic<bool> replicas_seen_;
};

} // namespace colock::inline v0::redis::detail
