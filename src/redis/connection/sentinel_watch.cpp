// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/sentinel_watch.hpp"

#include "redis/connection/greeting.hpp"

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>

#include <string>
#include <utility>

namespace colock::inline v0::redis::detail {

sentinel_watch::sentinel_watch(connection_factory& factory, const settings& config, handler on_switch)
    : factory_(factory), config_(config), handler_(std::move(on_switch)), connections_(config.location.hosts.size())
{
}

void sentinel_watch::start()
{
    for (std::size_t index = 0; index < connections_.size(); ++index) {
        if (!connections_[index])
            connect(index);
    }
}

void sentinel_watch::connect(std::size_t index)
{
    const auto connection = factory_.make(config_.location.hosts[index]);
    boost::redis::request commands;
    push_hello(commands, config_.sentinel_user, config_.sentinel_password, {});
    // The driver expects no reply to SUBSCRIBE. It takes the error of a refused one for the reply to PING.
    commands.push("SUBSCRIBE", "+switch-master");
    commands.push("PING");
    connection->exec(std::move(commands), [connection](const reply_list& replies) {
        if (replies.front().is_error() || replies.back().is_error())
            connection->close();
        else
            connection->note_established();
    });
    receive(connection);
    connection->run([self = shared_from_this(), connection, index](const error_code&) {
        // The driver may still hold requests that wait for a connection. Closing ends them.
        connection->close();
        if (self->connections_[index] == connection)
            self->factory_.drop(self->connections_[index]);
    });
    connections_[index] = connection;
}

void sentinel_watch::receive(const std::shared_ptr<server_connection>& connection)
{
    connection->receive([self = shared_from_this(), connection](const error_code& error) {
        if (error || !self->handler_)
            return;
        const auto announcements = std::exchange(connection->received().texts, {});
        connection->received().messages.clear();
        self->receive(connection);
        for (const auto& each : announcements)
            self->take(each);
    });
}

void sentinel_watch::take(const std::string& announcement) const
{
    // The name of the master, its old address and its new address.
    std::vector<std::string> words;
    boost::split(words, announcement, boost::is_any_of(" "));
    // The handler may stop the watch, which destroys the stored handler.
    if (const auto on_switch = handler_; on_switch && words.size() == 5 && words[0] == config_.location.master)
        on_switch({words[1], words[2]});
}

void sentinel_watch::stop()
{
    handler_ = nullptr;
    for (auto& each : connections_) {
        if (each)
            each->close();
        factory_.drop(each);
    }
}

} // namespace colock::inline v0::redis::detail
