// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/connection_factory.hpp"
#include "redis/connection/connection_setup.hpp"
#include "redis/connection/sentinel_search.hpp"
#include "remote/requests/connection_loop.hpp"
#include "remote/requests/lost_requests.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace colock::inline v0::redis::detail {

/// The connection for commands: finds the server, connects, and sets the connection up.
///
/// Thread safety: none; belongs to the strand.
class session final : public remote::connection_loop
{
public:
    session(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        connection_factory& factory, remote::event_reporter& reporter, fence_anchor& anchor,
        std::atomic<bool>& replicas_seen);

    /// Current connection, or null.
    [[nodiscard]] const std::shared_ptr<server_connection>& connection() const noexcept { return connection_; }
    /// Server of the current connection, or of the last one.
    [[nodiscard]] const endpoint& where() const noexcept { return where_; }
    /// Identifies the server process (`run_id` in INFO). Empty if unknown.
    [[nodiscard]] const std::string& process() const noexcept { return identity_.process; }

    /// Reason why the server permits no shared locks and no locks of groups, or null.
    [[nodiscard]] const failure_ptr& sorted_sets_refused() const noexcept { return sorted_sets_refused_; }

    /// Notes that a connection has ended with unanswered requests. They may still arrive until the connection is known
    /// to be dead.
    void lose_requests(remote::connection_number on) { lost_.add(on, identity_); }
    /// Requests of earlier connections that may still arrive at the server.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept { return lost_; }

    void give_up() override;

private:
    void connect() override;
    void disconnect() override;
    [[nodiscard]] std::string address() const override;
    void connect_to(const endpoint& where);
    /// The Sentinels name this address.
    void on_named(const endpoint& master);
    void on_set_up(const failure_ptr& refused, const connection_setup::identity& identity);
    /// Uses the connection, which was set up.
    void accept(const connection_setup::identity& identity);
    void connection_ended(const error_code& code);
    /// Tries the next address that the Sentinels have named. Returns false if the address is not from Sentinels, or if
    /// the server has accepted the connection.
    bool try_next_address(const failure_ptr& why);
    void drop_connection();

    const settings& config_;
    connection_factory& factory_;
    fence_anchor& anchor_;
    std::atomic<bool>& replicas_seen_;
    std::shared_ptr<sentinel_search> search_;
    std::shared_ptr<connection_setup> setup_;
    std::shared_ptr<server_connection> connection_;
    endpoint where_;
    connection_setup::identity identity_;
    /// Identity of the server that has accepted the current connection, until the Sentinels have confirmed that it is
    /// the master.
    std::optional<connection_setup::identity> unconfirmed_;
    failure_ptr sorted_sets_refused_;
    remote::lost_requests lost_;
};

} // namespace colock::inline v0::redis::detail
