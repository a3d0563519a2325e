// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/connection_factory.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace colock::inline v0::redis::detail {

connection_factory::connection_factory(asio::any_io_executor strand, const settings& config)
    : strand_(std::move(strand)), config_(config), tls_(config.tls)
{
}

std::optional<std::string> connection_factory::read_tls_files()
{
    return config_.where.tls ? tls_.refresh() : std::nullopt;
}

std::shared_ptr<server_connection> connection_factory::make(endpoint where)
{
    return std::make_shared<server_connection>(
        strand_, config_, std::move(where), config_.where.tls, tls_.context(), ++last_number_);
}

void connection_factory::drop(std::shared_ptr<server_connection>& used) const
{
    if (used)
        asio::post(strand_, [old = std::exchange(used, nullptr)] {});
}

} // namespace colock::inline v0::redis::detail
