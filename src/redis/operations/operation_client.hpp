// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/batch.hpp"
#include "redis/scripts/fence_anchor.hpp"
#include "redis/scripts/scripts.hpp"
#include "redis/settings.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/lost_requests.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::redis::detail {

class client_operation;
class operation_client;

/// Chooses the master of a cluster that an operation is sent to.
class router
{
public:
    /// Queues the operation at the client of the master that owns the slot of the operation. An operation without a
    /// slot stays at its client. May be called from any thread.
    virtual void submit(operation_ptr operation) = 0;
    /// Queues the operation at the client of the node that its last reply names. Returns false if that reply is no
    /// redirection. After too many redirections, changes the reply to a temporary error and returns false. Belongs to
    /// the strand.
    [[nodiscard]] virtual bool follow_redirection(client_operation& operation) = 0;
    /// Publishes the message of that lock at the master that owns the slot of the key, if that master has sharded
    /// channels. Belongs to the strand.
    virtual void publish(std::string_view key) noexcept = 0;
    /// Called when an operation cannot be started, because there is no connection. Belongs to the strand.
    virtual void note_blocked() = 0;
    /// Returns the client of the server to which that connection belongs.
    [[nodiscard]] virtual std::shared_ptr<operation_client> client_of(remote::connection_number connection) = 0;

protected:
    ~router() = default;
};

/// The part of the client that its operations use.
///
/// Thread safety: `config`, `submit` and `enqueue` may be called from any thread; all other functions belong to the
/// strand.
class operation_client : public remote::client_base
{
public:
    /// Starts an operation as soon as possible, in a cluster at the client of the master that owns its slot.
    void submit(operation_ptr operation)
    {
        if (const auto routes = routes_.lock())
            routes->submit(std::move(operation));
        else
            enqueue(std::move(operation));
    }
    /// Starts an operation at this server as soon as possible.
    void enqueue(operation_ptr operation) { client_base::submit(std::move(operation)); }
    /// See `router`. Returns false if this server is not used as a node of a cluster.
    [[nodiscard]] bool follow_redirection(client_operation& operation)
    {
        const auto routes = routes_.lock();
        return routes && routes->follow_redirection(operation);
    }
    /// See `router`.
    void publish(std::string_view key) const noexcept
    {
        if (const auto routes = routes_.lock())
            routes->publish(key);
    }
    /// Returns the client of the server to which that connection belongs, if it is another one. Null otherwise.
    [[nodiscard]] std::shared_ptr<operation_client> other_client_of(remote::connection_number connection) const
    {
        const auto routes = routes_.lock();
        auto found = routes ? routes->client_of(connection) : nullptr;
        return found.get() == this ? nullptr : found;
    }
    [[nodiscard]] const detail::settings& config() const noexcept { return config_; }
    /// Sends the operation together with others that are started at the same time.
    virtual void add_to_batch(operation& operation) = 0;
    /// Requests of earlier connections that may still arrive at the server.
    [[nodiscard]] virtual const remote::lost_requests& lost() const noexcept = 0;
    /// Returns whether the messages of this server use sharded channels.
    [[nodiscard]] virtual bool has_sharded_channels() const noexcept = 0;
    /// The scripts that publish messages on the channels that this server has.
    [[nodiscard]] const detail::scripts& publishing_scripts() const { return scripts::get(has_sharded_channels()); }
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
    fence_anchor anchor_;
    /// Empty if this server is not used as a node of a cluster, and after the adapter was destroyed. Set before the
    /// first use.
    std::weak_ptr<router> routes_;
};

} // namespace colock::inline v0::redis::detail
