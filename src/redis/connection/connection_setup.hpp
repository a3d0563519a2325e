// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/server_connection.hpp"
#include "redis/scripts/fence_anchor.hpp"
#include "redis/settings.hpp"
#include "remote/requests/event_reporter.hpp"
#include "remote/requests/lost_requests.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Prepares a new connection for requests: authenticates, checks the server and the user's rights, kills earlier
/// connections of this client, and raises the fence counter.
///
/// Thread safety: none; belongs to the strand. Pending operations keep the object alive.
class connection_setup : public std::enable_shared_from_this<connection_setup>
{
public:
    using identity = remote::lost_requests::identity;
    /// Completion handler. `refused` says why requests cannot be sent, or is null if they can. `client` identifies
    /// the connection at the server. Not called if the connection ends before the setup does.
    using handler = std::function<void(const failure_ptr& refused, const identity& client)>;
    struct setup_context
    {
        const settings& config;
        remote::lost_requests& lost;
        fence_anchor& anchor;
        remote::event_reporter& reporter;
        /// Set to true if the server may have replicas.
        std::atomic<bool>& replicas_seen;
        /// Set to `rights::sorted_sets_refused`.
        failure_ptr& sorted_sets_refused;
    };

    connection_setup(std::shared_ptr<server_connection> on, setup_context context, handler on_end);

    /// Starts the setup. Called once.
    void start();
    /// Stops the setup without calling the handler.
    void stop() noexcept { handler_ = nullptr; }

private:
    using connections_to_close = std::vector<remote::lost_requests::connection_to_close>;

    void on_greeting(const reply_list& replies);
    void kill_previous();
    void on_previous_killed(const reply_list& replies, const connections_to_close& killed);
    void end(const failure_ptr& refused);

    const std::shared_ptr<server_connection> connection_;
    const setup_context context_;
    handler handler_;
    identity identity_;
};

} // namespace colock::inline v0::redis::detail
