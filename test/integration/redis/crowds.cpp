// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// What ends at one moment for thousands ends in parts: the event loop has others to serve.

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

/// What one turn may end, and what happens to fall together with it.
constexpr std::size_t most_per_handler = 2 * 256;

/// Thousands of attempts that are made at one moment, and how many of them ended in one handler at most.
struct crowd
{
    explicit crowd(redis_server& server, redis::options settings = {}, std::size_t size = 5'000) : size(size)
    {
        settings.url = server.url();
        some.emplace(std::move(settings));
    }

    void attempt()
    {
        const auto now = lease_clock::now();
        for (std::size_t i = 0; i < size; ++i) {
            claims.push_back(driver::exclusive(std::to_string(i)));
            claims.back()->set_sent(now);
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
        backend().start_close(deadline, completion<closed>([this](closed) { over = true; }));
    }
    template <class Condition>
    void run_until(Condition met)
    {
        const auto limit = lease_clock::now() + 30s;
        while (!met()) {
            BOOST_TEST_REQUIRE((lease_clock::now() < limit));
            const auto before = ended;
            some->io.run_one_for(100ms);
            most = std::max(most, ended - before);
        }
    }
    void run_until_ended()
    {
        run_until([&] { return ended == size; });
        BOOST_TEST(most <= most_per_handler);
    }
    [[nodiscard]] adapter& backend() { return some->speak.backend(); }

    const std::size_t size;
    std::optional<client_side> some;
    std::vector<plain_claim_ptr> claims;
    std::map<error_code, std::size_t> failed;
    std::size_t ended = 0;
    std::size_t ended_after_close = 0;
    std::size_t most = 0;
    bool over = false;
};

/// Takes connections, and answers nothing.
struct silent_server : redis_server
{
    silent_server() { pause(); }
    ~silent_server() { resume(); }
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_crowds)

BOOST_AUTO_TEST_CASE(attempts_that_cannot_be_sent_in_time_end_in_parts)
{
    silent_server server;
    crowd f(server, {.operation_timeout = 300ms});
    f.attempt();
    f.run_until_ended();
    BOOST_TEST(f.failed[errc::unavailable] == f.size);
}

BOOST_AUTO_TEST_CASE(attempts_that_are_not_answered_in_time_end_in_parts)
{
    redis_server server;
    crowd f(server, {.operation_timeout = 300ms});
    f.some->speak.grant(driver::exclusive("first"));
    server.pause();
    f.attempt();
    f.run_until_ended();
    server.resume();
    BOOST_TEST(f.failed[errc::outcome_unknown] > 0u);
    BOOST_TEST(f.failed[errc::unavailable] > 0u);
}

BOOST_AUTO_TEST_CASE(attempts_that_nobody_wants_any_more_end_in_parts)
{
    silent_server server;
    crowd f(server, {.operation_timeout = 1h});
    f.attempt();
    for (const auto& each : f.claims)
        each->cancel();
    f.run_until_ended();
}

BOOST_AUTO_TEST_CASE(attempts_that_are_refused_together_end_in_parts)
{
    redis_server server;
    crowd f(server, {.user = "nobody", .password = "wrong"});
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
            crowd f(server, {.operation_timeout = 1h}, attempts);
            if (connected)
                f.some->speak.grant(driver::exclusive("first"));
            server.pause();
            f.attempt();
            // Some of them are sent, if there is a connection.
            f.run_until([&] { return f.some->io.poll_one() == 0; });
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
