// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/servers.hpp"
#include "command/doctor/text.hpp"
#include "net/tls.hpp"
#include "net/url.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/redis/config.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/logger.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command {

namespace {

namespace remote = colock::remote;

using std::chrono::steady_clock;

/// Time limit for all commands to one server.
constexpr std::chrono::seconds redis_timeout{3};

/// One server, and the credentials for it.
struct redis_target
{
    remote::endpoint server{};
    std::string socket_path{};
    bool uses_tls = false;
    colock::tls_options tls{};
    std::string user{};
    std::string password{};

    [[nodiscard]] std::string name() const { return socket_path.empty() ? remote::to_text(server) : socket_path; }
};

std::string parameter_of(const remote::url& from, std::string_view name)
{
    for (const auto& each : from.query()) {
        if (each.name == name)
            return from.decode(each.value, name);
    }
    return {};
}

/// Returns the target without its address.
redis_target read_target(const remote::url& from, const backend_address& address)
{
    redis_target result;
    if (from.scheme() == "redis+unix") {
        result.socket_path = from.decode(from.rest().substr(0, from.rest().find('?')), "socket path");
        result.password = address.password;
        return result;
    }
    auto [user, password] = from.credentials();
    result.user = std::move(user);
    result.password = address.password.empty() ? std::move(password).value_or("") : address.password;
    result.uses_tls = from.scheme().starts_with("rediss");
    result.tls = {.ca_file = parameter_of(from, "tls.ca_file"),
        .certificate_file = parameter_of(from, "tls.certificate_file"),
        .key_file = parameter_of(from, "tls.key_file"),
        .server_name = parameter_of(from, "tls.server_name")};
    return result;
}

struct redis_reply
{
    /// The error of the server, or why there is no reply; empty otherwise.
    std::string error{};
    /// The texts of the reply in their order, without its structure.
    std::vector<std::string> texts{};

    [[nodiscard]] std::string first() const { return texts.empty() ? std::string() : texts.front(); }
    /// Returns the text that follows `name` in a list of names and values.
    [[nodiscard]] std::string field(std::string_view name) const
    {
        const auto found = std::ranges::find(texts, name);
        return found == texts.end() || found + 1 == texts.end() ? std::string() : *(found + 1);
    }
};

class redis_session
{
public:
    redis_session(asio::io_context& io, const redis_target& target)
        : target_(target), files_(target.tls),
          connection_(io.get_executor(), context(), boost::redis::logger(boost::redis::logger::level::disabled))
    {
        config_.use_ssl = target.uses_tls;
        config_.unix_socket = target.socket_path;
        config_.addr = {target.server.host, target.server.port};
        config_.health_check_interval = steady_clock::duration::zero();
        config_.reconnect_wait_interval = std::chrono::seconds::zero();
        config_.use_setup = true;
        config_.setup.clear();
        if (!target.uses_tls)
            return;
#pragma GCC diagnostic push
// The driver gives no other access to OpenSSL.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        remote::expect_host(connection_.next_layer().native_handle(),
            target.tls.server_name.empty() ? target.server.host : target.tls.server_name);
#pragma GCC diagnostic pop
    }

    void start()
    {
        connection_.async_run(config_, [this](const boost::system::error_code& code) {
            end_ = code;
            connection_.cancel();
        });
    }
    void stop() { connection_.cancel(); }

    /// Sends HELLO, which authenticates.
    asio::awaitable<redis_reply> send_hello()
    {
        std::vector<std::string> words{"HELLO", "3"};
        if (!target_.password.empty())
            words.insert(words.end(), {"AUTH", target_.user.empty() ? "default" : target_.user, target_.password});
        return execute(std::move(words));
    }

    asio::awaitable<redis_reply> execute(std::vector<std::string> words)
    {
        boost::redis::request request;
        if (words.size() == 1)
            request.push(words.front());
        else
            request.push_range(words.front(), words.begin() + 1, words.end());
        boost::redis::generic_response response;
        const auto [code, size] = co_await connection_.async_exec(request, response, asio::as_tuple(asio::deferred));
        redis_reply result;
        if (code)
            result.error = end_ ? end_.message() : code.message();
        else if (response.has_error())
            result.error = response.error().diagnostic;
        else {
            for (const auto& each : response.value()) {
                if (boost::redis::resp3::is_aggregate(each.data_type))
                    continue;
                // A verbatim string begins with its format.
                const bool is_verbatim = each.data_type == boost::redis::resp3::type::verbatim_string;
                result.texts.push_back(
                    is_verbatim ? each.value.substr(std::min<std::size_t>(4, each.value.size())) : each.value);
            }
        }
        co_return result;
    }

private:
    asio::ssl::context context()
    {
        if (target_.uses_tls)
            static_cast<void>(files_.refresh());
        return files_.context();
    }

    const redis_target target_;
    remote::tls_files files_;
    boost::redis::connection connection_;
    boost::redis::config config_;
    boost::system::error_code end_;
};

/// Calls the coroutine `query` with a session of one server, and returns the values that it has stored within
/// `redis_timeout`.
template <class Query>
server_values query_within_timeout(const redis_target& target, Query query)
{
    server_values values;
    values.set("answer", "no");
    values.set("cause", "it does not answer within 3 s");
    asio::io_context io(1);
    redis_session session(io, target);
    session.start();
    asio::co_spawn(io, query(session, values), [&session](std::exception_ptr) { session.stop(); });
    io.run_for(redis_timeout);
    return values;
}

/// Reads the lines `name:value` of INFO.
void read_info(const std::string& text, server_values& values)
{
    for (const auto line : remote::split(text, '\n')) {
        const auto colon = line.find(':');
        if (colon == line.npos)
            continue;
        auto value = line.substr(colon + 1);
        if (value.ends_with('\r'))
            value.remove_suffix(1);
        values.set(line.substr(0, colon), std::string(value));
    }
}

asio::awaitable<void> read_config(redis_session& session, std::string name, server_values& values)
{
    const auto reply = co_await session.execute({"CONFIG", "GET", name});
    if (!reply.error.empty())
        values.set_unknown(name, reply.error);
    else if (const auto value = reply.field(name); !value.empty())
        values.set(name, value);
}

/// Compares the server's clock with that of this machine, by the fastest of some replies.
asio::awaitable<void> measure_clock(redis_session& session, server_values& values)
{
    using std::chrono::system_clock;
    auto fastest = steady_clock::duration::max();
    for (int i = 0; i < 5; ++i) {
        const auto sent_at = system_clock::now();
        const auto begin = steady_clock::now();
        const auto reply = co_await session.execute({"TIME"});
        const auto duration = steady_clock::now() - begin;
        if (!reply.error.empty() || reply.texts.size() != 2) {
            values.set_unknown("clock_offset", reply.error);
            co_return;
        }
        if (duration >= fastest)
            continue;
        fastest = duration;
        const system_clock::time_point time(
            std::chrono::seconds(std::stoll(reply.texts[0])) + std::chrono::microseconds(std::stoll(reply.texts[1])));
        const auto offset = time - (sent_at + duration / 2);
        values.set(
            "clock_offset", std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(offset).count()));
        values.set("round_trip", milliseconds_text(duration));
    }
}

asio::awaitable<void> query_server(redis_session& session, server_values& values)
{
    const auto hello = co_await session.send_hello();
    if (!hello.error.empty()) {
        values.set("cause", hello.error);
        co_return;
    }
    values.set("answer", "yes");
    const auto info = co_await session.execute({"INFO"});
    if (info.error.empty()) {
        read_info(info.first(), values);
        values.set("appendonly", values.text("aof_enabled") == "1" ? "yes" : "no");
    } else {
        for (const auto* each :
            {"redis_version", "role", "redis_mode", "maxmemory_policy", "appendonly", "connected_slaves"})
            values.set_unknown(each, info.error);
    }
    co_await measure_clock(session, values);
    for (const auto* each : {"appendfsync", "min-replicas-to-write", "min-replicas-max-lag"})
        co_await read_config(session, each, values);
}

/// Returns the addresses in the lines `slaveN:ip=...,port=...,...` of INFO.
std::vector<remote::endpoint> replicas_of(const server_values& master)
{
    std::vector<remote::endpoint> found;
    for (std::size_t i = 0; master.has("slave" + std::to_string(i)); ++i) {
        remote::endpoint replica;
        const std::string line = master.text("slave" + std::to_string(i));
        for (const auto field : remote::split(line, ',')) {
            if (field.starts_with("ip="))
                replica.host = field.substr(3);
            else if (field.starts_with("port="))
                replica.port = field.substr(5);
        }
        found.push_back(std::move(replica));
    }
    return found;
}

asio::awaitable<void> query_sentinel(redis_session& session, const std::string& master, server_values& values)
{
    const auto hello = co_await session.send_hello();
    const auto state = hello.error.empty() ? co_await session.execute({"SENTINEL", "MASTER", master}) : hello;
    if (!state.error.empty()) {
        values.set("cause", state.error);
        co_return;
    }
    values.set("answer", "yes");
    for (const auto* each : {"ip", "port", "flags", "quorum", "num-slaves"})
        values.set(each, state.field(each));
    values.set("sentinels", std::to_string(std::stoi("0" + state.field("num-other-sentinels")) + 1));
    const auto usable = co_await session.execute({"SENTINEL", "CKQUORUM", master});
    values.set("usable", usable.error.empty() ? usable.first() : usable.error);
}

asio::awaitable<void> query_cluster(redis_session& session, server_values& values)
{
    const auto hello = co_await session.send_hello();
    const auto info = hello.error.empty() ? co_await session.execute({"CLUSTER", "INFO"}) : hello;
    if (!info.error.empty()) {
        values.set("cause", info.error);
        co_return;
    }
    values.set("answer", "yes");
    read_info(info.first(), values);
    for (const auto* each : {"cluster-require-full-coverage", "cluster-node-timeout"})
        co_await read_config(session, each, values);
    const auto nodes = co_await session.execute({"CLUSTER", "NODES"});
    if (nodes.error.empty())
        values.set("nodes", nodes.first());
}

/// Returns the addresses of the masters with slots, in the lines `id host:port@port[,name] flags ... [slots]` of
/// CLUSTER NODES.
/// \param replier the node that has replied. Its host is used for nodes whose host it does not know.
std::vector<remote::endpoint> masters_of(const server_values& values, const remote::endpoint& replier)
{
    std::vector<remote::endpoint> found;
    const std::string nodes = values.text("nodes");
    for (const auto line : remote::split(nodes, '\n')) {
        const auto words = remote::split(line, ' ');
        if (words.size() < 9 || words[2].find("master") == words[2].npos)
            continue;
        const auto address = words[1].substr(0, words[1].find('@'));
        const auto colon = address.rfind(':');
        if (colon == address.npos)
            continue;
        found.push_back({colon == 0 ? replier.host : std::string(address.substr(0, colon)),
            std::string(address.substr(colon + 1))});
    }
    return found;
}

/// Examines the cluster, and returns its masters.
std::vector<remote::endpoint> examine_cluster(
    const std::vector<remote::endpoint>& hosts, redis_target target, std::vector<finding>& lines)
{
    for (const auto& each : hosts) {
        target.server = each;
        const server_values values = query_within_timeout(target, query_cluster);
        const bool is_last = &each == &hosts.back();
        if (values.text("answer") != "yes" && !is_last) {
            append(lines, examine(target.name(), unreachable_node_checks(), values));
            continue;
        }
        append(lines, examine("cluster, as " + target.name() + " sees it", cluster_checks(), values));
        return masters_of(values, each);
    }
    return {};
}

void examine_master(const redis_target& target, const lock_probe& probe, std::vector<finding>& lines)
{
    const server_values master = query_within_timeout(target, query_server);
    append(lines, examine(target.name(), redis_checks(), master, probe.warnings));
    for (const remote::endpoint& each : replicas_of(master)) {
        redis_target replica = target;
        replica.server = each;
        replica.socket_path.clear();
        const server_values values = query_within_timeout(replica, query_server);
        append(lines, examine("replica " + replica.name(), redis_replica_checks(), values));
    }
}

} // namespace

std::vector<finding> examine_redis(const backend_address& address, const lock_probe& probe)
{
    const remote::url from(address.url, "redis", "redis://host:port");
    redis_target target = read_target(from, address);
    std::vector<finding> lines;
    if (from.scheme().ends_with("+sentinel")) {
        const std::string master = from.decode(from.path().substr(0, from.path().find('/')), "master name");
        const auto query = [&master](redis_session& session, server_values& values) {
            return query_sentinel(session, master, values);
        };
        redis_target sentinel = target;
        sentinel.user = parameter_of(from, "sentinel_user");
        sentinel.password = parameter_of(from, "sentinel_password");
        for (const auto& each : from.hosts("26379")) {
            sentinel.server = each;
            const server_values values = query_within_timeout(sentinel, query);
            append(lines, examine("sentinel " + sentinel.name(), sentinel_checks(), values));
            if (target.server.host.empty())
                target.server = {values.text("ip"), values.text("port")};
        }
        if (target.server.host.empty())
            return lines;
    } else if (from.scheme().ends_with("+cluster")) {
        for (const auto& each : examine_cluster(from.hosts("6379"), target, lines)) {
            target.server = each;
            examine_master(target, probe, lines);
        }
        return lines;
    } else if (target.socket_path.empty()) {
        target.server = from.hosts("6379").front();
    }
    examine_master(target, probe, lines);
    return lines;
}

} // namespace command
