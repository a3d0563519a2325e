// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/url.hpp"

#include <colock/connect.hpp>
#include <colock/redis/adapter.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0::redis {

namespace {

std::shared_ptr<adapter> make_by_url(
    const asio::any_io_executor& executor, std::string_view text, const connect_options& program_options)
{
    options settings{.url = std::string(text),
        .user = program_options.user,
        .password = program_options.password,
        .tls = program_options.tls};
    const remote::url url(text, "redis", "redis://host:port");
    if (url.scheme() == "redis+quorum")
        return make_quorum(executor, url.split_by_host("redis"), settings);
    if (url.scheme() == "rediss+quorum")
        return make_quorum(executor, url.split_by_host("rediss"), settings);
    return make_adapter(executor, settings);
}

} // namespace

constinit const url_backend by_url{
    .schemes = {"redis", "rediss"},
    .forms = "redis://host:port, rediss://host:port, redis+unix:///path, redis+sentinel://host:port/master, "
             "redis+cluster://host,host, redis+quorum://host,host,host",
    .make = make_by_url,
};

} // namespace colock::inline v0::redis
