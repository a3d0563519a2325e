// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

using system_clock = std::chrono::system_clock;
using credentials_completion = completion<redis::credentials>;

void add_user(redis_server& server, std::string_view name, std::string_view password)
{
    server({"ACL", "SETUSER", name, "on", ">" + std::string(password), "~{colock}*", "&*", "+@all"});
}

/// Makes the server refuse connections without credentials.
void close_default_user(redis_server& server)
{
    // The connection of the test itself stays authenticated.
    server({"ACL", "SETUSER", "default", "resetpass", ">nobody knows"});
}

/// Returns the fields `id` and `user` of each connection of colock.
std::vector<std::pair<std::string, std::string>> connections_of(redis_server& server)
{
    std::vector<std::pair<std::string, std::string>> found;
    std::vector<std::string> lines;
    const auto list = server({"CLIENT", "LIST"});
    boost::split(lines, list, boost::is_any_of("\n"));
    for (const auto& line : lines) {
        const auto field = [&](const std::string& name) {
            const auto at = line.find(name + "=");
            return at == line.npos ? std::string()
                                   : line.substr(at + name.size() + 1, line.find(' ', at) - at - name.size() - 1);
        };
        if (line.find(" name=colock ") != line.npos)
            found.emplace_back(field("id"), field("user"));
    }
    std::ranges::sort(found);
    return found;
}

/// Gives the listed credentials one after the other, and the last of them from then on.
struct source
{
    explicit source(std::vector<redis::credentials> list) : answers(std::move(list)) {}

    [[nodiscard]] std::function<void(credentials_completion)> function()
    {
        return [this](credentials_completion done) {
            done(answers[std::min(calls, answers.size() - 1)]);
            ++calls;
        };
    }

    std::vector<redis::credentials> answers;
    std::size_t calls = 0;
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_credentials)

BOOST_AUTO_TEST_CASE(each_connection_asks_for_credentials)
{
    redis_server server;
    add_user(server, "app", "one");
    close_default_user(server);
    source given(std::vector<redis::credentials>{{.user = "app", .password = "one"}});
    client_side client({.url = server.url(), .credentials = given.function()});
    const auto holder = driver::exclusive("k");
    client.test_driver.grant(holder);
    BOOST_TEST(given.calls == 1U);
    // A waiter needs the connection for messages.
    const auto waiter = driver::exclusive("k");
    auto waiting = start(client.io, acquire(client.test_driver.shared_backend(), waiter));
    run_until(client.io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    BOOST_TEST(given.calls == 2U);

    server({"CLIENT", "KILL", "USER", "app"});
    run_until(client.io, [&] { return given.calls == 4U && connections_of(server).size() == 2; });
    client.test_driver.release_held(holder);
    waiting.get(client.io);
    client.test_driver.release_held(waiter);
}

BOOST_AUTO_TEST_CASE(open_connections_get_new_credentials_before_the_old_ones_expire)
{
    redis_server server;
    add_user(server, "old", "one");
    add_user(server, "new", "two");
    close_default_user(server);
    // A connection for requests and one for messages, and their renewals.
    const auto expires = system_clock::now() + 4s;
    source given({{.user = "old", .password = "one", .valid_until = expires},
        {.user = "old", .password = "one", .valid_until = expires}, {.user = "new", .password = "two"}});
    client_side client({.url = server.url(), .credentials = given.function()});
    const auto holder = driver::exclusive("k");
    client.test_driver.grant(holder);
    const auto waiter = driver::exclusive("k");
    auto waiting = client.test_driver.start_acquire(waiter);
    run_until(client.io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    const auto before = connections_of(server);
    BOOST_TEST_REQUIRE(before.size() == 2U);
    BOOST_TEST(before[0].second == "old");

    run_until(client.io, [&] {
        return std::ranges::all_of(connections_of(server), [](const auto& each) { return each.second == "new"; });
    });
    // Four fifths of the validity have passed.
    BOOST_TEST((system_clock::now() < expires));
    BOOST_TEST((system_clock::now() > expires - 2s));
    const auto after = connections_of(server);
    BOOST_TEST_REQUIRE(after.size() == 2U);
    BOOST_TEST(after[0].first == before[0].first);
    BOOST_TEST(after[1].first == before[1].first);
    BOOST_TEST(client.events->suspensions == 0);
    BOOST_TEST(!client.events->warned_of("renewed"));
    BOOST_TEST(given.calls == 4U);
    server({"ACL", "DELUSER", "old"});
    client.test_driver.release_held(holder);
    waiting.get(client.io);
    client.test_driver.release_held(waiter);
}

BOOST_AUTO_TEST_CASE(failed_renewal_is_reported_and_repeated)
{
    redis_server server;
    add_user(server, "app", "one");
    close_default_user(server);
    source given({{.user = "app", .password = "one", .valid_until = system_clock::now() + 1s},
        {.error = make_failure(errc::unavailable, "the token service is down")}, {},
        {.user = "app", .password = "wrong-and-secret"}, {.user = "app", .password = "one"}});
    client_side client({.url = server.url(), .credentials = given.function(), .idle_timeout = 1min});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    run_until(client.io, [&] { return client.events->warned_of("the token service is down"); });
    run_until(client.io, [&] { return client.events->warned_of("WRONGPASS"); });
    for (const auto& each : client.events->warnings)
        BOOST_TEST(each.find("secret") == std::string::npos, each);
    // Credentials that are not accepted do not end the renewals.
    run_until(client.io, [&] { return given.calls == 5U; });
    // The connection remains usable.
    BOOST_TEST(client.events->suspensions == 0);
    client.test_driver.release_held(claim);
}

BOOST_AUTO_TEST_CASE(failure_ends_operations_only_if_access_is_denied)
{
    redis_server server;
    add_user(server, "app", "one");
    close_default_user(server);
    source denied({{.error = make_failure(errc::access_denied, "the role may not use this server")}});
    client_side refused({.url = server.url(), .credentials = denied.function(), .operation_timeout = 20s});
    const auto begin = std::chrono::steady_clock::now();
    const auto outcome = refused.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(outcome) == errc::access_denied);
    BOOST_TEST(outcome.error->detail.find("the role may not") != std::string::npos, outcome.error->detail);
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 10s));

    source nothing({{.user = "app"}});
    client_side empty({.url = server.url(), .credentials = nothing.function(), .operation_timeout = 20s});
    const auto without = empty.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(without) == errc::access_denied);
    BOOST_TEST(without.error->detail.find("no password") != std::string::npos, without.error->detail);

    // Any other code counts as unavailable, and the attempt is repeated.
    source late({{.error = make_failure(errc::misconfigured_backend, "no route to the token service")},
        {.user = "app", .password = "one"}});
    client_side patient({.url = server.url(), .credentials = late.function(), .operation_timeout = 20s});
    const auto claim = driver::exclusive("k");
    patient.test_driver.grant(claim);
    BOOST_TEST(late.calls == 2U);
    BOOST_TEST(patient.events->obstacle_detail.find("no route") != std::string::npos, patient.events->obstacle_detail);
    patient.test_driver.release_held(claim);
}

BOOST_AUTO_TEST_CASE(refusal_of_the_connection_for_messages_is_reported)
{
    redis_server server;
    add_user(server, "app", "one");
    close_default_user(server);
    source given({{.user = "app", .password = "one"}, {.error = make_failure(errc::access_denied, "no second token")}});
    client_side client({.url = server.url(), .credentials = given.function()});
    const auto holder = driver::exclusive("k");
    client.test_driver.grant(holder);
    const locker locks(client.test_driver.shared_backend());
    auto waiting = start(client.io, locks.acquire("k"));
    run_until(client.io, [&] { return client.events->warned_of("connection for messages"); });
    BOOST_TEST(client.events->warned_of("no second token"));
    client.test_driver.release_held(holder);
    // The waiter asks again by itself.
    auto granted = waiting.get(client.io);
    run_coro(client.io, granted.release());
}

BOOST_AUTO_TEST_CASE(silent_or_throwing_function_fails_the_attempt)
{
    redis_server server;
    std::vector<credentials_completion> kept;
    {
        client_side client({.url = server.url(),
            .credentials = [&](credentials_completion done) { kept.push_back(std::move(done)); },
            .operation_timeout = 500ms,
            .connect_timeout = 100ms});
        const auto outcome = client.test_driver.create(driver::exclusive("k"));
        BOOST_TEST(code_of(outcome) == errc::unavailable);
        BOOST_TEST(outcome.error->detail.find("connect_timeout") != std::string::npos, outcome.error->detail);
        BOOST_TEST(kept.size() >= 2U);
        // The result of an earlier attempt has no effect.
        kept.front()({.password = "late"});
        run_ready(client.io);
    }
    // The adapter and its context are gone.
    for (auto& each : kept) {
        if (each)
            each({.password = "late"});
    }

    for (const bool is_standard : {true, false}) {
        client_side strange({.url = server.url(),
            .credentials =
                [is_standard](credentials_completion) {
                    if (is_standard)
                        throw std::invalid_argument("no file");
                    throw 42;
                },
            .operation_timeout = 500ms});
        BOOST_TEST(code_of(strange.test_driver.create(driver::exclusive("k"))) == errc::unavailable);
    }

    client_side throwing({.url = server.url(),
        .credentials = [](credentials_completion) { throw std::runtime_error("no configuration"); },
        .operation_timeout = 500ms});
    const auto outcome = throwing.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(outcome) == errc::unavailable);
    BOOST_TEST(outcome.error->detail.find("no configuration") != std::string::npos, outcome.error->detail);
}

BOOST_AUTO_TEST_CASE(close_does_not_wait_for_credentials)
{
    redis_server server;
    std::vector<credentials_completion> kept;
    client_side client({.url = server.url(),
        .credentials = [&](credentials_completion done) { kept.push_back(std::move(done)); },
        .connect_timeout = 1min});
    auto creating = start(client.io, client.test_driver.backend().create(sent_now(driver::exclusive("k"))));
    run_until(client.io, [&] { return kept.size() == 1; });
    run_coro(client.io, client.test_driver.backend().close(100ms));
    BOOST_TEST(code_of(creating.get(client.io)) == errc::unavailable);
    // Nothing keeps the context running.
    client.io.restart();
    BOOST_TEST(client.io.run_for(10s) < 100U);
    BOOST_TEST(client.io.stopped());
}

BOOST_AUTO_TEST_CASE(renewal_does_not_keep_the_context_running)
{
    redis_server server;
    add_user(server, "app", "one");
    close_default_user(server);
    source given({{.user = "app", .password = "one", .valid_until = system_clock::now() + 1h},
        {.user = "app", .password = "one", .valid_until = system_clock::now() + 1h}});
    client_side client({.url = server.url(), .credentials = given.function(), .idle_timeout = 50ms});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    client.test_driver.release_held(claim);
    client.io.restart();
    client.io.run_for(20s);
    BOOST_TEST(client.io.stopped());
}

BOOST_AUTO_TEST_CASE(result_may_come_from_another_thread)
{
    redis_server server;
    add_user(server, "app", "one");
    close_default_user(server);
    asio::thread_pool pool(1);
    client_side client({.url = server.url(), .credentials = [&](credentials_completion done) {
                            asio::post(
                                pool, [done = std::move(done)]() mutable { done({.user = "app", .password = "one"}); });
                        }});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    client.test_driver.release_held(claim);
    pool.join();
}

BOOST_AUTO_TEST_CASE(master_that_sentinels_name_gets_the_credentials)
{
    redis_server server;
    add_user(server, "app", "one");
    close_default_user(server);
    const sentinel names(server.port());
    source given(std::vector<redis::credentials>{{.user = "app", .password = "one"}});
    client_side client({.url = "redis+sentinel://" + names.address() + "/main", .credentials = given.function()});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    BOOST_TEST(given.calls >= 1U);
    client.test_driver.release_held(claim);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
