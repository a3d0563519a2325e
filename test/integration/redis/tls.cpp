// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/certificates.hpp"
#include "support/print.hpp"

#include <cstdlib>
#include <filesystem>

namespace colock::testing {
namespace {

/// Skips a test if COLOCK_REDIS_WITHOUT_TLS says that the server was built without TLS.
boost::test_tools::assertion_result server_has_tls(boost::unit_test::test_unit_id)
{
    boost::test_tools::assertion_result has(!std::getenv("COLOCK_REDIS_WITHOUT_TLS"));
    has.message() << "COLOCK_REDIS_WITHOUT_TLS is set";
    return has;
}

struct tls_server
{
    tls_server(const certificates& from, const std::string& name)
        : port(free_port()), server({"--tls-port", std::to_string(port), "--tls-cert-file", from.file(name + ".pem"),
                                 "--tls-key-file", from.file(name + ".key"), "--tls-ca-cert-file", from.file("ca.pem")})
    {
    }
    [[nodiscard]] std::string url() const { return "rediss://127.0.0.1:" + std::to_string(port); }

    std::uint16_t port;
    redis_server server;
};

tls_options ours_of(const certificates& from)
{
    return {
        .ca_file = from.file("ca.pem"), .certificate_file = from.file("right.pem"), .key_file = from.file("right.key")};
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_tls)

BOOST_AUTO_TEST_CASE(only_trusted_server_with_the_right_name_is_used, *boost::unit_test::precondition(server_has_tls))
{
    const certificates known;
    const auto ours = ours_of(known);
    {
        tls_server server(known, "right");
        {
            client_side some({.url = server.url(), .tls = ours});
            const auto holder = driver::exclusive("k");
            some.speak.grant(holder);
            auto waiting = some.speak.start_acquire(driver::exclusive("k"));
            run_until(some.io, [&] { return server.server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
            some.speak.give_back(holder);
            waiting.get(some.io);
        }
        const auto fails = [&](tls_options with, errc expected, const std::string& why) {
            client_side some({.url = server.url(), .tls = std::move(with)});
            const auto outcome = some.speak.create(driver::exclusive("k"));
            BOOST_TEST(code_of(outcome) == expected);
            BOOST_TEST(outcome.error->detail.find(why) != std::string::npos, outcome.error->detail);
        };
        auto other_authority = ours;
        other_authority.ca_file = known.file("other.pem");
        fails(other_authority, errc::misconfigured_backend, "unknown authority");
        auto other_name = ours;
        other_name.server_name = "elsewhere.example";
        fails(other_name, errc::misconfigured_backend, "not for elsewhere.example");
        auto no_file = ours;
        no_file.ca_file = known.file("absent.pem");
        fails(no_file, errc::invalid_options, "ca_file");
    }
    tls_server server(known, "named");
    client_side by_address({.url = server.url(), .tls = ours});
    const auto outcome = by_address.speak.create(driver::exclusive("k"));
    BOOST_TEST(code_of(outcome) == errc::misconfigured_backend);
    BOOST_TEST(outcome.error->detail.find("not for 127.0.0.1") != std::string::npos, outcome.error->detail);
    auto by_name = ours;
    by_name.server_name = "named.example";
    client_side some({.url = server.url(), .tls = by_name});
    some.speak.grant(driver::exclusive("k"));
}

BOOST_AUTO_TEST_CASE(replaced_tls_files_are_read_again, *boost::unit_test::precondition(server_has_tls))
{
    const certificates known;
    tls_server server(known, "right");
    client_side some({.url = server.url(), .tls = ours_of(known)});
    const auto claim = driver::exclusive("k");
    some.speak.grant(claim);
    some.speak.give_back(claim);
    known.renew();
    server.server.kill();
    run_until(some.io, [&] { return some.events->suspensions == 1; });
    server.server.start();
    some.speak.grant(driver::exclusive("k"));
}

BOOST_AUTO_TEST_CASE(
    previous_tls_files_are_used_if_new_ones_are_invalid, *boost::unit_test::precondition(server_has_tls))
{
    const certificates known;
    tls_server server(known, "right");
    client_side some({.url = server.url(), .tls = ours_of(known)});
    const auto claim = driver::exclusive("k");
    some.speak.grant(claim);
    // The file is incomplete, as a file may be while it is being replaced.
    std::filesystem::resize_file(known.file("ca.pem"), 10);
    server.server({"CLIENT", "KILL", "TYPE", "normal"});
    run_until(some.io, [&] { return some.events->suspensions == 1; });
    BOOST_TEST((some.speak.extend(claim, 60s).status == extend_status::extended));
    BOOST_TEST(some.events->warned_of("TLS files"));
}

BOOST_AUTO_TEST_CASE(encrypted_key_is_refused_without_asking_for_a_password)
{
    const certificates known;
    known.run("openssl rsa -aes128 -passout pass:secret -in right.key -out encrypted.key");
    auto with = ours_of(known);
    with.key_file = known.file("encrypted.key");
    client_side some({.url = "rediss://127.0.0.1:" + std::to_string(free_port()), .tls = with});
    const auto outcome = some.speak.create(driver::exclusive("k"));
    BOOST_TEST(code_of(outcome) == errc::invalid_options);
    BOOST_TEST(outcome.error->detail.find("encrypted") != std::string::npos, outcome.error->detail);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
