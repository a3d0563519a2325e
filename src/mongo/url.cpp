// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/url.hpp"

#include <boost/algorithm/string/predicate.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Supported mechanisms. For GSSAPI, MONGODB-AWS and MONGODB-OIDC, the driver would contact other servers and block the
/// thread meanwhile.
constexpr std::array<std::string_view, 4> mechanisms{"SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN", x509_mechanism};

bool parse_switch(const remote::url& from, std::string_view name, std::string_view value)
{
    if (value != "true" && value != "false")
        from.refuse("the URL's parameter " + std::string(name) + " is neither true nor false");
    return value == "true";
}

void parse_parameter(const remote::url& from, location& where, std::string_view name, const std::string& value)
{
    const auto is = [name](const char* known) { return boost::algorithm::iequals(name, known); };
    if (is("replicaSet")) {
        where.replica_set = value;
    } else if (is("directConnection")) {
        where.direct = parse_switch(from, "directConnection", value);
    } else if (is("authSource")) {
        where.auth_source = value;
    } else if (is("authMechanism")) {
        if (std::ranges::find(mechanisms, value) == mechanisms.end())
            from.refuse("the URL's authMechanism is none of SCRAM-SHA-256, SCRAM-SHA-1, PLAIN and MONGODB-X509; others "
                        "would block the thread");
        where.auth_mechanism = value;
    } else if (is("tls") || is("ssl")) {
        where.tls = parse_switch(from, "tls", value);
    } else if (is("tlsCAFile")) {
        where.ca_file = value;
    } else if (is("tlsCertificateKeyFile")) {
        where.certificate_key_file = value;
    } else if (is("w")) {
        if (value != "majority")
            from.refuse("the URL asks for a write concern of less than a majority, with which two could hold a lock");
    } else if (!is("appName") && !is("retryWrites") && !is("retryReads")) {
        from.refuse("the URL has a parameter that is not known; those that are: replicaSet, directConnection, "
                    "authSource, authMechanism, tls, tlsCAFile, tlsCertificateKeyFile, w, appName, retryWrites, "
                    "retryReads");
    }
}

} // namespace

location parse_url(std::string_view url)
{
    const remote::url from(url, "mongodb", "mongodb://host:port");
    if (from.scheme() == "mongodb+srv")
        from.refuse("mongodb+srv is not supported: it would have to be looked up where nothing may block; write the "
                    "hosts that it stands for, mongodb://host:port,host:port/?replicaSet=name&tls=true");
    if (from.scheme() != "mongodb")
        from.refuse("the URL's scheme is not mongodb");

    location where;
    auto [user, password] = from.credentials();
    where.user = std::move(user);
    where.password = password.value_or("");
    where.hosts = from.hosts("27017");
    where.database = from.decode(from.path(), "database");

    auto parameters = from.parameters();
    if (parameters.starts_with('#') || parameters.find('#') != std::string_view::npos)
        from.refuse("the URL has a fragment; a '#' in a password is written %23");
    if (!parameters.empty())
        parameters.remove_prefix(1);
    std::vector<std::string> names;
    for (const auto each : remote::split(parameters, '&')) {
        if (each.empty())
            continue;
        const auto equals = each.find('=');
        if (equals == std::string_view::npos)
            from.refuse("the URL has a parameter without a value; a '?' in a password is written %3F");
        const auto value = from.decode(each.substr(equals + 1), "parameter");
        parse_parameter(from, where, each.substr(0, equals), value);
        auto name = remote::lower_case(each.substr(0, equals));
        if (name == "ssl")
            name = "tls";
        if (value.empty() || std::ranges::find(names, name) != names.end())
            from.refuse("the URL's parameter " + name + (value.empty() ? " has no value" : " is given twice"));
        names.push_back(std::move(name));
    }
    const bool needs_password = !where.user.empty() && where.auth_mechanism != x509_mechanism;
    if (password.has_value() != needs_password || !where.password.empty() != needs_password)
        from.refuse("the URL has a user without a password, or a password without a user, or a password with "
                    "authMechanism=MONGODB-X509");
    if (where.direct && where.hosts.size() > 1)
        from.refuse("the URL names several hosts, and asks for a direct connection, which is to one");
    if (!where.tls && !(where.ca_file.empty() && where.certificate_key_file.empty()))
        from.refuse("the URL names TLS files, but asks for no TLS; write tls=true");
    return where;
}

} // namespace colock::inline v0::mongo::detail
