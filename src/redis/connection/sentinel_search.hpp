// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/connection_factory.hpp"
#include "redis/connection/master_candidates.hpp"
#include "redis/reply.hpp"
#include "redis/settings.hpp"

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Asks all Sentinels at the same time for the address of the master, and listens for the message by which they
/// announce another master. A Sentinel that has not answered after `connect_timeout` is not awaited any more.
///
/// Thread safety: none; belongs to the strand. Pending operations keep the object alive.
class sentinel_search : public std::enable_shared_from_this<sentinel_search>
{
public:
    /// Called with the next address to try, or with the reason why there is none. After a call of `confirm`, also with
    /// the current address if the Sentinels still name it.
    using handler = std::function<void(const endpoint& master, const failure_ptr& failure)>;

    /// \param on_switch called when a Sentinel has announced another master
    sentinel_search(
        connection_factory& factory, const settings& config, handler on_address, std::function<void()> on_switch);

    /// Starts a search and requests the first address. A search that is not complete ends.
    void start();
    /// Requests another address, because the last one has failed because of `failure`. The handler is called once,
    /// perhaps before this function returns, with an address that it was not called with before.
    void request_next(failure_ptr failure);
    /// Asks all Sentinels again, after the server at `current` has accepted a connection, and requests the address that
    /// they name now. Addresses that have failed, or were replaced, are not tried again.
    void confirm(const endpoint& current);
    /// Stops the search. No handler is called again.
    void stop();

private:
    void ask_all();
    void ask(std::size_t index);
    void connect(std::size_t index);
    void listen(const std::shared_ptr<server_connection>& connection);
    void disconnect(std::size_t index);
    void on_reply(std::size_t index, const reply_list& replies);
    void connection_ended(std::size_t index, const error_code& error);
    void deliver();
    [[nodiscard]] failure_ptr not_found() const;
    /// Returns the failure of the first server that refuses the connection, else of the first server, with the details
    /// of all servers.
    [[nodiscard]] failure_ptr join_server_failures() const;

    connection_factory& factory_;
    const settings& config_;
    handler handler_;
    std::function<void()> on_switch_;
    /// One connection for each Sentinel. Null if there is none.
    std::vector<std::shared_ptr<server_connection>> connections_;
    /// Number of times that all Sentinels were asked. Only replies of the last time count.
    unsigned round_ = 0;
    master_candidates candidates_;
    /// True while the session needs an address.
    bool is_requested_ = true;
    /// Failures of the servers that were tried, in this order.
    std::vector<failure_ptr> server_failures_;
};

} // namespace colock::inline v0::redis::detail
