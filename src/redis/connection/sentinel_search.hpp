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

/// Asks all Sentinels at the same time for the address of the master. A Sentinel that has not answered after
/// `connect_timeout` is not awaited any more.
///
/// Thread safety: none; belongs to the strand. Pending operations keep the object alive.
class sentinel_search : public std::enable_shared_from_this<sentinel_search>
{
public:
    /// Called with the next address to try, or with the reason why there is none. After a call of `confirm`, also with
    /// the current address if the Sentinels still name it.
    using handler = std::function<void(const endpoint& master, const failure_ptr& failure)>;

    sentinel_search(connection_factory& factory, const settings& config, handler on_address);

    /// Starts the search and requests the first address. Called once.
    void start();
    /// Requests another address, because the last one has failed because of `failure`. The handler is called once,
    /// perhaps before this function returns, with an address that it was not called with before.
    void request_next(failure_ptr failure);
    /// Asks all Sentinels again, after the server at `current` has accepted a connection, and requests the address that
    /// they name now. Addresses that have failed, or were replaced, are not tried again.
    void confirm(const endpoint& current);
    /// Stops the search. The handler is not called again.
    void stop();

private:
    void query(std::size_t index);
    void close_connections();
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
    /// One connection for each Sentinel. Null once it has ended.
    std::vector<std::shared_ptr<server_connection>> connections_;
    master_candidates candidates_;
    /// True while the session needs an address.
    bool is_requested_ = true;
    /// Failures of the servers that were tried, in this order.
    std::vector<failure_ptr> server_failures_;
};

} // namespace colock::inline v0::redis::detail
