// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/links.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace colock::redis::detail {

links::links(asio::any_io_executor strand, const settings& config)
    : strand_(std::move(strand)), config_(config), tls_(config.tls)
{
}

std::optional<std::string> links::read_tls_files()
{
    return config_.where.tls ? tls_.refresh() : std::nullopt;
}

std::shared_ptr<link> links::make(endpoint where)
{
    return std::make_shared<link>(strand_, config_, std::move(where), config_.where.tls, tls_.context(), ++last_);
}

void links::drop(std::shared_ptr<link>& used) const
{
    if (used)
        asio::post(strand_, [old = std::exchange(used, nullptr)] {});
}

} // namespace colock::redis::detail
