// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/settings.hpp"
#include "mongo/url.hpp"

#include <colock/error.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <utility>

using namespace colock::mongo::detail;
using namespace std::chrono_literals;
using colock::validation_error;
using colock::mongo::options;

namespace {

void check_refused(const options& given)
{
    try {
        static_cast<void>(settings(given));
        BOOST_ERROR("taken: " << given.url);
    } catch (const validation_error& refused) {
        BOOST_TEST((refused.code() == colock::errc::invalid_options));
        BOOST_TEST(std::string(refused.what()).find("secret") == std::string::npos, refused.what());
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_urls)

BOOST_AUTO_TEST_CASE(url_with_all_parts_is_parsed)
{
    const auto all = parse_url("mongodb://me:s%40cret@h1:27018,h2,[::1]:27019/locks?replicaSet=rs0&authSource=users"
                               "&authMechanism=SCRAM-SHA-1&TLS=true&tlsCAFile=%2Fca.pem&tlsCertificateKeyFile=/me.pem"
                               "&w=majority&appName=x&retryWrites=true");
    BOOST_TEST((all == location{.hosts = {{"h1", "27018"}, {"h2", "27017"}, {"::1", "27019"}},
                           .replica_set = "rs0",
                           .tls = true,
                           .ca_file = "/ca.pem",
                           .certificate_key_file = "/me.pem",
                           .user = "me",
                           .password = "s@cret",
                           .auth_source = "users",
                           .auth_mechanism = "SCRAM-SHA-1",
                           .database = "locks"}));
}

BOOST_AUTO_TEST_CASE(url_with_a_host_alone_is_parsed)
{
    for (const auto* const text : {"mongodb://h", "mongodb://h/", "mongodb://h/?", "mongodb://h?"})
        BOOST_TEST((parse_url(text) == location{.hosts = {{"h", "27017"}}}), text);
    BOOST_TEST(parse_url("mongodb://h/?directConnection=true").direct);
    BOOST_TEST((parse_url("MONGODB://H") == location{.hosts = {{"h", "27017"}}}));
}

BOOST_AUTO_TEST_CASE(unusable_url_is_refused_without_its_text)
{
    for (const std::string text : {"h:27017", "redis://h", "mongodb://", "mongodb://h,", "mongodb://h:0",
             "mongodb://secret@h", "mongodb://:secret@h", "mongodb://me:@h", "mongodb://h/?name=secret",
             "mongodb://h/?replicaSet=rs0&name=secret", "mongodb://h/?secret", "mongodb://h/#secret",
             "mongodb://h/?tls=secret", "mongodb://h/?w=1", "mongodb://h/?authMechanism=PLAIN",
             "mongodb://me:secret@h/?authMechanism=PLAIN",
             "mongodb://me:secret@h/?tls=true&authMechanism=PLAIN&authSource=secret",
             "mongodb://me:secret@h/?tls=true&authMechanism=GSSAPI", "mongodb://h/?tls=true&authMechanism=GSSAPI",
             "mongodb://me:secret@h/?tls=true&authMechanism=MONGODB-AWS",
             "mongodb://h/?tls=true&authMechanism=MONGODB-OIDC", "mongodb://a,b/?directConnection=true",
             "mongodb://h/?tlsCAFile=secret", "mongodb+srv://secret.example", "mongodb://h/a%00secret",
             "MongoDB+SRV://secret.example", "mongodb://h1/secret,h2", "mongodb://h1:1/secret,h2:1/secret",
             "mongodb://me:12/secret@h", "mongodb://me:secret@h1,me:secret@h2", "mongodb://%2Fsecret.sock",
             "mongodb://h/?tls=true&ssl=false", "mongodb://h/?replicaSet=a&replicaset=secret",
             "mongodb://h/?replicaSet=", "mongodb://h/?authSource=", "mongodb://h1, secret/"})
        check_refused({.url = text});
}

BOOST_AUTO_TEST_CASE(options_of_the_url_reach_their_members)
{
    const auto all = take_url_options(
        {.url = "mongodb://me:p@h/db?database=d&TLS=true&collection=c&tls.ca_file=/ca&tls.certificate_file=/cert"
                "&tls.key_file=/key&tls.server_name=n&operation_timeout=6s&connect_timeout=500ms&idle_timeout=1m"
                "&poll_interval=3s&connections=9&purge_after=48h&max_clock_lead=4ms&replicaSet=rs%2D0"});
    BOOST_TEST(all.url == "mongodb://me:p@h/db?TLS=true&replicaSet=rs%2D0");
    BOOST_TEST(all.database == "d");
    BOOST_TEST(all.collection == "c");
    BOOST_TEST((all.tls == colock::tls_options{
                               .ca_file = "/ca", .certificate_file = "/cert", .key_file = "/key", .server_name = "n"}));
    BOOST_TEST((all.operation_timeout == 6s));
    BOOST_TEST((all.connect_timeout == 500ms));
    BOOST_TEST((all.idle_timeout == 1min));
    BOOST_TEST((all.poll_interval == 3s));
    BOOST_TEST(all.connections == 9U);
    BOOST_TEST((all.purge_after == 48h));
    BOOST_TEST((all.max_clock_lead == 4ms));
    BOOST_TEST(parse_url(all.url).replica_set == "rs-0");
}

BOOST_AUTO_TEST_CASE(tls_files_that_differ_between_url_and_options_are_refused)
{
    const std::string url = "mongodb://h/?tls=true&tlsCAFile=/ca.pem&tlsCertificateKeyFile=/me.pem";
    const auto merged = settings({.url = url, .tls = {.ca_file = "/ca.pem", .server_name = "n"}});
    BOOST_TEST((merged.tls ==
                colock::tls_options{
                    .ca_file = "/ca.pem", .certificate_file = "/me.pem", .key_file = "/me.pem", .server_name = "n"}));
    check_refused({.url = url, .tls = {.ca_file = "/secret.pem"}});
    check_refused({.url = url, .tls = {.certificate_file = "/secret.pem"}});
    check_refused({.url = url, .tls = {.key_file = "/secret.pem"}});
}

BOOST_AUTO_TEST_CASE(srv_url_is_refused_with_an_alternative)
{
    try {
        static_cast<void>(parse_url("mongodb+srv://cluster.example"));
        BOOST_ERROR("taken");
    } catch (const validation_error& refused) {
        const std::string message = refused.what();
        BOOST_TEST(message.find("mongodb+srv is not supported") != std::string::npos, message);
        BOOST_TEST(message.find("mongodb://host:port,host:port") != std::string::npos, message);
    }
}

BOOST_AUTO_TEST_CASE(the_path_names_the_database_unless_it_is_the_servers_own)
{
    BOOST_TEST(settings({.url = "mongodb://h"}).database == "colock");
    BOOST_TEST(settings({.url = "mongodb://h/locks"}).database == "locks");
    BOOST_TEST(settings({.url = "mongodb://h/locks", .database = "others"}).database == "others");
    for (const std::string own : {"admin", "local", "config"})
        BOOST_TEST(settings({.url = "mongodb://h/" + own}).database == "colock");
    BOOST_TEST(settings({.url = "mongodb://u:p@h"}).target.auth_source == "admin");
    BOOST_TEST(settings({.url = "mongodb://u:p@h/locks"}).target.auth_source == "locks");
    BOOST_TEST(settings({.url = "mongodb://u:p@h/locks?authSource=users"}).target.auth_source == "users");
}

BOOST_AUTO_TEST_CASE(mechanisms_with_users_of_other_systems_need_tls)
{
    const auto plain = settings({.url = "mongodb://me:secret@h/locks?tls=true&authMechanism=PLAIN"});
    BOOST_TEST(plain.target.auth_source == "$external");
    const std::string x509 = "mongodb://CN%3Dme@h/?tls=true&authMechanism=MONGODB-X509";
    const colock::tls_options certified{.certificate_file = "/me.pem", .key_file = "/me.key"};
    const auto certificate = settings({.url = x509 + "&authSource=%24external", .tls = certified});
    BOOST_TEST(certificate.target.user == "CN=me");
    BOOST_TEST(certificate.target.password == "");
    BOOST_TEST(certificate.target.auth_source == "$external");
    BOOST_TEST(settings({.url = x509 + "&tlsCertificateKeyFile=/me.pem"}).target.auth_source == "$external");
    check_refused({.url = x509});
    check_refused({.url = x509, .password = "secret", .tls = certified});
    check_refused({.url = x509 + "&authSource=admin", .tls = certified});
    check_refused({.url = "mongodb://h/?tls=true&authMechanism=MONGODB-X509", .tls = certified});
    check_refused({.url = "mongodb://me:secret@h/?tls=true&authMechanism=MONGODB-X509", .tls = certified});
    check_refused({.url = "mongodb://CN%3Dme@h/?authMechanism=MONGODB-X509"});
}

BOOST_AUTO_TEST_CASE(options_out_of_their_ranges_are_refused)
{
    const std::string url = "mongodb://h";
    check_refused({.url = url, .database = "a.b"});
    check_refused({.url = url + "/secret/x", .database = "a"});
    check_refused({.url = url, .database = "admin"});
    check_refused({.url = url, .collection = ""});
    check_refused({.url = url, .collection = "system.locks"});
    check_refused({.url = url, .collection = "a$b"});
    check_refused({.url = url, .collection = std::string(121, 'a')});
    check_refused({.url = url, .user = "me"});
    check_refused({.url = url, .password = "secret"});
    check_refused({.url = url, .user = "me", .password = std::string("secret\0", 7)});
    check_refused({.url = url, .user = "me", .password = "secret\xe9"});
    check_refused({.url = url, .user = "me\xe9", .password = "secret"});
    check_refused({.url = url, .tls = {.ca_file = "/secret"}});
    check_refused({.url = url, .operation_timeout = 9ms});
    check_refused({.url = url, .connect_timeout = 2h});
    check_refused({.url = url, .idle_timeout = -1ms});
    check_refused({.url = url, .poll_interval = 0ms});
    check_refused({.url = url, .max_clock_lead = -1ms});
    check_refused({.url = url, .max_clock_lead = 1h + 1ms});
    check_refused({.url = url, .connections = 0});
    check_refused({.url = url, .connections = 65});
    check_refused({.url = url, .purge_after = 59s});
}

BOOST_AUTO_TEST_SUITE_END()
