// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/tls.hpp"
#include "redis/connection/health_check.hpp"
#include "redis/connection/validated_stream.hpp"
#include "redis/pipeline/batch.hpp"
#include "redis/reply.hpp"
#include "redis/settings.hpp"

#include <colock/error.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/redis/connection.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

/// One connection to a server. It is run once and then destroyed, which closes its socket.
///
/// Thread safety: none; belongs to the strand that it was created with. Pending operations keep the object alive.
class server_connection : public std::enable_shared_from_this<server_connection>
{
public:
    using run_handler = asio::any_completion_handler<void(error_code)>;
    using exec_handler = asio::any_completion_handler<void(error_code, std::size_t)>;

    server_connection(const asio::any_io_executor& strand, const settings& config, endpoint server, bool tls,
        asio::ssl::context context, std::uint64_t number);

    /// Number of this connection within the client. Numbers are never reused.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] const endpoint& server() const noexcept { return server_; }

    /// Connects and reads until the connection is lost, closed, not established within `connect_timeout`, or silent for
    /// two health intervals.
    void run(run_handler on_end);
    /// Called once the connection is prepared for requests, which ends the limit of `connect_timeout`.
    void note_established() { health_check_.note_established(shared_from_this()); }
    /// Translates `error`, the result of `run` or of a request, for a connection that was not closed by `close`.
    /// Returns `timed_out` if the server was silent and `connection_reset` if the server has closed the connection.
    [[nodiscard]] error_code translate_error(const error_code& error) noexcept;
    /// Returns the failure of a connection that `error` has ended because the server's certificate is not trusted. Null
    /// if the connection has ended for another reason.
    [[nodiscard]] failure_ptr certificate_failure(const error_code& error);
    /// Sends the request of a batch. The batch has to live until the handler is called.
    void exec(batch& batch, exec_handler done);
    /// Sends commands of the client itself. `done` is called with their replies. It is not called if the connection
    /// ends before all of them have arrived.
    void exec(boost::redis::request commands, std::function<void(const reply_list&)> done);
    /// The error by which the server has answered the first of such commands, if it has not answered all of them. A
    /// server that has too many clients sends one error and closes the connection. Otherwise empty.
    [[nodiscard]] const reply& last_error() const noexcept { return last_error_; }
    /// Completes when something has arrived that is no reply to a request. `received` returns it.
    void receive(run_handler done);
    struct pushes
    {
        /// Channels on which messages have arrived.
        std::vector<std::string> messages{};
        /// Texts of the messages that have one; those of releases have none.
        std::vector<std::string> texts{};
        /// Sharded channels, and whether the server has confirmed their subscription, or ended it.
        std::vector<std::pair<std::string, bool>> changes{};
        /// Replies that the driver does not assign to a request, see `shard_request`.
        reply_list other_replies{};
    };
    /// Returns what has arrived. The caller clears the lists.
    [[nodiscard]] pushes& received() noexcept { return sink_; }
    /// Ends `run`, `receive` and all requests.
    void close() noexcept;
    /// Disables Nagle's algorithm on a connected TCP socket, so that small requests are sent without delay.
    void disable_nagle() noexcept;

    struct message_sink : pushes
    {
        reply current{};
        /// Whether to keep what else than messages has arrived.
        bool in_cluster = false;
        /// Counts all received nodes. A change of the counter is a sign of life.
        std::uint64_t received_nodes = 0;
    };

private:
    /// Whether the TLS handshake has begun and not ended.
    [[nodiscard]] bool is_in_handshake() noexcept;
    [[nodiscard]] SSL* ssl_handle() noexcept;

    const std::uint64_t number_;
    const endpoint server_;
    /// Host name that the server's certificate has to match.
    const std::string server_name_;
    boost::redis::config config_;
    message_sink sink_;
    reply last_error_;
    health_check health_check_;
    driver_connection connection_;
};

} // namespace colock::inline v0::redis::detail
