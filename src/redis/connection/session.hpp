// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/authentication.hpp"
#include "redis/connection/connection_factory.hpp"
#include "redis/connection/sentinel_search.hpp"
#include "redis/connection/sentinel_watch.hpp"
#include "redis/reply.hpp"
#include "redis/scripts/fence_anchor.hpp"
#include "remote/requests/connection_loop.hpp"
#include "remote/requests/coroutine.hpp"
#include "remote/requests/lost_requests.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/redis/request.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace colock::inline v0::redis::detail {

/// The connection for commands. Each connection is handled by one run of the coroutine `run`, which connects, prepares
/// the connection, and reports its end. `disconnect` destroys the coroutine where it is suspended.
///
/// Thread safety: none; belongs to the strand.
class session final : public remote::connection_loop
{
public:
    session(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        connection_factory& factory, remote::event_reporter& reporter,
        std::shared_ptr<remote::connection_events> events, fence_anchor& anchor, std::atomic<bool>& replicas_seen);

    /// Current connection, or null.
    [[nodiscard]] const std::shared_ptr<server_connection>& connection() const noexcept { return connection_; }
    /// Server of the current connection, or of the last one.
    [[nodiscard]] const endpoint& server() const noexcept { return server_; }
    /// Identifies the server process (`run_id` in INFO). Empty if unknown.
    [[nodiscard]] const std::string& process() const noexcept { return identity_.process; }

    /// Reason why the server permits no shared locks and no locks of groups, or null.
    [[nodiscard]] const failure_ptr& sorted_sets_refused() const noexcept { return sorted_sets_refused_; }

    /// Returns whether the messages of this server use sharded channels. Until there was a connection, this is assumed
    /// of each node of a cluster.
    [[nodiscard]] bool has_sharded_channels() const noexcept { return has_sharded_channels_; }

    /// Records that a connection has ended with unanswered requests. They may still arrive until the connection is
    /// known to be dead.
    void record_lost_requests(remote::connection_number number) { lost_.add(number, identity_); }
    /// Requests of earlier connections that may still arrive at the server.
    [[nodiscard]] const remote::lost_requests& lost() const noexcept { return lost_; }

    void give_up() override;

private:
    void connect() override;
    void disconnect() override;
    /// Also listens to the Sentinels, until there is a connection.
    void disconnect_for_retry() override;
    [[nodiscard]] std::string address() const override;

    [[nodiscard]] remote::coroutine run();
    /// Stores the address that the Sentinels name in `server_`. Does not return if they name none, or if the connection
    /// ends before.
    /// \param start_query makes `search_` call its handler
    [[nodiscard]] remote::coroutine find_master(std::function<void()> start_query);
    /// Asks the program for the credentials, if it gives them. Does not return if it has none.
    [[nodiscard]] remote::coroutine get_credentials();
    /// Authenticates, and checks the server.
    /// \param failure is set to the reason why the server cannot be used, if it cannot
    [[nodiscard]] remote::coroutine greet(failure_ptr& failure);
    /// Kills earlier connections of this client, checks the user's rights, and raises the fence counter.
    /// \param failure is set to the reason why the server cannot be used, if it cannot
    [[nodiscard]] remote::coroutine prepare(failure_ptr& failure);
    [[nodiscard]] failure_ptr read_tls_files();
    void make_search();
    /// Tries to connect at once, because the Sentinels have announced another master.
    void on_switch(const endpoint& old_master);
    void start_watch() noexcept;
    void stop_watch();
    /// Destroys the coroutine, and drops what it uses.
    void end_run();
    void make_connection();
    void send(boost::redis::request commands);
    [[nodiscard]] failure_ptr end_failure();
    void drop_search();
    void drop_connection();

    /// Reports the failure of the attempt to connect. The coroutine does not continue: it is destroyed.
    [[nodiscard]] auto fail(failure_ptr failure)
    {
        return suspension_.suspend([this, failure = std::move(failure)] { fail_to_connect(failure); });
    }
    /// Sends commands. Afterwards either `end_error_` is set, or `replies_` contains the replies.
    [[nodiscard]] auto exec(boost::redis::request commands)
    {
        return suspension_.suspend([this, commands = std::move(commands)]() mutable { send(std::move(commands)); });
    }

    const settings& config_;
    connection_factory& factory_;
    fence_anchor& anchor_;
    std::atomic<bool>& replicas_seen_;
    authentication authentication_;
    std::shared_ptr<sentinel_search> search_;
    /// Exists after a failed attempt to connect and while the lost connection is replaced, if the URL names Sentinels.
    std::shared_ptr<sentinel_watch> watch_;
    /// Whether the last connection has ended by itself.
    bool was_lost_ = false;
    std::shared_ptr<server_connection> connection_;
    endpoint server_;
    remote::lost_requests::identity identity_;
    failure_ptr sorted_sets_refused_;
    bool has_sharded_channels_;
    remote::lost_requests lost_;

    // Set by a handler before it resumes the coroutine.
    reply_list replies_;
    /// Why the Sentinels name no server; null if they name `server_`.
    failure_ptr not_found_;
    /// Why the program has no credentials; null if it has.
    failure_ptr no_credentials_;
    /// The error with which the connection has ended.
    std::optional<error_code> end_error_;

    remote::suspension_point suspension_;
    remote::coroutine run_;
};

} // namespace colock::inline v0::redis::detail
