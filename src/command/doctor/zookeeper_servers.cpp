// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/servers.hpp"
#include "command/doctor/text.hpp"
#include "net/url.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command {

namespace {

namespace remote = colock::remote;

/// Time limit for the reply to one command.
constexpr std::chrono::seconds command_timeout{2};

struct command_reply
{
    /// Why there is no reply; empty otherwise.
    std::string error = "it does not answer within 2 s";
    std::string text{};
    std::chrono::steady_clock::duration duration{};
};

asio::awaitable<void> exchange(
    asio::ip::tcp::socket& socket, remote::endpoint server, std::string word, command_reply& result)
{
    asio::ip::tcp::resolver resolver(socket.get_executor());
    const auto addresses = co_await resolver.async_resolve(server.host, server.port, asio::deferred);
    co_await asio::async_connect(socket, addresses, asio::deferred);
    const auto begin = std::chrono::steady_clock::now();
    co_await asio::async_write(socket, asio::buffer(word), asio::deferred);
    // The server closes the connection after its reply.
    co_await asio::async_read(socket, asio::dynamic_buffer(result.text), asio::as_tuple(asio::deferred));
    result.duration = std::chrono::steady_clock::now() - begin;
    result.error = result.text.empty() ? "it closes the connection" : "";
    if (result.text.find("is not executed because it is not in the whitelist") != std::string::npos)
        result.error = word + " is not in 4lw.commands.whitelist";
}

/// Sends a command of four letters by a connection of its own.
command_reply send_command(const remote::endpoint& server, std::string word)
{
    asio::io_context io(1);
    asio::ip::tcp::socket socket(io);
    command_reply result;
    asio::co_spawn(io, exchange(socket, server, std::move(word), result), [&result](std::exception_ptr problem) {
        try {
            if (problem)
                std::rethrow_exception(problem);
        } catch (const boost::system::system_error& failure) {
            result.error = failure.code().message();
        }
    });
    io.run_for(command_timeout);
    return result;
}

/// Calls `use` with the name and the value of each line `name SEPARATOR value`.
template <class Use>
void for_each_field(std::string_view text, char separator, Use use)
{
    for (auto line : remote::split(text, '\n')) {
        const auto end = line.find(separator);
        if (end == line.npos)
            continue;
        auto value = line.substr(end + 1);
        while (value.starts_with(' '))
            value.remove_prefix(1);
        use(line.substr(0, end), value);
    }
}

/// Returns a duration of the URL in milliseconds, or `otherwise` if the URL does not give it.
std::string duration_of(const remote::url& from, std::string_view name, std::string otherwise)
{
    for (const auto& each : from.query()) {
        if (each.name == name)
            return std::to_string(parse_duration(name, from.decode(each.value, name)).count());
    }
    return otherwise;
}

struct ensemble
{
    std::size_t named = 0;
    std::size_t answering = 0;
    /// The number of members in the configuration of a server; 0 if it is not known.
    std::size_t members = 0;
    std::set<std::string> limits{};
    server_values values{};
};

server_values query_server(const remote::endpoint& server, const remote::url& from, ensemble& all)
{
    server_values values;
    const auto state = send_command(server, "srvr");
    values.set("answer", state.error.empty() ? "yes" : "no");
    values.set("cause", state.error);
    if (!state.error.empty())
        return values;
    ++all.answering;
    values.set("round_trip", milliseconds_text(state.duration));
    for_each_field(state.text, ':', [&values](std::string_view name, std::string_view value) {
        if (name == "Zookeeper version")
            values.set("version", std::string(value.substr(0, value.find('-'))));
        else if (name == "Mode")
            values.set("mode", std::string(value));
    });
    values.set("server_tick", duration_of(from, "server_tick", "2000"));
    values.set("session_timeout", duration_of(from, "session_timeout", "15000"));

    const auto configuration = send_command(server, "conf");
    if (configuration.error.empty()) {
        std::size_t members = 0;
        for_each_field(configuration.text, '=', [&](std::string_view name, std::string_view value) {
            values.set(name, std::string(value));
            members += name.starts_with("server.") ? 1 : 0;
        });
        const auto limits = values.text("minSessionTimeout") + " to " + values.text("maxSessionTimeout");
        values.set("session_limits", limits);
        all.limits.insert(limits);
        all.members = std::max({all.members, members, std::size_t{1}});
    } else {
        for (const auto* each : {"tickTime", "session_limits"})
            values.set_unknown(each, configuration.error);
    }
    if (values.text("mode") == "leader") {
        const auto counters = send_command(server, "mntr");
        if (!counters.error.empty())
            all.values.set_unknown("zk_synced_followers", counters.error);
        for_each_field(counters.text, '\t', [&all](std::string_view name, std::string_view value) {
            if (name == "zk_synced_followers")
                all.values.set(name, std::string(value));
        });
    }
    return values;
}

} // namespace

std::vector<finding> examine_zookeeper(const backend_address& address, const lock_probe& probe)
{
    const remote::url from(address.url, "zookeeper", "zookeeper://host:port");
    std::vector<finding> lines;
    ensemble all;
    for (const auto& each : from.hosts("2181")) {
        ++all.named;
        append(lines, examine(remote::to_text(each), zookeeper_checks(), query_server(each, from, all)));
    }
    all.values.set("named", std::to_string(all.named));
    all.values.set("answering", std::to_string(all.answering));
    all.values.set("members", std::to_string(all.members == 0 ? all.named : all.members));
    if (!all.limits.empty())
        all.values.set("limits", all.limits.size() == 1 ? "equal" : "different");
    if (const auto smallest = duration_of(from, "smallest_session_timeout", ""); !smallest.empty())
        all.values.set("smallest_session_timeout", smallest);
    append(lines, examine("zookeeper", ensemble_checks(), all.values, probe.warnings));
    return lines;
}

} // namespace command
