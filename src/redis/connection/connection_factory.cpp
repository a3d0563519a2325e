// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/connection_factory.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace colock::inline v0::redis::detail {

connection_factory::connection_factory(
    asio::any_io_executor strand, const settings& config, remote::connection_number before_first)
    : strand_(std::move(strand)), config_(config), tls_(config.tls), last_number_(before_first)
{
}

std::optional<std::string> connection_factory::read_tls_files()
{
    return config_.location.tls ? tls_.refresh() : std::nullopt;
}

std::shared_ptr<server_connection> connection_factory::make(endpoint server)
{
    return std::make_shared<server_connection>(
        strand_, config_, std::move(server), config_.location.tls, tls_.context(), ++last_number_);
}

void connection_factory::drop(std::shared_ptr<server_connection>& connection) const
{
    if (connection)
        asio::post(strand_, [old = std::exchange(connection, nullptr)] {});
}

} // namespace colock::inline v0::redis::detail
