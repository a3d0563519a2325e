// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "connect/backends.hpp"
#include "net/url.hpp"

#include <colock/redis/adapter.hpp>

#include <string>

namespace colock::inline v0::detail {

std::shared_ptr<adapter> connect_redis(
    const asio::any_io_executor& executor, std::string_view text, const connect_options& how)
{
    redis::options options{.url = std::string(text), .user = how.user, .password = how.password, .tls = how.tls};
    const remote::url url(text, "redis", "redis://host:port");
    if (url.scheme() == "redis+quorum")
        return redis::make_quorum(executor, url.split_by_host("redis"), options);
    if (url.scheme() == "rediss+quorum")
        return redis::make_quorum(executor, url.split_by_host("rediss"), options);
    return redis::make_adapter(executor, options);
}

} // namespace colock::inline v0::detail
