// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/certificates.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <cstdlib>
#include <filesystem>
#include <memory>

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

tls_options client_options(const certificates& from)
{
    return {
        .ca_file = from.file("ca.pem"), .certificate_file = from.file("right.pem"), .key_file = from.file("right.key")};
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_tls)

BOOST_AUTO_TEST_CASE(only_trusted_server_with_the_right_name_is_used, *boost::unit_test::precondition(server_has_tls))
{
    const certificates files;
    const auto options = client_options(files);
    {
        tls_server server(files, "right");
        {
            client_side client({.url = server.url(), .tls = options});
            const auto holder = driver::exclusive("k");
            client.test_driver.grant(holder);
            auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
            run_until(
                client.io, [&] { return server.server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
            client.test_driver.release_held(holder);
            waiting.get(client.io);
        }
        const auto check_failure = [&](tls_options with, errc expected, const std::string& why) {
            client_side client({.url = server.url(), .tls = std::move(with)});
            const auto outcome = client.test_driver.create(driver::exclusive("k"));
            BOOST_TEST(code_of(outcome) == expected);
            BOOST_TEST(outcome.error->detail.find(why) != std::string::npos, outcome.error->detail);
        };
        auto other_authority = options;
        other_authority.ca_file = files.file("other.pem");
        check_failure(other_authority, errc::misconfigured_backend, "the certificate is of an unknown authority");
        auto other_name = options;
        other_name.server_name = "elsewhere.example";
        check_failure(other_name, errc::misconfigured_backend, "the certificate is not for elsewhere.example");
        auto no_file = options;
        no_file.ca_file = files.file("absent.pem");
        check_failure(no_file, errc::invalid_options, "ca_file cannot be used: \"" + no_file.ca_file);
    }
    tls_server server(files, "named");
    client_side by_address({.url = server.url(), .tls = options});
    const auto outcome = by_address.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(outcome) == errc::misconfigured_backend);
    BOOST_TEST(outcome.error->detail.find("not for 127.0.0.1") != std::string::npos, outcome.error->detail);
    auto by_name = options;
    by_name.server_name = "named.example";
    client_side client({.url = server.url(), .tls = by_name});
    client.test_driver.grant(driver::exclusive("k"));
}

BOOST_AUTO_TEST_CASE(replaced_tls_files_are_read_again, *boost::unit_test::precondition(server_has_tls))
{
    const certificates files;
    tls_server server(files, "right");
    client_side client({.url = server.url(), .tls = client_options(files)});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    client.test_driver.release_held(claim);
    files.renew();
    server.server.kill();
    run_until(client.io, [&] { return client.events->suspensions == 1; });
    server.server.start();
    client.test_driver.grant(driver::exclusive("k"));
}

BOOST_AUTO_TEST_CASE(
    waiter_and_held_lock_survive_a_change_of_the_certificates, *boost::unit_test::precondition(server_has_tls))
{
    const certificates files;
    tls_server server(files, "right");
    asio::io_context io;
    const auto events = std::make_shared<notes>();
    const locker locks(redis::make_adapter(io.get_executor(), {.url = server.url(), .tls = client_options(files)}),
        {.retry = retry_policy::fixed(20ms), .observer = events});
    const locker others(redis::make_adapter(io.get_executor(), {.url = server.server.url()}));
    auto held = run_coro(io, locks.acquire("held", {.ttl = 1min, .renewal = renewal::automatic}));
    auto theirs = run_coro(io, others.acquire("k"));
    auto waiting = start(io, locks.acquire("k"));
    run_until(io, [&] { return locks.stats().waiting == 1; });

    // The client reads the new authority. The server keeps its old certificate.
    files.renew();
    server.server({"CLIENT", "KILL", "TYPE", "normal"});
    server.server({"CLIENT", "KILL", "TYPE", "pubsub"});
    run_until(io, [&] { return events->warned_of("unknown authority"); });
    const auto attempts = locks.stats().attempts;
    run_until(io, [&] { return locks.stats().attempts > attempts + 3; });
    BOOST_TEST(!waiting.done());
    BOOST_TEST(held.held());

    BOOST_TEST(server.server({"CONFIG", "SET", "tls-cert-file", files.file("right.pem"), "tls-key-file",
                   files.file("right.key"), "tls-ca-cert-file", files.file("ca.pem")}) == "OK");
    run_coro(io, theirs.release());
    auto granted = waiting.get(io);
    BOOST_TEST(granted.held());
    BOOST_TEST(held.held());
    run_coro(io, held.extend(1min));
    run_coro(io, granted.release());
    run_coro(io, held.release());
}

BOOST_AUTO_TEST_CASE(
    previous_tls_files_are_used_if_new_ones_are_invalid, *boost::unit_test::precondition(server_has_tls))
{
    const certificates files;
    tls_server server(files, "right");
    client_side client({.url = server.url(), .tls = client_options(files)});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    // The file is incomplete, as a file may be while it is being replaced.
    std::filesystem::resize_file(files.file("ca.pem"), 10);
    server.server({"CLIENT", "KILL", "TYPE", "normal"});
    run_until(client.io, [&] { return client.events->suspensions == 1; });
    BOOST_TEST((client.test_driver.extend(claim, 60s).status == extend_status::extended));
    BOOST_TEST(client.events->warned_of("TLS files"));
}

namespace {

/// A Sentinel with the given certificate. It names the server.
struct named_sentinel : tls_sentinel
{
    named_sentinel(const certificates& from, const std::string& name, const tls_server& master)
        : tls_sentinel(master.port, from.file(name + ".pem"), from.file(name + ".key"), from.file("ca.pem"))
    {
    }
};

redis::options options_of(const certificates& from, const std::vector<std::string>& sentinels)
{
    return {.url = "rediss+sentinel://" + hosts_of(sentinels) + "/main",
        .tls = client_options(from),
        .operation_timeout = 20s};
}

} // namespace

BOOST_AUTO_TEST_CASE(server_whose_certificate_is_not_trusted_is_left_for_the_next_address,
    *boost::unit_test::precondition(server_has_tls))
{
    const certificates files;
    // The certificate is for another name.
    tls_server wrong(files, "named");
    tls_server master(files, "right");
    const named_sentinel first(files, "right", wrong), second(files, "right", master);
    client_side client(options_of(files, {first.address(), second.address()}));
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master.server({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(
    sentinel_whose_certificate_is_not_trusted_is_left_for_the_others, *boost::unit_test::precondition(server_has_tls))
{
    const certificates files;
    tls_server master(files, "right");
    const named_sentinel first(files, "named", master), second(files, "named", master), third(files, "right", master);
    client_side client(options_of(files, {first.address(), second.address(), third.address()}));
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(master.server({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(certificates_that_are_trusted_nowhere_are_reported_with_their_servers,
    *boost::unit_test::precondition(server_has_tls))
{
    const certificates files;
    tls_server one(files, "named"), other(files, "named");
    const named_sentinel first(files, "right", one), second(files, "right", other);
    client_side client(options_of(files, {first.address(), second.address()}));
    const auto failed = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(failed) == errc::misconfigured_backend);
    for (const auto* each : {&one, &other})
        BOOST_TEST(failed.error->detail.find("127.0.0.1:" + std::to_string(each->port)) != std::string::npos,
            failed.error->detail);

    const named_sentinel untrusted(files, "named", one);
    auto settings = options_of(files, {untrusted.address()});
    settings.operation_timeout = 5s;
    client_side alone(settings);
    const auto unknown = alone.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(unknown) == errc::unavailable);
    BOOST_TEST(unknown.error->detail.find(untrusted.address()) != std::string::npos, unknown.error->detail);
    BOOST_TEST(unknown.error->detail.find("not for 127.0.0.1") != std::string::npos, unknown.error->detail);
}

BOOST_AUTO_TEST_CASE(server_without_tls_is_named_with_the_remedy)
{
    redis_server plain;
    const auto address = "127.0.0.1:" + std::to_string(plain.port());
    client_side client({.url = "rediss://" + address, .operation_timeout = 6s, .connect_timeout = 1s});
    const auto failed = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(failed) == errc::unavailable);
    BOOST_TEST(failed.error->detail.find(address) != std::string::npos, failed.error->detail);
    BOOST_TEST(failed.error->detail.find("does the server speak TLS?") != std::string::npos, failed.error->detail);
}

BOOST_AUTO_TEST_CASE(encrypted_key_is_refused_without_asking_for_a_password)
{
    const certificates files;
    files.run("openssl rsa -aes128 -passout pass:secret -in right.key -out encrypted.key");
    auto with = client_options(files);
    with.key_file = files.file("encrypted.key");
    const auto address = "127.0.0.1:" + std::to_string(free_port());
    client_side client({.url = "rediss://" + address, .tls = with});
    const auto outcome = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(outcome) == errc::invalid_options);
    BOOST_TEST(client.events->warned_of(address + " cannot be used: tls: key_file is encrypted"));
    BOOST_TEST(outcome.error->detail.find("encrypted") != std::string::npos, outcome.error->detail);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
