// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/server_connection.hpp"
#include "redis/operations/fence_anchor.hpp"
#include "redis/settings.hpp"
#include "remote/requests/event_reporter.hpp"
#include "remote/requests/lost_requests.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace colock::redis::detail {

/// What has to be said on a new connection before requests may be sent: greets the server, has it close what earlier
/// connections of ours have left, asks what the user may do, and lifts the counter of fences.
///
/// Thread safety: none; belongs to the strand. Its operations keep it alive.
class connection_setup : public std::enable_shared_from_this<connection_setup>
{
public:
    using identity = remote::lost_requests::identity;
    /// Why requests cannot be sent, null if they can; and what the server knows the connection by. Not called if the
    /// connection ends before.
    using handler = std::function<void(const failure_ptr& refused, const identity& known_by)>;
    struct surroundings
    {
        const settings& config;
        remote::lost_requests& lost;
        fence_anchor& anchor;
        remote::event_reporter& told;
        /// Set once the server may have replicas.
        std::atomic<bool>& replicas_seen;
    };

    connection_setup(std::shared_ptr<server_connection> on, surroundings around, handler ended);

    /// Once.
    void start();
    /// Ends it without a word.
    void stop() noexcept { ended_ = nullptr; }

private:
    using suspects = std::vector<remote::lost_requests::suspect>;

    void greeted(const reply_list& replies);
    void settle_previous();
    void settled_previous(const reply_list& replies, const suspects& killed);
    void end(const failure_ptr& refused);

    const std::shared_ptr<server_connection> link_;
    const surroundings around_;
    handler ended_;
    identity identity_;
};

} // namespace colock::redis::detail
