// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/tls.hpp"
#include "redis/connection/validated_stream.hpp"
#include "redis/pipeline/reply.hpp"
#include "redis/settings.hpp"
#include "remote/policy/liveness.hpp"

#include <colock/error.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/redis/connection.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace colock::redis::detail {

/// One connection, used once: made, run until it ends, and destroyed, which closes its socket.
///
/// Thread safety: none; belongs to the strand that it was made with. Its operations keep it alive.
class server_connection : public std::enable_shared_from_this<server_connection>
{
public:
    using run_handler = asio::any_completion_handler<void(error_code)>;
    using exec_handler = asio::any_completion_handler<void(error_code, std::size_t)>;

    server_connection(const asio::any_io_executor& strand, const settings& config, endpoint where, bool tls,
        asio::ssl::context context, std::uint64_t number);

    /// Which of our connections this is; never used twice.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] const endpoint& where() const noexcept { return where_; }

    /// Connects, and works until the connection is lost, closed, or silent for two health intervals.
    void run(run_handler ended);
    /// What `code`, with which run or a request has ended, says of a connection that we have not closed: `timed_out` of
    /// a silent server, `connection_reset` of one that has closed it.
    [[nodiscard]] error_code loss(const error_code& code) const noexcept;
    /// Why the server's certificate was refused, in words; empty: it was not.
    [[nodiscard]] std::string certificate_problem();
    /// The request and the adapter have to live until the handler is called. The adapter counts what it reads.
    void exec(const boost::redis::request& request, boost::redis::any_adapter adapter, exec_handler done);
    /// Ends when messages have arrived; they are in `messages()`.
    void receive(run_handler done);
    /// The channels on which messages arrived; the caller empties it.
    [[nodiscard]] std::vector<std::string>& messages() noexcept { return sink_.messages; }
    /// Ends run, receive, and all requests.
    void close() noexcept;
    /// The same in the child of a fork, where the connection is the parent's: nothing more is read from it, or written.
    void disown() noexcept;
    /// Counts everything that is read: signs of life.
    [[nodiscard]] std::uint64_t& heard() noexcept { return sink_.heard; }
    /// Once connected: small requests must not wait for each other's acknowledgement.
    void send_at_once() noexcept;

    struct message_sink
    {
        reply current{};
        std::vector<std::string> messages{};
        std::uint64_t heard = 0;
    };

private:
    void watch();
    void check_life();
    void ask_for_life();

    const std::uint64_t number_;
    const endpoint where_;
    /// What the server's certificate has to be for.
    const std::string server_name_;
    boost::redis::config config_;
    /// Half a health interval.
    const std::chrono::steady_clock::duration watch_interval_;
    remote::liveness life_;
    asio::steady_timer watcher_;
    bool given_up_ = false;
    bool ended_ = false;
    boost::redis::request ping_;
    message_sink sink_;
    driver_connection connection_;
};

} // namespace colock::redis::detail
