// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/server_connection.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/redis/error.hpp>
#include <boost/redis/logger.hpp>

#include <openssl/ssl.h>

#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// The driver's adapter for received messages.
struct message_reader
{
    server_connection::message_sink* sink;

    void on_init() { sink->current = {}; }
    void on_node(const boost::redis::resp3::node_view& node, error_code&)
    {
        ++sink->received_nodes;
        sink->current.add(node);
    }
    void on_done()
    {
        auto& received = sink->current;
        if (!received.is(reply::kind::array)) {
            if (sink->in_cluster)
                sink->other_replies.push_back(std::move(received));
        } else if (received.items.size() > 1) {
            auto& channel = received.items[1].text;
            const auto& kind = received.items[0].text;
            if (kind == "message" || kind == "smessage") {
                sink->messages.push_back(std::move(channel));
                if (received.items.size() > 2 && !received.items[2].text.empty())
                    sink->texts.push_back(std::move(received.items[2].text));
            } else if (sink->in_cluster && (kind == "ssubscribe" || kind == "sunsubscribe")) {
                sink->changes.emplace_back(std::move(channel), kind == "ssubscribe");
            }
        }
        received = {};
    }
};

} // namespace

[[maybe_unused]] static message_reader boost_redis_adapt(server_connection::message_sink& sink)
{
    return {&sink};
}

namespace {

/// Returns the driver's adapter that passes the replies to a request to `reader`.
template <class Reader>
boost::redis::any_adapter make_adapter(Reader& reader, std::uint64_t& received_nodes)
{
    using event = boost::redis::any_adapter::parse_event;
    return boost::redis::any_adapter(boost::redis::any_adapter::impl_t(
        [&reader, &received_nodes](event kind, const boost::redis::resp3::node_view& node, error_code&) {
            ++received_nodes;
            if (kind == event::node)
                reader.on_node(node);
            else if (kind == event::done)
                reader.on_reply();
        }));
}

boost::redis::config make_config(const settings& config, const endpoint& server, bool tls)
{
    boost::redis::config result;
    result.use_ssl = tls;
    result.unix_socket = config.location.socket_path;
    result.addr = {server.host, server.port};
    result.resolve_timeout = config.connect_timeout;
    result.connect_timeout = config.connect_timeout;
    result.ssl_handshake_timeout = config.connect_timeout;
    // health_check checks the liveness, because the driver's timers also expire while the event loop is blocked.
    result.health_check_interval = std::chrono::steady_clock::duration::zero();
    // `async_run` must end with its connection, so that colock can tell a new connection from an old one.
    result.reconnect_wait_interval = std::chrono::seconds::zero();
    result.max_read_size = std::size_t{64} << 20;
    // colock sends HELLO itself, so that it can report why the server refuses.
    result.use_setup = true;
    result.setup.clear();
    return result;
}

} // namespace

server_connection::server_connection(const asio::any_io_executor& strand, const settings& config, endpoint server,
    bool tls, asio::ssl::context context, std::uint64_t number)
    : number_(number), server_(std::move(server)),
      server_name_(config.tls.server_name.empty() ? server_.host : config.tls.server_name),
      config_(make_config(config, server_, tls)), health_check_(strand, config, connection_, sink_.received_nodes),
      connection_(driver_connection::executor_type(strand), std::move(context),
          boost::redis::logger(boost::redis::logger::level::disabled))
{
    sink_.in_cluster = config.cluster();
    connection_.set_receive_response(sink_);
    if (!tls)
        return;
    remote::expect_host(ssl_handle(), server_name_);
}

void server_connection::run(run_handler on_end)
{
    connection_.async_run(
        config_, [self = shared_from_this(), on_end = std::move(on_end)](const error_code& error) mutable {
            self->health_check_.stop();
            std::move(on_end)(error);
        });
    health_check_.start(shared_from_this());
}

error_code server_connection::translate_error(const error_code& error) noexcept
{
    if (health_check_.is_silent()) {
        // The driver's limit for the handshake is the same as that of the health check. Either may come first.
        if (is_in_handshake())
            return boost::redis::error::ssl_handshake_timeout;
        return asio::error::timed_out;
    }
    // The driver cancels pending operations when it reaches the end of the stream.
    if (error == asio::error::operation_aborted || error == asio::error::eof)
        return asio::error::connection_reset;
    return error;
}

failure_ptr server_connection::certificate_failure(const error_code& error)
{
    if (error.category() != asio::error::get_ssl_category())
        return nullptr;
    const auto problem = remote::certificate_problem(ssl_handle(), server_name_);
    return make_failure(errc::misconfigured_backend,
        "no trusted TLS connection to " + to_text(server_) + ": " + (problem.empty() ? error.message() : problem),
        error);
}

bool server_connection::is_in_handshake() noexcept
{
    return config_.use_ssl && SSL_in_init(ssl_handle()) && !SSL_in_before(ssl_handle());
}

SSL* server_connection::ssl_handle() noexcept
{
#pragma GCC diagnostic push
// The driver gives no other access to OpenSSL.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return connection_.next_layer().native_handle();
#pragma GCC diagnostic pop
}

void server_connection::exec(batch& batch, exec_handler done)
{
    connection_.async_exec(batch.request(), make_adapter(batch, sink_.received_nodes), std::move(done));
}

void server_connection::exec(boost::redis::request commands, std::function<void(const reply_list&)> done)
{
    struct exchange
    {
        boost::redis::request commands;
        reply& last_error;
        reply_list replies{};
        std::size_t complete_replies = 0;

        void on_node(const boost::redis::resp3::node_view& node)
        {
            replies[complete_replies].add(node);
            if (replies.front().is_error())
                last_error = replies.front();
        }
        void on_reply() noexcept { ++complete_replies; }
    };
    const auto state = std::make_shared<exchange>(std::move(commands), last_error_);
    state->commands.get_config() = request_config;
    state->replies.resize(state->commands.get_expected_responses());
    connection_.async_exec(state->commands, make_adapter(*state, sink_.received_nodes),
        [self = shared_from_this(), state, done = std::move(done)](const error_code& error, std::size_t) {
            if (error)
                return;
            self->last_error_.clear();
            done(state->replies);
        });
}

void server_connection::receive(run_handler done)
{
    connection_.async_receive2(std::move(done));
}

void server_connection::close() noexcept
{
    connection_.cancel(boost::redis::operation::all);
}

void server_connection::disable_nagle() noexcept
{
    if (!config_.unix_socket.empty())
        return;
    error_code ignored;
#pragma GCC diagnostic push
// The driver does not set TCP_NODELAY, and gives no other access to the socket.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    connection_.next_layer().next_layer().set_option(asio::ip::tcp::no_delay(true), ignored);
#pragma GCC diagnostic pop
}

} // namespace colock::inline v0::redis::detail
