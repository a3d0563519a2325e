// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/sentinel_search.hpp"

#include "redis/connection/greeting.hpp"
#include "redis/failures.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace colock::inline v0::redis::detail {

sentinel_search::sentinel_search(connection_factory& factory, const settings& config, handler on_address)
    : factory_(factory), config_(config), handler_(std::move(on_address)), connections_(config.location.hosts.size()),
      candidates_(config.location.hosts.size())
{
}

void sentinel_search::start()
{
    for (std::size_t index = 0; index < connections_.size(); ++index)
        query(index);
}

void sentinel_search::query(std::size_t index)
{
    const auto connection = connections_[index] = factory_.make(config_.location.hosts[index]);
    boost::redis::request commands;
    push_hello(commands, config_.sentinel_user, config_.sentinel_password, {});
    commands.push("SENTINEL", "GET-MASTER-ADDR-BY-NAME", config_.location.master);
    connection->exec(std::move(commands), [self = shared_from_this(), connection, index](const reply_list& replies) {
        if (self->connections_[index] == connection) {
            self->on_reply(index, replies);
            self->factory_.drop(self->connections_[index]);
            self->deliver();
        }
        connection->close();
    });
    connection->run([self = shared_from_this(), connection, index](const error_code& error) {
        // The driver may still hold requests that wait for a connection. Closing ends them.
        connection->close();
        if (self->connections_[index] == connection)
            self->connection_ended(index, connection->translate_error(error));
    });
}

void sentinel_search::on_reply(std::size_t index, const reply_list& replies)
{
    const auto name = to_text(config_.location.hosts[index]);
    if (const auto& address = replies[1]; address.is(reply::kind::array) && address.items.size() == 2) {
        candidates_.add_address(index, {address.at(0).text, address.at(1).text});
        return;
    }
    const auto& error = replies[0].is_error() ? replies[0] : replies[1];
    if (!error.is_error()) {
        candidates_.add_failure(index, make_failure(errc::unavailable, name + " does not know the name"));
        return;
    }
    if (error.text.starts_with("ERR unknown command")) {
        candidates_.add_failure(index,
            make_failure(errc::unavailable, name + " is no Sentinel; name the Sentinels, whose default port is 26379"));
        return;
    }
    const auto failure = refusal(error);
    candidates_.add_failure(index, make_failure(errc::unavailable, name + ": " + failure->detail, failure->cause));
}

void sentinel_search::connection_ended(std::size_t index, const error_code& error)
{
    auto failure = lost_connection(to_text(config_.location.hosts[index]), error);
    if (const auto certificate_failure = connections_[index]->certificate_failure(error))
        failure = make_failure(errc::unavailable, certificate_failure->detail, certificate_failure->cause);
    factory_.drop(connections_[index]);
    candidates_.add_failure(index, std::move(failure));
    deliver();
}

void sentinel_search::request_next(failure_ptr failure)
{
    server_failures_.push_back(std::move(failure));
    is_requested_ = true;
    deliver();
}

void sentinel_search::confirm(const endpoint& current)
{
    close_connections();
    candidates_.begin_again(current);
    is_requested_ = true;
    start();
}

void sentinel_search::deliver()
{
    if (!handler_ || !is_requested_ || !candidates_.is_decided())
        return;
    // The handler may stop the search, which destroys the stored handler.
    const auto on_address = handler_;
    if (const auto address = candidates_.take_next()) {
        is_requested_ = false;
        on_address(*address, nullptr);
    } else if (candidates_.is_complete()) {
        is_requested_ = false;
        on_address({}, not_found());
    }
}

failure_ptr sentinel_search::not_found() const
{
    if (!server_failures_.empty())
        return join_server_failures();
    std::string details;
    error_code cause;
    for (const auto& each : candidates_.failures()) {
        details += (details.empty() ? ": " : "; ") + each->detail;
        if (!cause)
            cause = each->cause;
    }
    return make_failure(
        errc::unavailable, "no Sentinel could name the master " + config_.location.master + details, cause);
}

failure_ptr sentinel_search::join_server_failures() const
{
    // A refusal is more exact than the failure of a server that does not answer.
    const auto refused =
        std::ranges::find_if(server_failures_, [](const failure_ptr& each) { return each->code != errc::unavailable; });
    const auto& main = refused == server_failures_.end() ? server_failures_.front() : *refused;
    auto details = main->detail;
    for (const auto& each : server_failures_) {
        if (each != main)
            details += "; " + each->detail;
    }
    return make_failure(main->code, details, main->cause);
}

void sentinel_search::stop()
{
    handler_ = nullptr;
    close_connections();
}

void sentinel_search::close_connections()
{
    for (auto& each : connections_) {
        if (each)
            each->close();
        factory_.drop(each);
    }
}

} // namespace colock::inline v0::redis::detail
