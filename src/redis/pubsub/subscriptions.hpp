// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/authentication.hpp"
#include "redis/connection/connection_factory.hpp"
#include "redis/connection/session.hpp"
#include "redis/pubsub/shard_request.hpp"
#include "redis/reply.hpp"
#include "remote/requests/listening_loop.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::redis::detail {

/// The connection for messages, and the channels that are subscribed to on it.
///
/// Thread safety: none; belongs to the strand.
class subscriptions final : public remote::listening_loop
{
public:
    subscriptions(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        connection_factory& factory, remote::event_reporter& reporter, session& requests,
        remote::wait_sources& sources);

    void follow_requests() override;
    [[nodiscard]] bool connected() const noexcept override { return connection_ || authentication_.is_waiting(); }
    [[nodiscard]] std::optional<lease_clock::duration> longest_wait() const override;

private:
    using source_list = std::vector<remote::wait_sources::source_ptr>;

    void connect() override;
    void make_connection();
    void disconnect() override;
    void listen() override;
    void listen_elsewhere() override;
    void note_decision() override { sources_.set_polling(polls()); }
    void stop_listening(const std::vector<std::string>& names) override;
    [[nodiscard]] bool polls() const noexcept;
    void on_greeting(const reply_list& replies);
    void warn_of_refusal(const failure& failure);
    void connection_ended();
    /// True if messages come from another server than the one that receives the commands.
    [[nodiscard]] bool are_elsewhere() const;
    void subscribed(const source_list& requested, const reply& answer);
    /// Closes the connection after a refused subscription.
    void refused(const reply& answer);
    /// Like `listen`, with the sharded channels of a node of a cluster.
    void listen_to_shard();
    /// Handles replies to `shard_request_`, and the confirmations in front of them.
    void read_shard_replies(const reply_list& replies);
    void receive();

    const settings& config_;
    connection_factory& factory_;
    remote::event_reporter& reporter_;
    session& requests_;
    authentication authentication_;
    std::shared_ptr<server_connection> connection_;
    /// Identifies the server process of this connection. Empty if unknown.
    std::string process_;
    /// Number of unanswered requests.
    unsigned in_flight_ = 0;
    /// The last request for sharded channels, the channels that it subscribes to, and those that the next one cancels.
    shard_request shard_request_;
    std::vector<std::string> requested_channels_;
    std::vector<std::string> unneeded_channels_;
};

} // namespace colock::inline v0::redis::detail
