// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/tls.hpp"

#include "mongo/topology/server_discovery.hpp"
#include "mongo_fixture.hpp"
#include "pool_fixture.hpp"
#include "server.hpp"
#include "support/certificates.hpp"
#include "support/faulty_proxy.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/ssl/error.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

std::vector<std::string> with_tls(const certificates& known, const std::string& name)
{
    return {"--tls-cert-file", known.file(name + ".pem"), "--tls-key-file", known.file(name + ".key")};
}

/// A connection pool that uses TLS.
struct tls_pool
{
    tls_pool(std::uint16_t port, const std::string& authority, std::string server_name = {})
        : trusts(tls_options{.ca_file = authority}), context(trusts.share()),
          test({.host = "127.0.0.1",
                   .port = std::to_string(port),
                   .tls = &context,
                   .server_name = std::move(server_name)},
              2)
    {
    }

    remote::tls_material trusts;
    asio::ssl::context context;
    pool_fixture test;
};

void is_not_trusted(tls_pool& by)
{
    const auto& got = by.test.ask_and_wait(ping);
    BOOST_TEST(got.outcome == kind::unsent);
    BOOST_TEST(got.ends_connection);
    BOOST_TEST((got.cause.category() == asio::error::get_ssl_category()), got.cause.message());
    BOOST_TEST(got.text.find("certificate verify failed") != std::string::npos, got.text);
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_tls, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(untrusted_or_misnamed_server_is_refused)
{
    const certificates known;
    const mongodb_server right(with_tls(known, "right"));
    {
        tls_pool pool(right.port(), known.file("ca.pem"));
        BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done, pool.test.last_command->result().text);
        // The text is larger than one read or write.
        const std::string text(1'000'000, 'x');
        const auto& got =
            pool.test.ask_and_wait(R"({"findAndModify": "pool_test", "query": {"_id": "large"}, "update": {"t": ")" +
                                   text + R"("}, "upsert": true, "new": true})");
        BOOST_TEST(got.outcome == kind::done, got.text);
        BOOST_TEST(got.reply.to_json().size() > text.size());
        BOOST_TEST(pool.test.all().open_count() == 1u);
    }
    tls_pool others(right.port(), known.file("other.pem"));
    is_not_trusted(others);
    tls_pool elsewhere(right.port(), known.file("ca.pem"), "elsewhere.example");
    is_not_trusted(elsewhere);
    const mongodb_server named(with_tls(known, "named"));
    tls_pool by_address(named.port(), known.file("ca.pem"));
    is_not_trusted(by_address);
    tls_pool by_name(named.port(), known.file("ca.pem"), "named.example");
    BOOST_TEST(by_name.test.ask_and_wait(ping).outcome == kind::done, by_name.test.last_command->result().text);
}

BOOST_FIXTURE_TEST_CASE(certificate_of_the_client_replaces_the_password, mongo_fixture,
    *boost::unit_test::precondition(not_ferretdb("users with certificates")))
{
    const certificates known;
    own.emplace(std::vector<std::string>{"--sync-on-commit"});
    server = &*own;
    static_cast<void>(ask(
        R"({"createUser":"CN=x","roles":[{"role":"root","db":"admin"}],"mechanisms":["MONGODB-X509"]})", "$external"));
    auto secured_by = with_tls(known, "right");
    secured_by.insert(secured_by.end(), {"--tls-ca-file", known.file("ca.pem"), "--auth"});
    server->kill();
    server->start(secured_by);
    const auto add_as = [&](const std::string& user) {
        auto how = options("mongodb://" + user + "@127.0.0.1:" + std::to_string(server->port()) +
                           "/?directConnection=true&tls=true&authMechanism=MONGODB-X509");
        how.tls = {.ca_file = known.file("ca.pem"),
            .certificate_file = known.file("right.pem"),
            .key_file = known.file("right.key")};
        return add(how);
    };
    run(run(add_as("CN%3Dx").acquire("k")).release(on_failure::raise));
    COLOCK_THROWS(create_error, errc::access_denied, run(add_as("CN%3Dy").acquire("k")));
}

BOOST_AUTO_TEST_CASE(tls_and_plain_endpoints_do_not_connect)
{
    const certificates known;
    tls_pool pool(shared_mongodb(), known.file("ca.pem"));
    BOOST_TEST(pool.test.ask_and_wait(ping, 2s).outcome == kind::unsent);
    BOOST_TEST(pool.test.all().open_count() == 0u);
    // A server with TLS must not be used without TLS, either.
    const mongodb_server server(with_tls(known, "right"));
    pool_fixture plain(server.port());
    BOOST_TEST(plain.ask_and_wait(ping, 2s).outcome == kind::unsent);
}

BOOST_AUTO_TEST_CASE(free_tls_connection_is_replaced_after_its_end)
{
    const certificates known;
    const mongodb_server server(with_tls(known, "right"));
    faulty_proxy link(server.port());
    tls_pool pool(link.port(), known.file("ca.pem"));
    BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done);
    BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done);
    BOOST_TEST(pool.test.all().open_count() == 1u);
    link.refuse(true);
    {
        // When the proxy refuses another connection, it has closed the existing one.
        pool_fixture other(link.port());
        BOOST_TEST(other.ask_and_wait(ping).outcome == kind::unsent);
    }
    link.refuse(false);
    BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done, pool.test.last_command->result().text);
}

BOOST_AUTO_TEST_CASE(silent_or_cut_tls_connection_makes_the_outcome_unknown)
{
    const certificates known;
    const mongodb_server server(with_tls(known, "right"));
    faulty_proxy link(server.port());
    tls_pool pool(link.port(), known.file("ca.pem"));
    BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done);
    link.silence(true);
    BOOST_TEST(pool.test.ask_and_wait(ping, 200ms).outcome == kind::unknown);
    // The link is still silent, so no other connection can be made.
    BOOST_TEST(pool.test.ask_and_wait(ping, 200ms).outcome == kind::unsent);
    link.silence(false);
    BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done);
    link.silence(true);
    const auto cut = pool.test.ask(ping);
    run_until(*pool.test.io, [&] { return pool.test.all().in_flight() == 1; });
    link.refuse(true);
    BOOST_TEST(pool.test.wait_for(cut).outcome == kind::unknown);
}

BOOST_AUTO_TEST_CASE(a_context_may_end_at_any_step_of_a_connection_over_tls)
{
    const certificates known;
    const mongodb_server server(with_tls(known, "right"));
    for (int steps = 1;; ++steps) {
        tls_pool pool(server.port(), known.file("ca.pem"));
        const auto asked = pool.test.ask(ping);
        for (int n = 0; n < steps && !asked->done(); ++n)
            pool.test.io->run_one();
        const bool finished = asked->done();
        pool.test.io.reset();
        if (finished)
            break;
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
