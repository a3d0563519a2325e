// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace colock::inline v0::remote {

/// Finds an address of a host name that accepts connections. Tries the addresses in order, as RFC 8305 describes: each
/// attempt starts a short time after the previous one, or at once when an attempt has failed. Boost.Redis itself would
/// try them one after the other within a single time limit, so one address that does not respond would use up the whole
/// limit.
///
/// Thread safety: none; everything runs on `strand`. Pending operations keep the object alive.
class happy_eyeballs : public std::enable_shared_from_this<happy_eyeballs>
{
public:
    using endpoint = asio::ip::tcp::endpoint;
    /// Receives the index of the first address that accepted a connection, or 0 if there is none.
    using handler = asio::any_completion_handler<void(std::size_t)>;

    explicit happy_eyeballs(asio::any_io_executor strand);

    /// Starts the attempts. Must be called once. A single address is not tried, because there is nothing to choose. All
    /// connections are closed when the attempts end.
    void run(std::vector<endpoint> endpoints, handler on_end);
    /// Ends the attempts without a winner. If `run` has not been called yet, its attempts end as soon as `run` is
    /// called.
    void stop();

private:
    void start_next();
    void on_connected(std::size_t which, const boost::system::error_code& failed);
    void end(std::size_t winner);

    const asio::any_io_executor strand_;
    lease_timer next_start_;
    std::vector<endpoint> endpoints_;
    std::vector<asio::ip::tcp::socket> sockets_;
    std::size_t failure_count_ = 0;
    bool stopped_ = false;
    handler handler_;
};

} // namespace colock::inline v0::remote
