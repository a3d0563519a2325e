// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/url.hpp"

#include "util/option_errors.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

void refuse_options(std::string why)
{
    colock::detail::refuse_options("redis", std::move(why));
}

namespace {

int parse_database(const remote::url& from, std::string_view text)
{
    return from.parse_number(text, 1'000'000, "database");
}

location parse_socket(const remote::url& from)
{
    location where;
    // A path may contain '#', which begins a fragment in other URLs.
    const auto query = from.rest().find('?');
    where.socket_path = from.decode(from.rest().substr(0, query), "socket path");
    if (!where.socket_path.starts_with('/') || where.socket_path.size() > 107)
        from.refuse("the URL of a unix socket is redis+unix:///path, with a path of at most 107 bytes");
    if (query == std::string_view::npos)
        return where;
    const auto parameter = from.rest().substr(query + 1);
    if (!parameter.starts_with("db="))
        from.refuse("the URL has an unknown parameter; a unix socket's only one is db");
    where.database = parse_database(from, parameter.substr(3));
    return where;
}

void parse_sentinels(const remote::url& from, location& where)
{
    where.hosts = from.hosts("26379");
    const auto segments = remote::split(from.path(), '/');
    where.master = from.decode(segments[0], "master name");
    if (where.master.empty() || segments.size() > 2)
        from.refuse("the URL of Sentinels names the master: redis+sentinel://host:port/master");
    where.database = segments.size() == 2 ? parse_database(from, segments[1]) : 0;
}

} // namespace

location parse_url(std::string_view url)
{
    const remote::url from(url, "redis", "redis://host:port");
    const auto scheme = from.scheme();
    if (scheme == "redis+unix")
        return parse_socket(from);

    location where;
    const bool sentinel = scheme == "redis+sentinel" || scheme == "rediss+sentinel";
    where.tls = scheme.starts_with("rediss");
    if (!sentinel && scheme != "redis" && scheme != "rediss")
        from.refuse("the URL's scheme is none of redis, rediss, redis+unix, redis+sentinel, rediss+sentinel");
    if (!from.parameters().empty())
        from.refuse("the URL has parameters or a fragment; a '?' or '#' in a password is written %3F or %23");

    auto [user, password] = from.credentials();
    if (!user.empty() && !password)
        from.refuse("the URL has a user without a password; a password alone is written :password@host");
    where.user = std::move(user);
    where.password = std::move(password).value_or("");

    if (sentinel) {
        parse_sentinels(from, where);
        return where;
    }
    if (from.host_count() > 1)
        from.refuse("the URL names several hosts; those are redis+sentinel:// or redis+quorum://");
    where.hosts = from.hosts("6379");
    where.database = parse_database(from, from.path());
    return where;
}

} // namespace colock::inline v0::redis::detail
