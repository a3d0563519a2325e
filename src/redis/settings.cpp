// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/settings.hpp"

#include "net/tls.hpp"
#include "net/url_option_parser.hpp"
#include "util/cursor.hpp"
#include "util/option_errors.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

using std::chrono::milliseconds;

void check_range(const char* name, milliseconds value, milliseconds from)
{
    colock::detail::check_range("redis", name, value, from, std::chrono::hours(1));
}

/// Reads `host:port`.
std::optional<endpoint> parse_address(std::string_view text)
{
    const auto colon = text.rfind(':');
    const auto port = colon == text.npos ? std::nullopt : colock::detail::read_number(text.substr(colon + 1));
    if (colon == 0 || !port || *port == 0 || *port > 65535)
        return std::nullopt;
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']'))
        host = host.substr(1, host.size() - 2);
    return endpoint{std::string(host), std::to_string(*port)};
}

} // namespace

settings::settings(const options& options)
    : location(parse_url(options.url)), tls(options.tls), sentinel_user(options.sentinel_user),
      sentinel_password(options.sentinel_password), credentials(options.credentials), layout(options.layout),
      operation_timeout(options.operation_timeout.value_or(std::chrono::seconds(5))),
      connect_timeout(options.connect_timeout), idle_timeout(options.idle_timeout),
      health_interval(options.health_interval), poll_interval(options.poll_interval), replicas(options.replicas),
      replica_timeout(options.replica_timeout), max_clock_lead(options.max_clock_lead), address_map(options.address_map)
{
    remote::use_program_value(location.user, options.user, "user", "redis");
    remote::use_program_value(location.password, options.password, "password", "redis");
    if (credentials && !(location.user.empty() && location.password.empty()))
        refuse_options("a user or a password is given beside options::credentials; give one or the other");
    if (!location.user.empty() && location.password.empty())
        refuse_options("a user is given without a password; a password alone is written :password@host");
    if (location.master.empty() && !(sentinel_user.empty() && sentinel_password.empty()))
        refuse_options("sentinel_user or sentinel_password is given, but the URL names no Sentinels; write "
                       "redis+sentinel://, or leave it out");
    if (!sentinel_user.empty() && sentinel_password.empty())
        refuse_options("sentinel_user is given without sentinel_password; give both, or the password alone");

    if (!location.cluster && !address_map.empty())
        refuse_options("address_map is given, but the URL names no cluster; write redis+cluster://, or leave it out");
    for (const auto& [from, to] : address_map) {
        if (!parse_address(from) || !parse_address(to))
            refuse_options(
                "address_map has an entry that is not host:port; write it as in 10.0.0.1:6379=localhost:7000");
    }

    check_range("operation_timeout", operation_timeout, milliseconds(10));
    check_range("connect_timeout", connect_timeout, milliseconds(10));
    check_range("health_interval", health_interval, milliseconds(10));
    check_range("poll_interval", poll_interval, milliseconds(1));
    if (replicas > 100)
        refuse_options("replicas is " + std::to_string(replicas) + "; give the number that must confirm, 0 to 100");
    check_range("replica_timeout", replica_timeout, milliseconds(1));
    // The server answers nothing while it waits, so a longer wait would look like a dead server.
    if (replicas > 0 && replica_timeout >= std::min(health_interval, operation_timeout))
        refuse_options("replica_timeout is " + colock::detail::in_words(replica_timeout) +
                       "; give less than health_interval and operation_timeout");
    if (max_clock_lead)
        check_range("max_clock_lead", *max_clock_lead, milliseconds(0));
    if (idle_timeout < milliseconds::zero()) {
        refuse_options("idle_timeout is " + colock::detail::in_words(idle_timeout) +
                       "; give 0 to close at once, or milliseconds::max() to stay connected");
    }

    remote::check_tls_options(tls, "redis");
    if (!location.tls && tls != tls_options{})
        refuse_options("TLS files are given, but the URL asks for no TLS; write rediss://");

    prefix = options.prefix.value_or(plain() ? "" : cluster() ? "colock:" : "{colock}:");
    if (prefix.size() > 128 || prefix.find('\0') != std::string::npos)
        refuse_options("the prefix is longer than 128 bytes or contains a NUL; shorten it, or leave the NUL out");
    if (cluster() && prefix.find('{') != prefix.npos && !has_hash_tag())
        refuse_options("the prefix has a brace that does not begin a hash tag; leave it out, or write {tag}");
    if (plain()) {
        // The probe key is never written. It must never exist.
        probe_key = prefix + "{colock}#probe";
        return;
    }
    if (!prefix.ends_with(':'))
        refuse_options("the prefix does not end with a colon; write it as in \"app:\"");
    const auto base = prefix.substr(0, prefix.size() - 1) + '#';
    fence_key_ = base + (has_counter_per_slot() ? "f" : "fence");
    probe_key = base + "probe";
    group_prefix = base + "g:";
}

std::string settings::fence_key(std::optional<slot_number> slot) const
{
    return slot && has_counter_per_slot() ? fence_key_ + '{' + tag_of(*slot) + '}' : fence_key_;
}

endpoint settings::reachable(endpoint reported) const
{
    const auto found = address_map.find(remote::to_text(reported));
    return found == address_map.end() ? reported : *parse_address(found->second);
}

settings settings::for_node(endpoint node) const
{
    auto result = *this;
    result.location.hosts = {std::move(node)};
    return result;
}

bool settings::reserves(std::string_view key) const
{
    constexpr std::string_view internal = "{colock}#";
    return plain() && (key.starts_with(internal) || (prefix + std::string(key)).starts_with(internal));
}

} // namespace colock::inline v0::redis::detail
