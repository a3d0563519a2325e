// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_fixture.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/error.hpp>

#include <optional>
#include <string>
#include <utility>

namespace colock::testing {
namespace {

constexpr auto short_session = 2s;

/// A server that dies while lockers use it, and lockers with a short timeout of operations.
struct server_away : locker_fixture
{
    server_away() : server_away(std::make_unique<zookeeper_server>()) {}
    explicit server_away(std::unique_ptr<zookeeper_server> only)
        : locker_fixture(zookeeper_url(only->port()), [port = only->port()] { return port; }), server(std::move(only))
    {
    }

    [[nodiscard]] locker add_with_short_timeouts()
    {
        auto how = options(short_session);
        how.operation_timeout = 500ms;
        return locker(make_adapter(how), {.observer = events});
    }
    /// Checks that the context stops without a shutdown.
    void check_context_runs_out_of_work()
    {
        io.restart();
        io.run_for(20s);
        BOOST_TEST(io.stopped());
    }

    std::unique_ptr<zookeeper_server> server;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_away, server_away)

BOOST_AUTO_TEST_CASE(context_runs_out_of_work_after_a_held_lock_was_dropped)
{
    {
        const auto ours = add_with_short_timeouts();
        const auto held = run(ours.acquire("k"));
        server->kill();
    }
    check_context_runs_out_of_work();
}

BOOST_AUTO_TEST_CASE(release_is_settled_without_proof_after_the_session_timeout)
{
    const auto ours = add_with_short_timeouts();
    auto held = std::optional(run(ours.acquire("k")));
    server->kill();
    const auto dead = lease_clock::now();
    held.reset();
    until([&] { return ours.stats().settling == 0; });
    BOOST_TEST((lease_clock::now() - dead >= short_session - 100ms));
    BOOST_TEST((lease_clock::now() - dead < short_session + 5s));
    BOOST_TEST(ours.stats().unproven == 1U);
    // The lock is free only when the server has ended the old session.
    server->start();
    run(run(ours.acquire("k")).release(on_failure::raise));
    BOOST_TEST(ours.stats().unproven == 1U);
    static_cast<void>(run(ours.shutdown(5s)));
}

BOOST_AUTO_TEST_CASE(release_is_proven_while_the_session_can_be_resumed)
{
    const auto ours = add_with_short_timeouts();
    auto held = std::optional(run(ours.acquire("k")));
    server->kill();
    held.reset();
    server->start();
    until([&] { return ours.stats().settling == 0; });
    BOOST_TEST(ours.stats().unproven == 0U);
    run(run(ours.acquire("k")).release(on_failure::raise));
    static_cast<void>(run(ours.shutdown(5s)));
}

BOOST_AUTO_TEST_CASE(error_names_the_server_and_the_cause)
{
    const auto why = [&](std::string url) {
        auto how = options(short_session, std::move(url));
        how.operation_timeout = 3s;
        const locker ours(make_adapter(how));
        const auto failed = required_error<create_error>(
            [&] { static_cast<void>(run(ours.acquire("k", {.retry = retry_policy::never()}))); });
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        BOOST_TEST(std::string(failed.what()).find("ZOO_") == std::string::npos, failed.what());
        BOOST_TEST(std::string(failed.what()).find("retcode") == std::string::npos, failed.what());
        return failed;
    };
    server->pause();
    BOOST_TEST((why(zookeeper_url(server->port())).cause() == asio::error::timed_out));
    server->kill();
    const auto refused = why(zookeeper_url(server->port()));
    BOOST_TEST((refused.cause() == asio::error::connection_refused));
    BOOST_TEST(std::string(refused.what()).find("127.0.0.1:" + std::to_string(server->port())) != std::string::npos,
        refused.what());
    const auto unknown = why("zookeeper://no.such.host.invalid");
    BOOST_TEST((unknown.cause() == asio::error::host_not_found), unknown.what());
    BOOST_TEST(std::string(unknown.what()).find("no.such.host.invalid") != std::string::npos, unknown.what());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
