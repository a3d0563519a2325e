// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Thousands of operations that end at the same time end in batches, so that the event loop can handle other events.

#include "fixture.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// Limit of the operations that end in one handler, doubled because other completions may run in the same handler.
constexpr std::size_t max_per_handler = 2 * 256;

/// Starts thousands of attempts at once, and counts how many of them end in a single handler at most.
struct many_attempts
{
    explicit many_attempts(redis_server& server, redis::options settings = {}, std::size_t size = 5'000) : size(size)
    {
        settings.url = server.url();
        client.emplace(std::move(settings));
    }

    void attempt()
    {
        const auto now = lease_clock::now();
        for (std::size_t i = 0; i < size; ++i) {
            claims.push_back(driver::exclusive(std::to_string(i)));
            claims.back()->set_operation_start(now);
            backend().start_create(claims.back(), completion<create_outcome>([this](create_outcome outcome) {
                ++ended;
                if (outcome.status == create_status::failed)
                    ++failed[outcome.error->code];
                ended_after_close += over ? 1 : 0;
            }));
        }
    }
    void close(lease_clock::duration deadline)
    {
        backend().start_close(deadline, completion<close_outcome>([this](close_outcome) { over = true; }));
    }
    template <class Condition>
    void run_until(Condition met)
    {
        const auto limit = lease_clock::now() + 30s;
        while (!met()) {
            BOOST_TEST_REQUIRE((lease_clock::now() < limit));
            const auto before = ended;
            client->io.run_one_for(100ms);
            max_ended_per_handler = std::max(max_ended_per_handler, ended - before);
        }
    }
    void run_until_ended()
    {
        run_until([&] { return ended == size; });
        BOOST_TEST(max_ended_per_handler <= max_per_handler);
    }
    [[nodiscard]] adapter& backend() { return client->test_driver.backend(); }

    const std::size_t size;
    std::optional<client_side> client;
    std::vector<plain_claim_ptr> claims;
    std::map<error_code, std::size_t> failed;
    std::size_t ended = 0;
    std::size_t ended_after_close = 0;
    std::size_t max_ended_per_handler = 0;
    bool over = false;
};

/// Accepts connections and answers nothing.
struct silent_server : redis_server
{
    silent_server() { pause(); }
    ~silent_server() { resume(); }
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_many_waiters)

BOOST_AUTO_TEST_CASE(unsent_overdue_attempts_end_in_batches)
{
    silent_server server;
    many_attempts f(server, {.operation_timeout = 300ms});
    f.attempt();
    f.run_until_ended();
    BOOST_TEST(f.failed[errc::unavailable] == f.size);
}

BOOST_AUTO_TEST_CASE(unanswered_overdue_attempts_end_in_batches)
{
    redis_server server;
    many_attempts f(server, {.operation_timeout = 300ms});
    f.client->test_driver.grant(driver::exclusive("first"));
    server.pause();
    f.attempt();
    f.run_until_ended();
    server.resume();
    BOOST_TEST(f.failed[errc::outcome_unknown] > 0u);
    BOOST_TEST(f.failed[errc::unavailable] > 0u);
}

BOOST_AUTO_TEST_CASE(attempts_of_a_lost_connection_end_in_batches)
{
    redis_server server;
    many_attempts f(server, {.operation_timeout = 1s});
    f.client->test_driver.grant(driver::exclusive("first"));
    server.pause();
    f.attempt();
    f.run_until([&] { return f.client->io.poll_one() == 0; });
    server.kill();
    f.run_until_ended();
    BOOST_TEST(f.failed[errc::outcome_unknown] > max_per_handler);
}

BOOST_AUTO_TEST_CASE(cancelled_attempts_end_in_batches)
{
    silent_server server;
    many_attempts f(server, {.operation_timeout = 1h});
    f.attempt();
    for (const auto& each : f.claims)
        each->cancel();
    f.run_until_ended();
}

BOOST_AUTO_TEST_CASE(refused_attempts_end_in_batches)
{
    redis_server server;
    many_attempts f(server, {.user = "nobody", .password = "wrong"});
    f.attempt();
    f.run_until_ended();
    BOOST_TEST(f.failed[errc::access_denied] == f.size);
}

BOOST_AUTO_TEST_CASE(a_close_is_over_when_the_last_part_has_ended)
{
    struct row
    {
        bool connected;
        std::size_t attempts;
    };
    for (const auto& [connected, attempts] : {row{false, 5'000}, row{true, 5'000}, row{true, 5}}) {
        BOOST_TEST_CONTEXT("connected: " << connected << ", attempts: " << attempts)
        {
            redis_server server;
            many_attempts f(server, {.operation_timeout = 1h}, attempts);
            if (connected)
                f.client->test_driver.grant(driver::exclusive("first"));
            server.pause();
            f.attempt();
            // If there is a connection, some of the attempts are sent.
            f.run_until([&] { return f.client->io.poll_one() == 0; });
            f.close(0ms);
            f.run_until([&] { return f.over; });
            BOOST_TEST(f.ended == f.size);
            f.run_until_ended();
            BOOST_TEST(f.ended_after_close == 0u);
            server.resume();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
