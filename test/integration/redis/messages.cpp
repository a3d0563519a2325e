// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The connection that tells waiters of releases: where it leads, what refuses it, and how many wait on it.

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

/// How often that command was called; -1: the server does not say so.
int calls_of(redis_server& server, const std::string& command)
{
    const auto told = server({"INFO", "commandstats"});
    const auto at = told.find("cmdstat_" + command + ":calls=");
    if (at == std::string::npos)
        return 0;
    const auto digits = told.find('=', at) + 1;
    int calls = -1;
    std::from_chars(told.data() + digits, told.data() + told.size(), calls);
    return calls;
}

bool listened_to(redis_server& server, const std::string& key)
{
    return server({"PUBSUB", "NUMSUB", "{colock}:" + key}) == "{colock}:" + key + "\n1\n";
}

/// Somebody else has it, and has told nobody.
void take(redis_server& server, const std::string& key)
{
    server({"SET", "{colock}:" + key, stored_holder('f'), "PX", "3600000"});
}

/// As that somebody's colock would give it back.
void give_back(redis_server& server, const std::string& key)
{
    server({"DEL", "{colock}:" + key});
    server({"PUBLISH", "{colock}:" + key, ""});
}

/// A master and its successor; the lock is taken on both.
struct move
{
    move()
    {
        for (auto* each : {&first, &second}) {
            each->operator()({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all", "-info"});
            take(*each, "k");
        }
    }

    /// A client that waits on the first is told of a release on the second. `lead` makes new connections lead there.
    template <class Lead>
    void run(client_side& some, Lead lead)
    {
        auto waiting = start(some.io, acquire(some.speak.shared_backend(), driver::exclusive("k")));
        run_until(some.io, [&] { return listened_to(first, "k"); });
        lead();
        first({"CLIENT", "KILL", "TYPE", "normal"});
        run_until(some.io, [&] { return listened_to(second, "k"); });
        BOOST_TEST(!waiting.done());
        BOOST_TEST(!listened_to(first, "k"));
        give_back(second, "k");
        BOOST_TEST(waiting.get(some.io) > 0u);
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
            client_side some(settings);
            between.run(some, [&] { names.master = between.second.port(); });
        }
    }
}

BOOST_AUTO_TEST_CASE(waiters_follow_a_name_that_leads_to_another_server)
{
    move between;
    redis_relay name(between.first.port());
    client_side some({.url = name.url()});
    between.run(some, [&] { name.lead_to(between.second.port()); });
}

BOOST_AUTO_TEST_CASE(two_servers_behind_one_name_do_not_keep_it_connecting)
{
    redis_server keeps;
    redis_server tells;
    redis_relay name(keeps.port());
    client_side some({.url = name.url()});
    some.speak.grant(driver::exclusive("k"));
    name.lead_to(tells.port());
    auto waiting = some.speak.start_acquire(driver::exclusive("k"));
    run_until(some.io, [&] { return listened_to(tells, "k"); });
    BOOST_TEST(some.told->warned_of("another server"));
    // It has tried for a better one a few times, and no more.
    BOOST_TEST(calls_of(tells, "hello") > 1);
    BOOST_TEST(calls_of(tells, "hello") < 10);
    BOOST_TEST(!waiting.done());
}

BOOST_AUTO_TEST_CASE(a_server_that_does_not_say_who_it_is_is_not_taken_for_another)
{
    for (const bool said_at_first : {true, false}) {
        BOOST_TEST_CONTEXT("INFO at first: " << said_at_first)
        {
            redis_server server;
            const auto may_ask = [&](bool may) { server({"ACL", "SETUSER", "app", may ? "+info" : "-info"}); };
            server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all"});
            may_ask(said_at_first);
            client_side some({.url = server.url(), .user = "app", .password = "pw"});
            some.speak.grant(driver::exclusive("k"));
            may_ask(!said_at_first);
            auto waiting = some.speak.start_acquire(driver::exclusive("k"));
            run_until(some.io, [&] { return listened_to(server, "k"); });
            BOOST_TEST(calls_of(server, "hello") == 2);
            BOOST_TEST(!some.told->warned_of("another server"));
            BOOST_TEST(!waiting.done());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_subscription_that_is_refused_for_a_moment_is_asked_for_again)
{
    redis_server server;
    redis_relay between(server.port());
    take(server, "k");
    client_side some({.url = between.url(), .poll_interval = 1h});
    between.answer_at("SUBSCRIBE", std::string(busy_reply) + std::string(busy_reply), 2);
    auto waiting = some.speak.start_acquire(driver::exclusive("k"));
    run_until(some.io, [&] { return listened_to(server, "k"); });
    BOOST_TEST(between.cuts() == 2);
    BOOST_TEST(!some.told->warned_of("poll"));
    give_back(server, "k");
    BOOST_TEST(waiting.get(some.io) > 0u);
    BOOST_TEST(some.speak.backend().reconnects() == 0u);
}

BOOST_AUTO_TEST_CASE(a_refused_unsubscription_mixes_up_no_replies)
{
    redis_server server;
    redis_relay between(server.port());
    take(server, "k");
    take(server, "other");
    client_side some({.url = between.url()});
    auto waiting = some.speak.start_acquire(driver::exclusive("k"));
    auto longer = some.speak.start_acquire(driver::exclusive("other"));
    run_until(some.io, [&] { return listened_to(server, "k") && listened_to(server, "other"); });
    between.answer_at("UNSUBSCRIBE", std::string(busy_reply) + std::string(busy_reply));
    give_back(server, "k");
    BOOST_TEST(waiting.get(some.io) > 0u);
    // The connection on which they would be out of step is left.
    run_until(some.io, [&] { return between.cuts() == 1 && !listened_to(server, "k"); });
    run_until(some.io, [&] { return listened_to(server, "other"); });
    BOOST_TEST(!longer.done());
    give_back(server, "other");
    BOOST_TEST(longer.get(some.io) > 0u);
}

BOOST_AUTO_TEST_CASE(the_right_to_listen_is_asked_for_at_each_connection)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "resetchannels", "+@all"});
    take(server, "k");
    client_side some({.url = server.url(), .user = "app", .password = "pw", .poll_interval = 20ms});
    auto waiting = some.speak.start_acquire(driver::exclusive("k"));
    run_until(some.io, [&] { return some.told->warned_of("poll"); });
    server({"ACL", "SETUSER", "app", "&*"});
    server({"CLIENT", "KILL", "TYPE", "normal"});
    run_until(some.io, [&] { return listened_to(server, "k"); });
    give_back(server, "k");
    BOOST_TEST(waiting.get(some.io) > 0u);
}

BOOST_AUTO_TEST_CASE(without_the_right_to_listen_every_wait_ends_by_its_age)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "resetchannels", "+@all"});
    take(server, "k");
    client_side some({.url = server.url(), .user = "app", .password = "pw", .poll_interval = 20ms});
    auto waiting = some.speak.start_acquire(driver::exclusive("k"));
    run_until(some.io, [&] { return some.told->warned_of("poll"); });
    // More often than that news makes it look.
    const auto looks = calls_of(server, "evalsha");
    run_until(some.io, [&] { return calls_of(server, "evalsha") > looks + 5; });
    BOOST_TEST(!waiting.done());
    give_back(server, "k");
    BOOST_TEST(waiting.get(some.io) > 0u);
}

BOOST_AUTO_TEST_CASE(a_password_that_has_changed_is_told_though_commands_go_on)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all"});
    take(server, "k");
    client_side some({.url = server.url(), .user = "app", .password = "pw"});
    auto waiting = some.speak.start_acquire(driver::exclusive("k"));
    run_until(some.io, [&] { return listened_to(server, "k"); });
    server({"ACL", "SETUSER", "app", "resetpass", ">other"});
    server({"CLIENT", "KILL", "TYPE", "pubsub"});
    run_until(some.io, [&] { return some.told->warned_of("messages of releases is refused"); });
    BOOST_TEST(some.told->warned_of("correct the user or the password"));
    // More attempts are no more news.
    const auto hellos = calls_of(server, "hello");
    run_until(some.io, [&] { return calls_of(server, "hello") > hellos + 1; });
    BOOST_TEST(std::ranges::count_if(some.told->warnings,
                   [](const auto& each) { return each.find("is refused") != std::string::npos; }) == 1);
    BOOST_TEST(some.told->suspensions == 0);
    server({"ACL", "SETUSER", "app", "resetpass", ">pw"});
    run_until(some.io, [&] { return listened_to(server, "k"); });
    give_back(server, "k");
    BOOST_TEST(waiting.get(some.io) > 0u);
}

BOOST_AUTO_TEST_CASE(a_server_that_is_not_ready_at_the_greeting_is_tried_again)
{
    for (const std::string& why :
        {std::string("-LOADING Redis is loading the dataset in memory\r\n"), std::string(busy_reply)})
    {
        BOOST_TEST_CONTEXT(why)
        {
            redis_server server;
            redis_relay between(server.port());
            client_side some({.url = between.url(), .operation_timeout = 20s});
            // To HELLO and INFO.
            between.answer_at("HELLO", why + why, 2);
            some.speak.grant(driver::exclusive("k"));
            BOOST_TEST(between.cuts() == 2);
            BOOST_TEST(some.told->readies == 1);
            BOOST_TEST(some.told->suspensions == 0);

            // The greeting of the connection for messages is the next.
            between.answer_at("HELLO", why + why, 2);
            auto waiting = some.speak.start_acquire(driver::exclusive("k"));
            run_until(some.io, [&] { return listened_to(server, "k"); });
            BOOST_TEST(between.cuts() == 4);
            BOOST_TEST(some.told->suspensions == 0);
            BOOST_TEST(!waiting.done());
            give_back(server, "k");
            BOOST_TEST(waiting.get(some.io) > 0u);
            BOOST_TEST(!some.told->warned_of("is refused"));
        }
    }
}

namespace {

/// Waiters on as many keys, and how many of them were woken by one handler at most.
struct multitude
{
    multitude() : some({.url = server.url(), .user = "app", .password = "pw", .poll_interval = 1h})
    {
        server({"ACL", "SETUSER", "app", "on", ">pw", "~{colock}*", "&*", "+@all"});
        for (std::size_t i = 0; i < size; ++i) {
            claims.push_back(driver::exclusive(std::to_string(i)));
            take(server, claims.back()->key());
        }
    }

    /// Finds them busy, and waits for each.
    void wait()
    {
        std::vector<running<create_outcome>> all;
        for (const auto& each : claims)
            all.push_back(start(some.io, some.speak.backend().create(sent_now(each))));
        for (auto& each : all)
            BOOST_TEST((each.get(some.io).status == create_status::busy));
        ended = 0;
        most = 0;
        for (const auto& each : claims)
            some.speak.backend().start_wait(
                each, lease_clock::time_point::max(), completion<woken>([this](woken) { ++ended; }));
    }
    void run_until_ended(std::size_t expected)
    {
        const auto limit = lease_clock::now() + 30s;
        while (ended < expected) {
            BOOST_TEST_REQUIRE((lease_clock::now() < limit));
            const auto before = ended;
            some.io.run_one_for(100ms);
            most = std::max(most, ended - before);
        }
    }

    static constexpr std::size_t size = 2'000;
    redis_server server;
    client_side some;
    std::vector<plain_claim_ptr> claims;
    std::size_t ended = 0;
    std::size_t most = 0;
};

/// What one turn may do for them, and what happens to fall together with it.
constexpr std::size_t most_per_handler = 2 * 256;

} // namespace

BOOST_AUTO_TEST_CASE(many_channels_are_subscribed_to_in_parts)
{
    multitude f;
    f.wait();
    // Each looks again once it listens.
    f.run_until_ended(f.size);
    BOOST_TEST(f.most <= most_per_handler);
    BOOST_TEST(calls_of(f.server, "subscribe") >= 8);
    BOOST_TEST(calls_of(f.server, "subscribe") < 100);

    f.wait();
    f.server({"CLIENT", "KILL", "TYPE", "pubsub"});
    f.run_until_ended(f.size);
    BOOST_TEST(f.most <= most_per_handler);
    BOOST_TEST(calls_of(f.server, "subscribe") < 200);

    f.wait();
    for (const auto& each : f.claims)
        give_back(f.server, each->key());
    f.run_until_ended(f.size);
    BOOST_TEST(f.most <= most_per_handler);
}

BOOST_AUTO_TEST_CASE(many_waiters_begin_to_poll_in_parts)
{
    multitude f;
    f.wait();
    f.run_until_ended(f.size);
    f.wait();
    f.server({"ACL", "SETUSER", "app", "resetchannels"});
    f.server({"CLIENT", "KILL", "TYPE", "pubsub"});
    f.run_until_ended(f.size);
    BOOST_TEST(f.most <= most_per_handler);
    BOOST_TEST(f.some.told->warned_of("poll"));
}

BOOST_AUTO_TEST_CASE(many_channels_are_left_in_parts)
{
    multitude f;
    f.wait();
    f.run_until_ended(f.size);
    const auto last = f.claims.front();
    f.claims.clear();
    run_until(f.some.io, [&] { return f.server({"PUBSUB", "CHANNELS", "*"}) == "{colock}:0\n"; });
    BOOST_TEST(calls_of(f.server, "unsubscribe") >= 7);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
