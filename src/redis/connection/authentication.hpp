// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/server_connection.hpp"
#include "redis/settings.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/event_reporter.hpp"

#include <colock/redis/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace colock::inline v0::redis::detail {

/// The user and the password of one connection: those of the options, or those that `options::credentials` gives. The
/// latter are renewed on the open connection before they expire.
///
/// Thread safety: none; belongs to the strand.
class authentication
{
public:
    using handler = std::function<void(const failure_ptr&)>;

    /// \param owner must outlive this object, like the other references
    authentication(const asio::any_io_executor& strand, remote::client_base& owner, const settings& config,
        remote::event_reporter& reporter);

    /// Whether a program gives the credentials. Otherwise they are always available.
    [[nodiscard]] bool is_requested() const noexcept { return static_cast<bool>(config_.credentials); }
    /// Asks for the credentials of a new connection. Requires `is_requested()`. `done` is called with the reason if
    /// there are none; not inside this call.
    void request(handler done);
    [[nodiscard]] bool is_waiting() const noexcept { return static_cast<bool>(done_); }
    [[nodiscard]] const std::string& user() const noexcept { return user_; }
    [[nodiscard]] const std::string& password() const noexcept { return password_; }

    /// Renews the credentials on the connection, which has been authenticated by the current ones, until `stop`.
    void keep_valid(std::shared_ptr<server_connection> connection);
    /// Ends the request and the renewals. No handler is called any more. The credentials remain.
    void stop();

private:
    void fail(std::uint64_t number, const std::string& reason);
    void on_result(std::uint64_t number, redis::credentials result);
    /// Called when the server has accepted the credentials that were given last.
    void on_accepted();
    void schedule_renewal();
    void renew();
    /// Sends the credentials that were given last.
    void send_new();
    void renewal_failed(const std::string& reason);

    remote::client_base& owner_;
    const settings& config_;
    remote::event_reporter& reporter_;
    std::string user_;
    std::string password_;
    /// `valid_until` of the credentials that were given last.
    std::chrono::system_clock::time_point given_until_ = std::chrono::system_clock::time_point::max();
    /// `valid_until` of the credentials that the server has accepted, and when they are renewed.
    std::chrono::system_clock::time_point valid_until_ = std::chrono::system_clock::time_point::max();
    std::chrono::system_clock::time_point renew_at_ = std::chrono::system_clock::time_point::max();
    /// Ends a request that is not answered, or starts a renewal.
    asio::steady_timer timer_;
    /// Called when the current request has ended.
    handler done_;
    /// Number of the current request or renewal. Handlers with another number do nothing.
    std::uint64_t number_ = 0;
    std::shared_ptr<server_connection> connection_;
};

} // namespace colock::inline v0::redis::detail
