// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/settings.hpp"

#include "net/tls.hpp"
#include "net/url_option_parser.hpp"
#include "util/option_errors.hpp"

#include <bson/bson.h>

namespace colock::inline v0::mongo::detail {

namespace {

using std::chrono::milliseconds;

constexpr auto backend = "mongodb";
/// Authentication source of users that are defined outside of MongoDB.
constexpr auto external = "$external";

void check_range(const char* name, milliseconds value, milliseconds from)
{
    colock::detail::check_range(backend, name, value, from, std::chrono::hours(1));
}

void refuse(std::string reason)
{
    colock::detail::refuse_options(backend, std::move(reason));
}

bool is_servers_own(const std::string& database)
{
    return database == "admin" || database == "local" || database == "config";
}

void check_database(const std::string& name)
{
    if (name.size() > 63 || name.find_first_of(std::string_view("/\\. \"$*<>:|?\0", 13)) != std::string::npos)
        refuse("the database's name is longer than 63 bytes or has a character that no database's name may have");
}

void check_names(const settings& all)
{
    check_database(all.database);
    // Even if the options name another database, the user may be defined in the database of the URL.
    check_database(all.target.database);
    if (is_servers_own(all.database))
        refuse("the database " + all.database + " is the server's own; name another");
    if (all.collection.empty() || all.collection.size() > 120 || all.collection.starts_with("system.") ||
        all.collection.find_first_of(std::string_view("$\0", 2)) != std::string::npos)
        refuse(
            "the collection's name is empty, longer than 120 bytes, holds '$' or NUL, or is one of the server's own");
}

void use_tls_files(settings& all)
{
    const auto& target = all.target;
    const auto merge = [](std::string& option, std::string parameter, std::string_view name) {
        remote::use_program_value(parameter, option, name, backend);
        option = std::move(parameter);
    };
    merge(all.tls.ca_file, target.ca_file, "tlsCAFile");
    merge(all.tls.certificate_file, target.certificate_key_file, "tlsCertificateKeyFile");
    merge(all.tls.key_file, target.certificate_key_file, "tlsCertificateKeyFile");
    remote::check_tls_options(all.tls, backend);
    if (!target.tls && all.tls != tls_options{})
        refuse("TLS files are given, but the URL asks for no TLS; write tls=true");
    if (target.auth_mechanism == x509_mechanism && all.tls.certificate_file.empty())
        refuse("MONGODB-X509 needs a certificate: give tlsCertificateKeyFile, or options::tls");
}

/// Returns whether the user is defined outside of MongoDB.
bool is_external(const location& target)
{
    return target.auth_mechanism == x509_mechanism || target.auth_mechanism == "PLAIN";
}

/// Returns whether the driver accepts the text, which it does for UTF-8 without NUL.
bool is_text(const std::string& text)
{
    return bson_utf8_validate(text.data(), text.size(), false);
}

void check_credentials(const location& target)
{
    const bool is_x509 = target.auth_mechanism == x509_mechanism;
    if (is_x509 && (target.user.empty() || !target.password.empty()))
        refuse("MONGODB-X509 needs a user, which is the subject of the certificate, and no password");
    if (!is_x509 && target.user.empty() != target.password.empty())
        refuse("a user is given without a password, or a password without a user");
    if (!is_text(target.user) || !is_text(target.password) || !is_text(target.auth_source))
        refuse("the user, the password or the authSource is not UTF-8, or holds NUL");
    if (!is_external(target))
        return;
    if (target.user.empty())
        refuse("the URL has authMechanism=" + target.auth_mechanism + ", but there is no user");
    if (!target.tls)
        refuse("authMechanism=" + target.auth_mechanism + " is accepted over TLS only; write tls=true");
    if (!target.auth_source.empty() && target.auth_source != external)
        refuse("with authMechanism=" + target.auth_mechanism + " the authSource is $external, or left out");
}

} // namespace

settings::settings(const options& options)
    : target(parse_url(options.url)), tls(options.tls), database(options.database), collection(options.collection),
      operation_timeout(options.operation_timeout), connect_timeout(options.connect_timeout),
      idle_timeout(options.idle_timeout), poll_interval(options.poll_interval), connections(options.connections),
      purge_after(options.purge_after), max_clock_lead(options.max_clock_lead)
{
    remote::use_program_value(target.user, options.user, "user", backend);
    remote::use_program_value(target.password, options.password, "password", backend);
    check_credentials(target);
    if (target.auth_source.empty())
        target.auth_source = is_external(target) ? external : target.database.empty() ? "admin" : target.database;

    if (database.empty())
        database = target.database.empty() || is_servers_own(target.database) ? "colock" : target.database;
    check_names(*this);
    use_tls_files(*this);

    check_range("operation_timeout", operation_timeout, milliseconds(10));
    check_range("connect_timeout", connect_timeout, milliseconds(10));
    check_range("poll_interval", poll_interval, milliseconds(1));
    if (max_clock_lead)
        check_range("max_clock_lead", *max_clock_lead, milliseconds(0));
    colock::detail::check_range(backend, "purge_after", purge_after, min_purge_after, std::chrono::hours(24 * 3650));
    if (connections < 1 || connections > 64)
        refuse("connections is " + std::to_string(connections) + "; give 1 to 64");
    if (idle_timeout < milliseconds::zero()) {
        refuse("idle_timeout is " + colock::detail::in_words(idle_timeout) +
               "; give 0 to close at once, or milliseconds::max() to stay connected");
    }
}

std::string settings::address() const
{
    std::string all;
    for (const auto& each : target.hosts)
        all += (all.empty() ? "" : ",") + remote::to_text(each);
    return all;
}

} // namespace colock::inline v0::mongo::detail
