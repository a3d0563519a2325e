// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/url.hpp"

#include "net/url_option_parser.hpp"
#include "util/option_errors.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

void refuse_options(std::string reason)
{
    colock::detail::refuse_options("redis", std::move(reason));
}

namespace {

using remote::set_choice;
using remote::set_member;

/// Names of the layouts, in the order of the enumerators.
constexpr std::string_view layouts[] = {"standard", "plain"};

/// Reads `from=to,from=to...`.
void set_address_map(options& to, const remote::option_text& text)
{
    std::map<std::string, std::string> entries;
    for (const auto entry : remote::split(text.value, ',')) {
        const auto equals = entry.find('=');
        if (equals == entry.npos)
            text.refuse("is not a list of entries such as 10.0.0.1:6379=localhost:7000, with commas between them");
        if (!entries.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second)
            text.refuse("has two entries for one address");
    }
    remote::store(text, to.address_map, {}, std::move(entries));
}

constexpr remote::url_option<options> all_options[] = {
    {"prefix", set_member<&options::prefix>},
    {"address_map", set_address_map},
    {"layout", set_choice<layouts, &options::layout>},
    {"sentinel_user", set_member<&options::sentinel_user>},
    {"sentinel_password", set_member<&options::sentinel_password>},
    {"tls.ca_file", set_member<&options::tls, &tls_options::ca_file>},
    {"tls.certificate_file", set_member<&options::tls, &tls_options::certificate_file>},
    {"tls.key_file", set_member<&options::tls, &tls_options::key_file>},
    {"tls.server_name", set_member<&options::tls, &tls_options::server_name>},
    {"operation_timeout", set_member<&options::operation_timeout>},
    {"connect_timeout", set_member<&options::connect_timeout>},
    {"idle_timeout", set_member<&options::idle_timeout>},
    {"health_interval", set_member<&options::health_interval>},
    {"poll_interval", set_member<&options::poll_interval>},
    {"replicas", set_member<&options::replicas>},
    {"replica_timeout", set_member<&options::replica_timeout>},
    {"max_clock_lead", set_member<&options::max_clock_lead>},
};

std::string option_names()
{
    return remote::names_of(all_options);
}

remote::url split_url(std::string_view text)
{
    return {text, "redis", "redis://host:port"};
}

int parse_database(const remote::url& from, std::string_view text)
{
    return from.parse_number(text, 1'000'000, "database");
}

location parse_socket(const remote::url& from)
{
    location result;
    // A path may contain '#', which begins a fragment in other URLs.
    result.socket_path = from.decode(from.rest().substr(0, from.rest().find('?')), "socket path");
    if (!result.socket_path.starts_with('/') || result.socket_path.size() > 107)
        from.refuse("the URL of a unix socket is redis+unix:///path, with a path of at most 107 bytes");
    bool has_database = false;
    for (const auto& each : from.query()) {
        if (each.name != "db")
            from.refuse_unknown(each.name, "db, " + option_names());
        if (std::exchange(has_database, true))
            from.refuse("the URL's db is given twice");
        result.database = parse_database(from, each.value);
    }
    return result;
}

void parse_sentinels(const remote::url& from, location& result)
{
    result.hosts = from.hosts("26379");
    const auto segments = remote::split(from.path(), '/');
    result.master = from.decode(segments[0], "master name");
    if (result.master.empty() || segments.size() > 2)
        from.refuse("the URL of Sentinels names the master: redis+sentinel://host:port/master");
    result.database = segments.size() == 2 ? parse_database(from, segments[1]) : 0;
}

} // namespace

options take_url_options(options settings)
{
    const auto text = std::exchange(settings.url, {});
    settings.url = remote::take_url_options(split_url(text), all_options, settings);
    return settings;
}

location parse_url(std::string_view url)
{
    const auto from = split_url(url);
    const auto scheme = from.scheme();
    if (scheme == "redis+unix")
        return parse_socket(from);

    location result;
    const bool sentinel = scheme == "redis+sentinel" || scheme == "rediss+sentinel";
    result.cluster = scheme == "redis+cluster" || scheme == "rediss+cluster";
    result.tls = scheme.starts_with("rediss");
    if (!sentinel && !result.cluster && scheme != "redis" && scheme != "rediss")
        from.refuse("the URL's scheme is none of redis, rediss, redis+unix, redis+sentinel, rediss+sentinel, "
                    "redis+cluster, rediss+cluster; for redis+quorum, call redis::make_quorum or colock::make_adapter");
    from.refuse_parameters(option_names());

    auto [user, password] = from.credentials();
    result.user = std::move(user);
    result.password = std::move(password).value_or("");

    if (sentinel) {
        parse_sentinels(from, result);
        return result;
    }
    if (from.host_count() > 1 && !result.cluster)
        from.refuse("the URL names several hosts; those are redis+sentinel://, redis+cluster:// or redis+quorum://");
    result.hosts = from.hosts("6379");
    result.database = parse_database(from, from.path());
    if (result.cluster && result.database != 0)
        from.refuse("a cluster has only the database 0; leave the database out");
    return result;
}

} // namespace colock::inline v0::redis::detail
