// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/batch.hpp"
#include "redis/scripts/fence_anchor.hpp"
#include "redis/settings.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/lost_requests.hpp"

#include <string>
#include <utility>

namespace colock::inline v0::redis::detail {

/// The part of the client that its operations use.
///
/// Thread safety: `config` may be called from any thread; all other functions belong to the strand.
class operation_client : public remote::client_base
{
public:
    [[nodiscard]] const detail::settings& config() const noexcept { return config_; }
    /// Sends the operation together with others that are started at the same time.
    virtual void add_to_batch(operation& operation) = 0;
    /// Requests of earlier connections that may still arrive at the server.
    [[nodiscard]] virtual const remote::lost_requests& lost() const noexcept = 0;
    /// Counter of fences.
    [[nodiscard]] fence_anchor& anchor() noexcept { return anchor_; }
    [[nodiscard]] int listens(const std::string& channel) const { return sources().is_active(channel) ? 1 : 0; }

protected:
    operation_client(
        detail::settings config, remote::request_queue::limits limits, remote::request_queue::callbacks callbacks)
        : client_base(config.deadlines(), limits, std::move(callbacks)), config_(std::move(config))
    {
    }

    const detail::settings config_;
    fence_anchor anchor_{config_};
};

} // namespace colock::inline v0::redis::detail
