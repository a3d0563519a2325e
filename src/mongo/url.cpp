// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/url.hpp"

#include "net/url_option_parser.hpp"

#include <boost/algorithm/string/predicate.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

using remote::set_member;

/// Supported mechanisms. For GSSAPI, MONGODB-AWS and MONGODB-OIDC, the driver would contact other servers and block the
/// thread meanwhile.
constexpr std::array<std::string_view, 4> mechanisms{"SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN", x509_mechanism};

constexpr remote::url_option<options> all_options[] = {
    {"database", set_member<&options::database>},
    {"collection", set_member<&options::collection>},
    {"tls.ca_file", set_member<&options::tls, &tls_options::ca_file>},
    {"tls.certificate_file", set_member<&options::tls, &tls_options::certificate_file>},
    {"tls.key_file", set_member<&options::tls, &tls_options::key_file>},
    {"tls.server_name", set_member<&options::tls, &tls_options::server_name>},
    {"operation_timeout", set_member<&options::operation_timeout>},
    {"connect_timeout", set_member<&options::connect_timeout>},
    {"idle_timeout", set_member<&options::idle_timeout>},
    {"poll_interval", set_member<&options::poll_interval>},
    {"connections", set_member<&options::connections>},
    {"purge_after", set_member<&options::purge_after>},
    {"max_clock_lead", set_member<&options::max_clock_lead>},
};

remote::url split_url(std::string_view text)
{
    return {text, "mongodb", "mongodb://host:port"};
}

bool parse_switch(const remote::url& from, std::string_view name, std::string_view value)
{
    if (value != "true" && value != "false")
        from.refuse("the URL's parameter " + std::string(name) + " is neither true nor false");
    return value == "true";
}

void parse_parameter(const remote::url& from, location& target, std::string_view name, const std::string& value)
{
    const auto is = [name](const char* parameter) { return boost::algorithm::iequals(name, parameter); };
    if (is("replicaSet")) {
        target.replica_set = value;
    } else if (is("directConnection")) {
        target.direct = parse_switch(from, "directConnection", value);
    } else if (is("authSource")) {
        target.auth_source = value;
    } else if (is("authMechanism")) {
        if (std::ranges::find(mechanisms, value) == mechanisms.end())
            from.refuse("the URL's authMechanism is none of SCRAM-SHA-256, SCRAM-SHA-1, PLAIN and MONGODB-X509; others "
                        "would block the thread");
        target.auth_mechanism = value;
    } else if (is("tls") || is("ssl")) {
        target.tls = parse_switch(from, "tls", value);
    } else if (is("tlsCAFile")) {
        target.ca_file = value;
    } else if (is("tlsCertificateKeyFile")) {
        target.certificate_key_file = value;
    } else if (is("w")) {
        if (value != "majority")
            from.refuse("the URL asks for a write concern of less than a majority, with which two could hold a lock");
    } else if (!is("appName") && !is("retryWrites") && !is("retryReads")) {
        from.refuse_unknown(name, "replicaSet, directConnection, authSource, authMechanism, tls, tlsCAFile, "
                                  "tlsCertificateKeyFile, w, appName, retryWrites, retryReads, " +
                                      remote::names_of(all_options));
    }
}

} // namespace

options take_url_options(options options)
{
    const auto text = std::exchange(options.url, {});
    options.url = remote::take_url_options(split_url(text), all_options, options);
    return options;
}

location parse_url(std::string_view url)
{
    const auto from = split_url(url);
    if (from.scheme() == "mongodb+srv")
        from.refuse("mongodb+srv is not supported: it would have to be looked up where nothing may block; write the "
                    "hosts that it stands for, mongodb://host:port,host:port/?replicaSet=name&tls=true");
    if (from.scheme() != "mongodb")
        from.refuse("the URL's scheme is not mongodb");

    location target;
    auto [user, password] = from.credentials();
    target.user = std::move(user);
    target.password = password.value_or("");
    target.hosts = from.hosts("27017");
    target.database = from.decode(from.path(), "database");

    from.check_no_fragment();
    std::vector<std::string> names;
    for (const auto& each : from.query()) {
        const auto value = from.decode(each.value, "parameter");
        parse_parameter(from, target, each.name, value);
        auto name = remote::lower_case(each.name);
        if (name == "ssl")
            name = "tls";
        if (value.empty() || std::ranges::find(names, name) != names.end())
            from.refuse("the URL's parameter " + name + (value.empty() ? " has no value" : " is given twice"));
        names.push_back(std::move(name));
    }
    if (password && (target.user.empty() || target.password.empty()))
        from.refuse("the URL has a user with an empty password, or a password without a user");
    if (target.direct && target.hosts.size() > 1)
        from.refuse("the URL names several hosts, and asks for a direct connection, which is to one");
    if (!target.tls && !(target.ca_file.empty() && target.certificate_key_file.empty()))
        from.refuse("the URL names TLS files, but asks for no TLS; write tls=true");
    return target;
}

} // namespace colock::inline v0::mongo::detail
