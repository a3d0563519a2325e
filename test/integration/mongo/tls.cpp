// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/tls.hpp"

#include "locker_scene.hpp"
#include "mongo/topology/server_discovery.hpp"
#include "scene.hpp"
#include "server.hpp"
#include "support/certificates.hpp"
#include "support/relay.hpp"
#include "support/rig.hpp"

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

/// Asks a server over TLS.
struct secured
{
    secured(std::uint16_t port, const std::string& authority, std::string server_name = {})
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
    scene test;
};

void is_not_trusted(secured& by)
{
    const auto& got = by.test.say(ping);
    BOOST_TEST(got.what == kind::unsent);
    BOOST_TEST(got.spoils);
    BOOST_TEST((got.cause.category() == asio::error::get_ssl_category()), got.cause.message());
    BOOST_TEST(got.why.find("certificate verify failed") != std::string::npos, got.why);
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_tls, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(only_a_trusted_server_with_the_right_name_is_spoken_to)
{
    const certificates known;
    const mongodb_server right(with_tls(known, "right"));
    {
        secured some(right.port(), known.file("ca.pem"));
        BOOST_TEST(some.test.say(ping).what == kind::done, some.test.last->got().why);
        // More than is read or written at a time.
        const std::string text(1'000'000, 'x');
        const auto& got = some.test.say(R"({"findAndModify": "lanes", "query": {"_id": "large"}, "update": {"t": ")" +
                                        text + R"("}, "upsert": true, "new": true})");
        BOOST_TEST(got.what == kind::done, got.why);
        BOOST_TEST(got.reply.to_json().size() > text.size());
        BOOST_TEST(some.test.all().open() == 1u);
    }
    secured others(right.port(), known.file("other.pem"));
    is_not_trusted(others);
    secured elsewhere(right.port(), known.file("ca.pem"), "elsewhere.example");
    is_not_trusted(elsewhere);
    const mongodb_server named(with_tls(known, "named"));
    secured by_address(named.port(), known.file("ca.pem"));
    is_not_trusted(by_address);
    secured by_name(named.port(), known.file("ca.pem"), "named.example");
    BOOST_TEST(by_name.test.say(ping).what == kind::done, by_name.test.last->got().why);
}

BOOST_FIXTURE_TEST_CASE(certificate_of_the_client_replaces_the_password, mongo_scene)
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

BOOST_AUTO_TEST_CASE(tls_is_not_spoken_with_those_who_do_not)
{
    const certificates known;
    secured some(shared_mongodb(), known.file("ca.pem"));
    BOOST_TEST(some.test.say(ping, 2s).what == kind::unsent);
    BOOST_TEST(some.test.all().open() == 0u);
    // And the other way round.
    const mongodb_server server(with_tls(known, "right"));
    scene plain(server.port());
    BOOST_TEST(plain.say(ping, 2s).what == kind::unsent);
}

BOOST_AUTO_TEST_CASE(a_free_lane_over_tls_whose_connection_has_ended_is_replaced)
{
    const certificates known;
    const mongodb_server server(with_tls(known, "right"));
    relay link(server.port());
    secured some(link.port(), known.file("ca.pem"));
    BOOST_TEST(some.test.say(ping).what == kind::done);
    BOOST_TEST(some.test.say(ping).what == kind::done);
    BOOST_TEST(some.test.all().open() == 1u);
    link.refuse(true);
    {
        // When the relay turns another away, it has let go of this.
        scene other(link.port());
        BOOST_TEST(other.say(ping).what == kind::unsent);
    }
    link.refuse(false);
    BOOST_TEST(some.test.say(ping).what == kind::done, some.test.last->got().why);
}

BOOST_AUTO_TEST_CASE(a_link_over_tls_that_falls_silent_or_is_cut_leaves_what_was_asked_open)
{
    const certificates known;
    const mongodb_server server(with_tls(known, "right"));
    relay link(server.port());
    secured some(link.port(), known.file("ca.pem"));
    BOOST_TEST(some.test.say(ping).what == kind::done);
    link.silence(true);
    BOOST_TEST(some.test.say(ping, 200ms).what == kind::unknown);
    // The next is connected in vain.
    BOOST_TEST(some.test.say(ping, 200ms).what == kind::unsent);
    link.silence(false);
    BOOST_TEST(some.test.say(ping).what == kind::done);
    link.silence(true);
    const auto cut = some.test.ask(ping);
    run_until(*some.test.io, [&] { return some.test.all().under_way() == 1; });
    link.refuse(true);
    BOOST_TEST(some.test.wait_for(cut).what == kind::unknown);
}

BOOST_AUTO_TEST_CASE(a_context_may_end_at_any_step_of_a_connection_over_tls)
{
    const certificates known;
    const mongodb_server server(with_tls(known, "right"));
    for (int steps = 1;; ++steps) {
        secured some(server.port(), known.file("ca.pem"));
        const auto asked = some.test.ask(ping);
        for (int n = 0; n < steps && !asked->done(); ++n)
            some.test.io->run_one();
        const bool finished = asked->done();
        some.test.io.reset();
        if (finished)
            break;
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
