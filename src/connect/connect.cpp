// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/connect.hpp>

#include "core/option_checks.hpp"

#include <colock/memory/adapter.hpp>

#ifdef COLOCK_CONNECT_REDIS
#include <colock/redis/adapter.hpp>
#endif

#include <string>
#include <vector>

namespace colock {

namespace {

[[noreturn]] void refuse(std::string why)
{
    detail::refuse_options({}, std::move(why));
}

#ifdef COLOCK_CONNECT_REDIS

/// One URL per host of `scheme+quorum://credentials@host,host,host/database`.
std::vector<std::string> quorum_urls(std::string_view url)
{
    const auto plus = url.find('+');
    const auto scheme = url.substr(0, plus);
    auto rest = url.substr(url.find("://") + 3);
    const auto path_start = rest.find('/');
    const auto path = path_start == std::string_view::npos ? std::string_view() : rest.substr(path_start);
    rest = rest.substr(0, path_start);
    const auto at = rest.rfind('@');
    const auto credentials = at == std::string_view::npos ? std::string_view() : rest.substr(0, at + 1);
    auto hosts = rest.substr(credentials.size());
    std::vector<std::string> urls;
    for (;;) {
        const auto comma = hosts.find(',');
        std::string one(scheme);
        ((one += "://") += credentials) += hosts.substr(0, comma);
        urls.push_back(one += path);
        if (comma == std::string_view::npos)
            return urls;
        hosts.remove_prefix(comma + 1);
    }
}

#endif

std::shared_ptr<adapter> make_redis(
    [[maybe_unused]] const asio::any_io_executor& executor, [[maybe_unused]] std::string_view url)
{
#ifdef COLOCK_CONNECT_REDIS
    const auto scheme = url.substr(0, url.find("://"));
    if (scheme == "redis+quorum" || scheme == "rediss+quorum")
        return redis::make_quorum(executor, quorum_urls(url));
    return redis::make_adapter(executor, {.url = std::string(url)});
#else
    refuse("this build of colock has no Redis component; build it with -DCOLOCK_REDIS=ON, which needs OpenSSL");
#endif
}

} // namespace

std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, std::string_view url)
{
    if (url == "memory:" || url == "memory://")
        return memory::make_adapter(std::move(executor));
    if (url.starts_with("redis://") || url.starts_with("rediss://") || url.starts_with("redis+") ||
        url.starts_with("rediss+"))
        return make_redis(executor, url);
    refuse("the URL's scheme is not known; use memory:, redis://host:port, rediss://host:port, redis+unix:///path, "
           "redis+sentinel://host:port/master or redis+quorum://host,host,host");
}

} // namespace colock
