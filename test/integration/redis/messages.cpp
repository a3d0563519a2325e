// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Tests of the connection that receives the messages of releases: to which server it leads, how refusals are handled,
// and how it serves many waiters.

#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

constexpr std::string_view busy_reply = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL\r\n";

/// Number of calls of the command; -1 if it cannot be parsed.
int calls_of(redis_server& server, const std::string& command)
{
    const auto reply = server({"INFO", "commandstats"});
    const auto at = reply.find("cmdstat_" + command + ":calls=");
    if (at == std::string::npos)
        return 0;
    const auto digits = reply.find('=', at) + 1;
    int calls = -1;
    std::from_chars(reply.data() + digits, reply.data() + reply.size(), calls);
    return calls;
}

bool listened_to(redis_server& server, const std::string& key)
{
    return server({"PUBSUB", "NUMSUB", "{colock}:" + key}) == "{colock}:" + key + "\n1\n";
}

/// Stores a lock of another process, without a message.
void take(redis_server& server, const std::string& key)
{
    server({"SET", "{colock}:" + key, stored_holder('f'), "PX", "3600000"});
}

/// Releases the lock as the other process would.
void release_held(redis_server& server, const std::string& key)
{
    server({"DEL", "{colock}:" + key});
    server({"PUBLISH", "{colock}:" + key, ""});
}

/// A master and its successor. The lock is held on both.
struct move
{
    move()
    {
        for (auto* each : {&first, &second}) {
            each->operator()({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all", "-info"});
            take(*each, "k");
        }
    }

    /// Runs a waiter on the first server and publishes the release on the second. `lead` makes new connections go to
    /// the second.
    template <class Lead>
    void run(client_side& client, Lead lead)
    {
        auto waiting = start(client.io, acquire(client.test_driver.shared_backend(), driver::exclusive("k")));
        run_until(client.io, [&] { return listened_to(first, "k"); });
        lead();
        first({"CLIENT", "KILL", "TYPE", "normal"});
        run_until(client.io, [&] { return listened_to(second, "k"); });
        BOOST_TEST(!waiting.done());
        BOOST_TEST(!listened_to(first, "k"));
        release_held(second, "k");
        BOOST_TEST(waiting.get(client.io) > 0u);
    }

    redis_server first;
    redis_server second;
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_messages)

BOOST_AUTO_TEST_CASE(waiters_follow_the_master_that_a_sentinel_names)
{
    for (const bool may_ask : {true, false}) {
        BOOST_TEST_CONTEXT("with INFO: " << may_ask)
        {
            move between;
            sentinel names(between.first.port());
            redis::options settings;
            settings.url = names.url();
            if (!may_ask) {
                settings.user = "app";
                settings.password = "pw";
            }
            client_side client(settings);
            between.run(client, [&] { names.master = between.second.port(); });
        }
    }
}

BOOST_AUTO_TEST_CASE(waiters_follow_a_name_that_leads_to_another_server)
{
    move between;
    redis_faulty_proxy name(between.first.port());
    client_side client({.url = name.url()});
    between.run(client, [&] { name.lead_to(between.second.port()); });
}

BOOST_AUTO_TEST_CASE(two_servers_behind_one_name_do_not_keep_it_connecting)
{
    redis_server keeps;
    redis_server tells;
    redis_faulty_proxy name(keeps.port());
    client_side client({.url = name.url()});
    client.test_driver.grant(driver::exclusive("k"));
    name.lead_to(tells.port());
    auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
    run_until(client.io, [&] { return listened_to(tells, "k"); });
    BOOST_TEST(client.events->warned_of("another server"));
    // The adapter has tried a few times to reach the other server, and not more.
    BOOST_TEST(calls_of(tells, "hello") > 1);
    BOOST_TEST(calls_of(tells, "hello") < 10);
    BOOST_TEST(!waiting.done());
}

BOOST_AUTO_TEST_CASE(server_without_run_id_is_taken_for_the_same)
{
    for (const bool said_at_first : {true, false}) {
        BOOST_TEST_CONTEXT("INFO at first: " << said_at_first)
        {
            redis_server server;
            const auto may_ask = [&](bool may) { server({"ACL", "SETUSER", "app", may ? "+info" : "-info"}); };
            server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all"});
            may_ask(said_at_first);
            client_side client({.url = server.url(), .user = "app", .password = "pw"});
            client.test_driver.grant(driver::exclusive("k"));
            may_ask(!said_at_first);
            auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
            run_until(client.io, [&] { return listened_to(server, "k"); });
            BOOST_TEST(calls_of(server, "hello") == 2);
            BOOST_TEST(!client.events->warned_of("another server"));
            BOOST_TEST(!waiting.done());
        }
    }
}

BOOST_AUTO_TEST_CASE(temporarily_refused_subscription_is_retried)
{
    redis_server server;
    redis_faulty_proxy between(server.port());
    take(server, "k");
    client_side client({.url = between.url(), .poll_interval = 1h});
    between.answer_at("SUBSCRIBE", std::string(busy_reply) + std::string(busy_reply), 2);
    auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
    run_until(client.io, [&] { return listened_to(server, "k"); });
    BOOST_TEST(between.cuts() == 2);
    BOOST_TEST(!client.events->warned_of("poll"));
    release_held(server, "k");
    BOOST_TEST(waiting.get(client.io) > 0u);
    BOOST_TEST(client.test_driver.backend().reconnects() == 0u);
}

BOOST_AUTO_TEST_CASE(a_refused_unsubscription_mixes_up_no_replies)
{
    redis_server server;
    redis_faulty_proxy between(server.port());
    take(server, "k");
    take(server, "other");
    client_side client({.url = between.url()});
    auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
    auto longer = client.test_driver.start_acquire(driver::exclusive("other"));
    run_until(client.io, [&] { return listened_to(server, "k") && listened_to(server, "other"); });
    between.answer_at("UNSUBSCRIBE", std::string(busy_reply) + std::string(busy_reply));
    release_held(server, "k");
    BOOST_TEST(waiting.get(client.io) > 0u);
    // The replies no longer match their requests, so the connection is closed.
    run_until(client.io, [&] { return between.cuts() == 1 && !listened_to(server, "k"); });
    run_until(client.io, [&] { return listened_to(server, "other"); });
    BOOST_TEST(!longer.done());
    release_held(server, "other");
    BOOST_TEST(longer.get(client.io) > 0u);
}

BOOST_AUTO_TEST_CASE(the_right_to_listen_is_asked_for_at_each_connection)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "resetchannels", "+@all"});
    take(server, "k");
    client_side client({.url = server.url(), .user = "app", .password = "pw", .poll_interval = 20ms});
    auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
    run_until(client.io, [&] { return client.events->warned_of("poll"); });
    server({"ACL", "SETUSER", "app", "&*"});
    server({"CLIENT", "KILL", "TYPE", "normal"});
    run_until(client.io, [&] { return listened_to(server, "k"); });
    release_held(server, "k");
    BOOST_TEST(waiting.get(client.io) > 0u);
}

BOOST_AUTO_TEST_CASE(without_the_right_to_listen_every_wait_ends_by_its_age)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "resetchannels", "+@all"});
    take(server, "k");
    client_side client({.url = server.url(), .user = "app", .password = "pw", .poll_interval = 20ms});
    auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
    run_until(client.io, [&] { return client.events->warned_of("poll"); });
    // The waiter checks more often than messages would make it.
    const auto looks = calls_of(server, "evalsha");
    run_until(client.io, [&] { return calls_of(server, "evalsha") > looks + 5; });
    BOOST_TEST(!waiting.done());
    release_held(server, "k");
    BOOST_TEST(waiting.get(client.io) > 0u);
}

BOOST_AUTO_TEST_CASE(changed_password_is_reported_while_commands_continue)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all"});
    take(server, "k");
    client_side client({.url = server.url(), .user = "app", .password = "pw"});
    auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
    run_until(client.io, [&] { return listened_to(server, "k"); });
    server({"ACL", "SETUSER", "app", "resetpass", ">other"});
    server({"CLIENT", "KILL", "TYPE", "pubsub"});
    run_until(client.io, [&] { return client.events->warned_of("messages of releases is refused"); });
    BOOST_TEST(client.events->warned_of("correct the user or the password"));
    // More attempts are not reported again.
    const auto hellos = calls_of(server, "hello");
    run_until(client.io, [&] { return calls_of(server, "hello") > hellos + 1; });
    BOOST_TEST(std::ranges::count_if(client.events->warnings,
                   [](const auto& each) { return each.find("is refused") != std::string::npos; }) == 1);
    BOOST_TEST(client.events->suspensions == 0);
    server({"ACL", "SETUSER", "app", "resetpass", ">pw"});
    run_until(client.io, [&] { return listened_to(server, "k"); });
    release_held(server, "k");
    BOOST_TEST(waiting.get(client.io) > 0u);
}

BOOST_AUTO_TEST_CASE(mute_connection_for_messages_is_left_after_connect_timeout)
{
    redis_server server;
    redis_faulty_proxy between(server.port());
    client_side client(
        {.url = between.url(), .operation_timeout = 30s, .connect_timeout = 1s, .health_interval = 1min});
    client.test_driver.grant(driver::exclusive("warm"));
    take(server, "k");
    // The next greeting is that of the connection for messages.
    between.cut_at("HELLO", loss::delayed_reply);
    auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
    run_until(client.io, [&] { return listened_to(server, "k"); });
    BOOST_TEST(between.cuts() == 1);
    BOOST_TEST(client.events->suspensions == 0);
    release_held(server, "k");
    BOOST_TEST(waiting.get(client.io) > 0u);
}

BOOST_AUTO_TEST_CASE(server_not_ready_at_greeting_is_retried)
{
    for (const std::string& why :
        {std::string("-LOADING Redis is loading the dataset in memory\r\n"), std::string(busy_reply)})
    {
        BOOST_TEST_CONTEXT(why)
        {
            redis_server server;
            redis_faulty_proxy between(server.port());
            client_side client({.url = between.url(), .operation_timeout = 20s});
            // The two errors answer HELLO and INFO.
            between.answer_at("HELLO", why + why, 2);
            client.test_driver.grant(driver::exclusive("k"));
            BOOST_TEST(between.cuts() == 2);
            BOOST_TEST(client.events->readies == 1);
            BOOST_TEST(client.events->suspensions == 0);

            // The next greeting is that of the connection for messages.
            between.answer_at("HELLO", why + why, 2);
            auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
            run_until(client.io, [&] { return listened_to(server, "k"); });
            BOOST_TEST(between.cuts() == 4);
            BOOST_TEST(client.events->suspensions == 0);
            BOOST_TEST(!waiting.done());
            release_held(server, "k");
            BOOST_TEST(waiting.get(client.io) > 0u);
            BOOST_TEST(!client.events->warned_of("is refused"));
        }
    }
}

namespace {

/// Waiters on many keys. Counts how many of them are woken by a single handler at most.
struct many_waiters
{
    many_waiters() : client({.url = server.url(), .user = "app", .password = "pw", .poll_interval = 1h})
    {
        server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all"});
        for (std::size_t i = 0; i < size; ++i) {
            claims.push_back(driver::exclusive(std::to_string(i)));
            take(server, claims.back()->key());
        }
    }

    /// Makes a waiter for each key, after a busy attempt.
    void wait()
    {
        std::vector<running<create_outcome>> all;
        for (const auto& each : claims)
            all.push_back(start(client.io, client.test_driver.backend().create(sent_now(each))));
        for (auto& each : all)
            BOOST_TEST((each.get(client.io).status == create_status::busy));
        ended = 0;
        max_ended_per_handler = 0;
        for (const auto& each : claims)
            client.test_driver.backend().start_wait(
                each, lease_clock::time_point::max(), completion<wait_outcome>([this](wait_outcome) { ++ended; }));
    }
    void run_until_ended(std::size_t expected)
    {
        const auto limit = lease_clock::now() + 30s;
        while (ended < expected) {
            BOOST_TEST_REQUIRE((lease_clock::now() < limit));
            const auto before = ended;
            client.io.run_one_for(100ms);
            max_ended_per_handler = std::max(max_ended_per_handler, ended - before);
        }
    }

    static constexpr std::size_t size = 2'000;
    redis_server server;
    client_side client;
    std::vector<plain_claim_ptr> claims;
    std::size_t ended = 0;
    std::size_t max_ended_per_handler = 0;
};

/// Limit of the waiters that one handler wakes, doubled because other completions may run in the same handler.
constexpr std::size_t max_per_handler = 2 * 256;

} // namespace

BOOST_AUTO_TEST_CASE(many_channels_are_subscribed_to_in_parts)
{
    many_waiters f;
    f.wait();
    // Each waiter checks again after its subscription is active.
    f.run_until_ended(f.size);
    BOOST_TEST(f.max_ended_per_handler <= max_per_handler);
    BOOST_TEST(calls_of(f.server, "subscribe") >= 8);
    BOOST_TEST(calls_of(f.server, "subscribe") < 100);

    f.wait();
    f.server({"CLIENT", "KILL", "TYPE", "pubsub"});
    f.run_until_ended(f.size);
    BOOST_TEST(f.max_ended_per_handler <= max_per_handler);
    BOOST_TEST(calls_of(f.server, "subscribe") < 200);

    f.wait();
    for (const auto& each : f.claims)
        release_held(f.server, each->key());
    f.run_until_ended(f.size);
    BOOST_TEST(f.max_ended_per_handler <= max_per_handler);
}

BOOST_AUTO_TEST_CASE(many_waiters_begin_to_poll_in_parts)
{
    many_waiters f;
    f.wait();
    f.run_until_ended(f.size);
    f.wait();
    f.server({"ACL", "SETUSER", "app", "resetchannels"});
    f.server({"CLIENT", "KILL", "TYPE", "pubsub"});
    f.run_until_ended(f.size);
    BOOST_TEST(f.max_ended_per_handler <= max_per_handler);
    BOOST_TEST(f.client.events->warned_of("poll"));
}

BOOST_AUTO_TEST_CASE(many_channels_are_left_in_parts)
{
    many_waiters f;
    f.wait();
    f.run_until_ended(f.size);
    const auto last = f.claims.front();
    f.claims.clear();
    run_until(f.client.io, [&] { return f.server({"PUBSUB", "CHANNELS", "*"}) == "{colock}:0\n"; });
    BOOST_TEST(calls_of(f.server, "unsubscribe") >= 7);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
