// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/client_base.hpp"
#include "zookeeper/session/session_manager.hpp"
#include "zookeeper/settings.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

/// The part of the client that its operations use.
///
/// Thread safety: `config` may be called from any thread; all other functions belong to the strand.
class operation_client : public remote::client_base
{
public:
    [[nodiscard]] const settings& config() const noexcept { return config_; }
    [[nodiscard]] virtual session_manager& sessions() noexcept = 0;
    [[nodiscard]] bool has_no_waiters() const noexcept { return sources().empty(); }

protected:
    operation_client(settings config, remote::request_queue::limits limits, remote::request_queue::callbacks callbacks)
        : client_base(config.deadlines(), limits, std::move(callbacks)), config_(std::move(config))
    {
    }

    const settings config_;
};

} // namespace colock::inline v0::zookeeper::detail
