// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/client_base.hpp"
#include "remote/requests/request_queue.hpp"
#include "zookeeper/session/session_manager.hpp"
#include "zookeeper/settings.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

/// The part of the client that its operations use.
///
/// Thread safety: `config` and `submit` may be called from any thread; all other functions belong to the strand.
class operation_client : public remote::client_base
{
public:
    [[nodiscard]] const settings& config() const noexcept { return config_; }
    /// Starts an operation as soon as possible. The operation ends on the strand; it is dropped if the context is gone.
    void submit(remote::operation_ptr added) { queue_.submit(std::move(added)); }
    [[nodiscard]] remote::request_queue& queue() noexcept { return queue_; }
    [[nodiscard]] virtual session_manager& sessions() noexcept = 0;
    [[nodiscard]] bool has_no_waiters() const noexcept { return sources().empty(); }

protected:
    operation_client(settings checked, remote::request_queue::limits allowed, remote::request_queue::callbacks made)
        : config_(std::move(checked)), queue_(*this, config_.deadlines(), allowed, std::move(made))
    {
    }

    const settings config_;
    remote::request_queue queue_;
};

} // namespace colock::inline v0::zookeeper::detail
