// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/link.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/redis/logger.hpp>

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <utility>

namespace colock::redis::detail {

namespace {

void check(const error_code& code, const char* what)
{
    if (code)
        throw error(errc::invalid_options,
            {.backend = "redis", .cause = code, .detail = std::string("tls: ") + what + " cannot be used"});
}

/// Answers the driver's question how to read a message.
struct message_reader
{
    link::message_sink* sink;

    void on_init() { sink->current = {}; }
    void on_node(const boost::redis::resp3::node_view& node, error_code&) { sink->current.add(node); }
    void on_done()
    {
        if (sink->current.at(0).text == "message" && sink->current.items.size() > 1)
            sink->messages.push_back(std::move(sink->current.items[1].text));
        sink->current = {};
    }
};

} // namespace

[[maybe_unused]] static message_reader boost_redis_adapt(link::message_sink& sink)
{
    return {&sink};
}

tls_material::tls_material(const tls_options& files) : context_(asio::ssl::context::tls_client)
{
    error_code code;
    context_.set_options(
        asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, code);
    context_.set_verify_mode(asio::ssl::verify_peer, code);
    check(code, "verification");
    if (files.ca_file.empty())
        context_.set_default_verify_paths(code);
    else
        context_.load_verify_file(files.ca_file, code);
    check(code, "ca_file");
    if (files.certificate_file.empty())
        return;
    context_.use_certificate_chain_file(files.certificate_file, code);
    check(code, "certificate_file");
    context_.use_private_key_file(files.key_file, asio::ssl::context::pem, code);
    check(code, "key_file");
}

asio::ssl::context tls_material::share()
{
    SSL_CTX_up_ref(context_.native_handle());
    return asio::ssl::context(context_.native_handle());
}

namespace {

boost::redis::config make_config(const settings& from, const endpoint& where, bool tls)
{
    boost::redis::config made;
    made.use_ssl = tls;
    made.unix_socket = from.where.socket_path;
    made.addr = {where.host, where.port};
    made.resolve_timeout = from.connect_timeout;
    made.connect_timeout = from.connect_timeout;
    made.ssl_handshake_timeout = from.connect_timeout;
    made.health_check_interval = from.health_interval;
    made.health_check_id = "colock";
    // Run ends with its connection: that is how a new one is told from an old one.
    made.reconnect_wait_interval = std::chrono::seconds::zero();
    made.max_read_size = std::size_t{64} << 20;
    // We greet the server ourselves, and so learn why it refuses.
    made.use_setup = true;
    made.setup.clear();
    return made;
}

} // namespace

link::link(const asio::any_io_executor& strand, const settings& config, endpoint where, bool tls,
    asio::ssl::context context, std::uint64_t number)
    : number_(number), where_(std::move(where)), config_(make_config(config, where_, tls)),
      connection_(strand, std::move(context), boost::redis::logger(boost::redis::logger::level::disabled))
{
    connection_.set_receive_response(sink_);
    if (!tls)
        return;
    const auto& name = config.tls.server_name.empty() ? where_.host : config.tls.server_name;
#pragma GCC diagnostic push
// The driver has no other way to name the host that a certificate is checked against.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    SSL* const handle = connection_.next_layer().native_handle();
#pragma GCC diagnostic pop
    error_code not_numeric;
    asio::ip::make_address(name, not_numeric);
    X509_VERIFY_PARAM* const expected = SSL_get0_param(handle);
    // A name that OpenSSL does not take must match nothing, rather than everything.
    if (!not_numeric) {
        if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) != 1)
            X509_VERIFY_PARAM_set1_host(expected, "invalid.", 0);
        return;
    }
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(expected, name.c_str(), name.size()) != 1)
        X509_VERIFY_PARAM_set1_host(expected, "invalid.", 0);
    SSL_ctrl(handle, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name.c_str()));
}

void link::run(run_handler ended)
{
    connection_.async_run(config_, std::move(ended));
}

void link::exec(const boost::redis::request& request, boost::redis::any_adapter adapter, exec_handler done)
{
    connection_.async_exec(request, std::move(adapter), std::move(done));
}

void link::receive(run_handler done)
{
    connection_.async_receive2(std::move(done));
}

void link::close() noexcept
{
    connection_.cancel(boost::redis::operation::all);
}

void link::send_at_once() noexcept
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
