// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/url.hpp"

#include "core/option_checks.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace colock::redis::detail {

void refuse_options(std::string why)
{
    colock::detail::refuse_options("redis", std::move(why));
}

namespace {

int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

std::string percent_decoded(std::string_view text, const char* what)
{
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                refuse_options(
                    std::string("the URL's ") + what + " has a '%' without two hexadecimal digits behind it");
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (c == '\0' || c == '\r' || c == '\n')
            refuse_options(std::string("the URL's ") + what + " holds a control character");
        decoded += c;
    }
    return decoded;
}

std::optional<int> number_in(std::string_view text, int from, int to)
{
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < from || value > to)
        return std::nullopt;
    return value;
}

endpoint parse_host(std::string_view text, const char* default_port)
{
    std::string_view host = text;
    std::string_view port;
    bool has_port = false;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos)
            refuse_options("the URL has an IPv6 address without its closing ']'");
        host = text.substr(1, end - 1);
        const auto rest = text.substr(end + 1);
        if (!rest.empty() && !rest.starts_with(':'))
            refuse_options("the URL has something other than ':port' behind an IPv6 address");
        has_port = !rest.empty();
        port = has_port ? rest.substr(1) : rest;
    } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        host = text.substr(0, colon);
        port = text.substr(colon + 1);
        has_port = true;
    }
    if (host.empty())
        refuse_options("the URL names no host");
    if (has_port && !number_in(port, 1, 65535))
        refuse_options("the URL's port is not a number from 1 to 65535");
    return {percent_decoded(host, "host"), has_port ? std::string(port) : std::string(default_port)};
}

int parse_database(std::string_view text)
{
    if (text.empty())
        return 0;
    const auto database = number_in(text, 0, 1'000'000);
    if (!database)
        refuse_options("the URL's database is not a number");
    return *database;
}

std::vector<std::string_view> split(std::string_view text, char separator)
{
    std::vector<std::string_view> parts;
    for (;;) {
        const auto end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos)
            return parts;
        text.remove_prefix(end + 1);
    }
}

} // namespace

location parse_url(std::string_view url)
{
    const auto scheme_end = url.find("://");
    if (scheme_end == std::string_view::npos)
        refuse_options("the URL has no scheme; write redis://host:port");
    const auto scheme = url.substr(0, scheme_end);
    auto rest = url.substr(scheme_end + 3);
    location where;

    if (scheme == "redis+unix") {
        const auto query = rest.find('?');
        where.socket_path = percent_decoded(rest.substr(0, query), "socket path");
        if (!where.socket_path.starts_with('/') || where.socket_path.size() > 107)
            refuse_options("the URL of a unix socket is redis+unix:///path, with a path of at most 107 bytes");
        if (query != std::string_view::npos) {
            const auto parameter = rest.substr(query + 1);
            if (!parameter.starts_with("db="))
                refuse_options("the URL has an unknown parameter; a unix socket's only one is db");
            where.database = parse_database(parameter.substr(3));
        }
        return where;
    }

    const bool sentinel = scheme == "redis+sentinel" || scheme == "rediss+sentinel";
    where.tls = scheme.starts_with("rediss");
    if (!sentinel && scheme != "redis" && scheme != "rediss")
        refuse_options("the URL's scheme is none of redis, rediss, redis+unix, redis+sentinel, rediss+sentinel");
    if (rest.find_first_of("?#") != std::string_view::npos)
        refuse_options("the URL has parameters or a fragment; a '?' or '#' in a password is written %3F or %23");

    const auto path_start = rest.find('/');
    auto authority = rest.substr(0, path_start);
    const auto path = path_start == std::string_view::npos ? std::string_view() : rest.substr(path_start + 1);

    if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
        const auto credentials = authority.substr(0, at);
        authority.remove_prefix(at + 1);
        const auto colon = credentials.find(':');
        where.user = percent_decoded(credentials.substr(0, colon), "user");
        if (colon != std::string_view::npos)
            where.password = percent_decoded(credentials.substr(colon + 1), "password");
        else if (!where.user.empty())
            refuse_options("the URL has a user without a password; a password alone is written :password@host");
    }

    if (sentinel) {
        for (const auto host : split(authority, ','))
            where.hosts.push_back(parse_host(host, "26379"));
        const auto segments = split(path, '/');
        where.master = percent_decoded(segments[0], "master name");
        if (where.master.empty() || segments.size() > 2)
            refuse_options("the URL of Sentinels names the master: redis+sentinel://host:port/master");
        where.database = segments.size() == 2 ? parse_database(segments[1]) : 0;
        return where;
    }
    if (authority.find(',') != std::string_view::npos)
        refuse_options("the URL names several hosts; those are redis+sentinel:// or redis+quorum://");
    where.hosts.push_back(parse_host(authority, "6379"));
    where.database = parse_database(path);
    return where;
}

} // namespace colock::redis::detail
