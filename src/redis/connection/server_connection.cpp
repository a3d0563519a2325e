// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/server_connection.hpp"

#include "redis/pipeline/batch.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/redis/logger.hpp>

#include <algorithm>
#include <utility>

namespace colock::redis::detail {

namespace {

/// Answers the driver's question how to read a message.
struct message_reader
{
    server_connection::message_sink* sink;

    void on_init() { sink->current = {}; }
    void on_node(const boost::redis::resp3::node_view& node, error_code&)
    {
        ++sink->heard;
        sink->current.add(node);
    }
    void on_done()
    {
        if (sink->current.at(0).text == "message" && sink->current.items.size() > 1)
            sink->messages.push_back(std::move(sink->current.items[1].text));
        sink->current = {};
    }
};

} // namespace

[[maybe_unused]] static message_reader boost_redis_adapt(server_connection::message_sink& sink)
{
    return {&sink};
}

namespace {

/// Of half health intervals.
constexpr unsigned silence_limit = 4;

boost::redis::config make_config(const settings& from, const endpoint& where, bool tls)
{
    boost::redis::config made;
    made.use_ssl = tls;
    made.unix_socket = from.where.socket_path;
    made.addr = {where.host, where.port};
    made.resolve_timeout = from.connect_timeout;
    made.connect_timeout = from.connect_timeout;
    made.ssl_handshake_timeout = from.connect_timeout;
    // We watch it ourselves: the driver's timers also expire while the event loop stands still.
    made.health_check_interval = std::chrono::steady_clock::duration::zero();
    // Run ends with its connection: that is how a new one is told from an old one.
    made.reconnect_wait_interval = std::chrono::seconds::zero();
    made.max_read_size = std::size_t{64} << 20;
    // We greet the server ourselves, and so learn why it refuses.
    made.use_setup = true;
    made.setup.clear();
    return made;
}

} // namespace

server_connection::server_connection(const asio::any_io_executor& strand, const settings& config, endpoint where,
    bool tls, asio::ssl::context context, std::uint64_t number)
    : number_(number), where_(std::move(where)),
      server_name_(config.tls.server_name.empty() ? where_.host : config.tls.server_name),
      config_(make_config(config, where_, tls)),
      watch_interval_(std::chrono::steady_clock::duration(config.health_interval) / 2),
      life_({.greeting =
                 std::max(silence_limit, static_cast<unsigned>(config.connect_timeout * 2 / config.health_interval)),
          .silence = silence_limit}),
      watcher_(strand), connection_(driver_connection::executor_type(strand), std::move(context),
                            boost::redis::logger(boost::redis::logger::level::disabled))
{
    connection_.set_receive_response(sink_);
    ping_.get_config() = once;
    if (!tls)
        return;
#pragma GCC diagnostic push
// The driver has no other way to name the host that a certificate is checked against.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    SSL* const handle = connection_.next_layer().native_handle();
#pragma GCC diagnostic pop
    remote::expect_host(handle, server_name_);
}

void server_connection::run(run_handler ended)
{
    connection_.async_run(
        config_, [self = shared_from_this(), ended = std::move(ended)](const error_code& code) mutable {
            self->ended_ = true;
            self->watcher_.cancel();
            std::move(ended)(code);
        });
    watch();
}

error_code server_connection::loss(const error_code& code) const noexcept
{
    if (given_up_)
        return asio::error::timed_out;
    // The driver cancels what is under way when it finds the end of the stream.
    if (code == asio::error::operation_aborted || code == asio::error::eof)
        return asio::error::connection_reset;
    return code;
}

std::string server_connection::certificate_problem()
{
    if (!config_.use_ssl)
        return {};
#pragma GCC diagnostic push
// The driver gives no other access to what OpenSSL knows.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return remote::certificate_problem(connection_.next_layer().native_handle(), server_name_);
#pragma GCC diagnostic pop
}

void server_connection::watch()
{
    watcher_.expires_after(watch_interval_);
    watcher_.async_wait([self = shared_from_this()](const error_code& code) {
        if (!code && !self->ended_)
            self->check_life();
    });
}

void server_connection::check_life()
{
    const bool owed = sink_.heard != 0 || connection_.get_usage().bytes_sent != 0;
    switch (life_.turn(sink_.heard, owed)) {
    case remote::liveness::action::give_up:
        given_up_ = true;
        close();
        return;
    case remote::liveness::action::ask:
        ask_for_life();
        break;
    case remote::liveness::action::go_on:
        break;
    }
    watch();
}

void server_connection::ask_for_life()
{
    ping_.clear();
    ping_.push("PING");
    using event = boost::redis::any_adapter::parse_event;
    const auto count = [this](event what, const boost::redis::resp3::node_view&, error_code&) {
        if (what == event::node)
            ++sink_.heard;
    };
    connection_.async_exec(ping_, boost::redis::any_adapter(boost::redis::any_adapter::impl_t(count)),
        [self = shared_from_this()](const error_code&, std::size_t) { self->life_.answered(); });
}

void server_connection::exec(const boost::redis::request& request, boost::redis::any_adapter adapter, exec_handler done)
{
    connection_.async_exec(request, std::move(adapter), std::move(done));
}

void server_connection::receive(run_handler done)
{
    connection_.async_receive2(std::move(done));
}

void server_connection::close() noexcept
{
    connection_.cancel(boost::redis::operation::all);
}

void server_connection::disown() noexcept
{
    close();
    // The driver closes its socket in a handler of its own; what is ready before that must not be read here.
    error_code ignored;
#pragma GCC diagnostic push
// The driver gives no other access to the socket.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    connection_.next_layer().next_layer().close(ignored);
#pragma GCC diagnostic pop
}

void server_connection::send_at_once() noexcept
{
    if (!config_.unix_socket.empty())
        return;
    error_code ignored;
#pragma GCC diagnostic push
// The driver never sets it, and gives no other access to the socket.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    connection_.next_layer().next_layer().set_option(asio::ip::tcp::no_delay(true), ignored);
#pragma GCC diagnostic pop
}

} // namespace colock::redis::detail
