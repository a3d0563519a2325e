// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/authentication.hpp"

#include "guarded_server.hpp"
#include "mongo/driver/failures.hpp"
#include "pretender.hpp"
#include "scene.hpp"
#include "server.hpp"
#include "support/relay.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// Lanes that are logged in.
struct logged_in
{
    logged_in(std::uint16_t port, credentials who, std::size_t most = 8)
        : test({.host = "127.0.0.1",
                   .port = std::to_string(port),
                   .as = std::make_shared<const credentials>(std::move(who))},
              most)
    {
    }

    scene test;
};

const credentials me{.user = "me", .password = "secret, ="};

std::string payload_of(const document& asked)
{
    bson_iter_t at;
    BOOST_TEST_REQUIRE(bson_iter_init_find(&at, asked.get(), "payload"));
    std::uint32_t size = 0;
    const std::uint8_t* data = nullptr;
    bson_iter_binary(&at, nullptr, &size, &data);
    return {reinterpret_cast<const char*>(data), size};
}

void is_refused(const answer& got)
{
    BOOST_TEST(got.what == kind::refused, got.why);
    BOOST_TEST(got.code == authentication_failed);
    BOOST_TEST(got.spoils);
    BOOST_TEST(!got.why.empty());
    BOOST_TEST(got.why.find("secret") == std::string::npos, got.why);
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_login, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(only_the_right_credentials_are_accepted)
{
    const guarded_server server;
    const auto port = server.running.port();
    {
        scene nobody(port);
        BOOST_TEST(nobody.say(count_up).code == 13);
    }
    const auto say = [&](credentials who) {
        logged_in some(port, std::move(who));
        const auto asked = some.test.ask(count_up);
        static_cast<void>(some.test.wait_for(asked));
        BOOST_TEST(some.test.all().open() == (asked->got().spoils ? 0u : 1u));
        return asked;
    };
    for (const auto* const mechanism : {"", "SCRAM-SHA-1", "SCRAM-SHA-256"}) {
        auto who = me;
        who.mechanism = mechanism;
        BOOST_TEST(say(who)->got().what == kind::done, mechanism << ": " << say(who)->got().why);
        who.password = "secret, +";
        is_refused(say(who)->got());
        who.user = "nobody";
        is_refused(say(who)->got());
    }
    for (const credentials& who : {credentials{.user = "old", .password = "secret"},
             credentials{.user = "there", .password = "secret", .source = "elsewhere"},
             credentials{.user = "accented",
                 .password = "s\xc3\xa9"
                             "cret"}})
        BOOST_TEST(say(who)->got().what == kind::done, who.user << ": " << say(who)->got().why);
    is_refused(say({.user = "accented", .password = "secret"})->got());
    is_refused(say({.user = "there", .password = "secret"})->got());
    is_refused(say({.user = "me", .password = "secret\n", .mechanism = "SCRAM-SHA-256"})->got());
}

BOOST_AUTO_TEST_CASE(connections_are_authenticated_one_at_a_time)
{
    const guarded_server server;
    logged_in some(server.running.port(), me, 8);
    std::vector<noted_ptr> asked;
    for (int n = 0; n < 64; ++n)
        asked.push_back(some.test.ask(ping));
    some.test.post([](lanes& all) {
        BOOST_TEST(all.open() == 1u);
        BOOST_TEST(!all.has_room());
    });
    static_cast<void>(some.test.wait_for(asked.front()));
    // The others were not waited for.
    BOOST_TEST(some.test.all().open() <= 2u);
    for (const auto& each : asked)
        BOOST_TEST(some.test.wait_for(each).what == kind::done, each->got().why);
}

BOOST_AUTO_TEST_CASE(server_that_does_not_know_the_password_is_told_nothing_more)
{
    bool told = false;
    asio::io_context elsewhere;
    const pretender liar(elsewhere, [&](std::string_view command, const document& asked) {
        auto reply = document::from_json(
            R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "isWritablePrimary": true, "ismaster": true,
                "saslSupportedMechs": ["SCRAM-SHA-256"], "conversationId": 1, "done": true})");
        std::string payload = "v=" + std::string(43, 'A') + '=';
        if (command == "saslStart") {
            reply = document::from_json(R"({"ok": 1, "conversationId": 1, "done": false})");
            const auto first = payload_of(asked);
            payload = first.substr(first.find("r=")) + "more,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        }
        BSON_APPEND_BINARY(reply.get(), "payload", BSON_SUBTYPE_BINARY,
            reinterpret_cast<const std::uint8_t*>(payload.data()), static_cast<std::uint32_t>(payload.size()));
        told = told || command == "findAndModify";
        return reply;
    });
    logged_in some(liar.port(), me);
    const auto asked = some.test.ask(count_up);
    run_until(*some.test.io, [&] {
        elsewhere.poll();
        return asked->done();
    });
    is_refused(asked->got());
    BOOST_TEST(!told);
}

BOOST_AUTO_TEST_CASE(refused_login_is_access_denied_and_refused_greeting_is_unavailable)
{
    // AuthenticationFailed, AtlasError, MechanismUnavailable; ShutdownInProgress.
    for (const auto& [command, code, expected] :
        {std::tuple("saslStart", 18, errc::access_denied), {"saslStart", 8000, errc::access_denied},
            {"saslStart", 334, errc::access_denied}, {"hello", 91, errc::unavailable}})
    {
        asio::io_context elsewhere;
        const auto refuses = [&, at = std::string(command), said = std::to_string(code)](
                                 std::string_view asked, const document&) {
            const bool is_greeting = asked == "hello" || asked == "isMaster" || asked == "ismaster";
            if (at == (is_greeting ? "hello" : asked))
                return document::from_json(R"({"ok": 0, "errmsg": "no", "code": )" + said + '}');
            return document::from_json(
                R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "isWritablePrimary": true, "ismaster": true,
                    "saslSupportedMechs": ["SCRAM-SHA-256"]})");
        };
        const pretender server(elsewhere, refuses);
        logged_in some(server.port(), me);
        const auto asked = some.test.ask(count_up);
        run_until(*some.test.io, [&] {
            elsewhere.poll();
            return asked->done();
        });
        BOOST_TEST((failure_of(asked->got())->code == expected), code << ": " << failure_of(asked->got())->detail);
        BOOST_TEST(asked->got().spoils);
    }
}

BOOST_AUTO_TEST_CASE(plain_sends_the_password_itself)
{
    asio::io_context elsewhere;
    std::string said;
    const pretender server(elsewhere, [&](std::string_view command, const document& asked) {
        if (command == "saslStart")
            said = asked.to_json();
        return document::from_json(
            R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "isWritablePrimary": true, "ismaster": true,
                "conversationId": 1, "done": true, "payload": ""})");
    });
    logged_in some(server.port(), {.user = "me", .password = "p", .source = "$external", .mechanism = "PLAIN"});
    const auto asked = some.test.ask(count_up);
    run_until(*some.test.io, [&] {
        elsewhere.poll();
        return asked->done();
    });
    BOOST_TEST(asked->got().what == kind::done, asked->got().why);
    // NUL, user, NUL, password.
    BOOST_TEST(said.find("AG1lAHA=") != std::string::npos, said);
    BOOST_TEST(said.find("PLAIN") != std::string::npos, said);
    BOOST_TEST(said.find("$external") != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(cut_at_each_step_of_a_login_is_no_refusal)
{
    const guarded_server server;
    relay link(server.running.port());
    auto who = me;
    // Without a mechanism the driver asks for SCRAM-SHA-256 in its greeting, and goes on with saslContinue.
    for (const auto* const mechanism : {"", "SCRAM-SHA-1"}) {
        who.mechanism = mechanism;
        logged_in some(link.port(), who, 2);
        for (const auto* const bytes :
            {"saslSupportedMechs", "speculativeAuthenticate", "saslStart", "saslContinue", "ping", "findAndModify"})
        {
            for (const auto what : {loss::request, loss::reply}) {
                BOOST_TEST_CONTEXT(mechanism << ", cut at " << bytes)
                {
                    // The next lane is authenticated again.
                    some.test.post([](lanes& all) { all.close_free(); });
                    const auto before = link.cuts();
                    link.cut_at_bytes(bytes, what);
                    const auto& got = some.test.say(count_up);
                    if (link.cuts() == before)
                        continue;
                    BOOST_TEST(got.what == (bytes == std::string("findAndModify") ? kind::unknown : kind::unsent));
                    BOOST_TEST(got.spoils);
                    BOOST_TEST(some.test.all().open() == 0u);
                    BOOST_TEST(some.test.say(count_up).what == kind::done, some.test.last->got().why);
                }
            }
        }
        BOOST_TEST(link.cuts() >= 6U);
    }
}

BOOST_AUTO_TEST_CASE(login_that_hangs_is_given_up_at_the_deadline_and_at_the_end)
{
    const guarded_server server;
    relay link(server.running.port());
    logged_in some(link.port(), me, 2);
    link.cut_at_bytes("saslContinue", loss::time);
    BOOST_TEST(some.test.say(ping, 500ms).what == kind::unsent);
    BOOST_TEST(some.test.say(ping).what == kind::done);
    some.test.post([](lanes& all) { all.close_free(); });
    link.cut_at_bytes("speculativeAuthenticate", loss::time);
    const auto cuts = link.cuts();
    const auto last = some.test.ask(ping);
    run_until(*some.test.io, [&] { return link.cuts() > cuts; });
    some.test.post([](lanes& all) { all.close_all(); });
    BOOST_TEST(some.test.wait_for(last).what == kind::unsent);
}

BOOST_AUTO_TEST_CASE(login_that_hangs_does_not_keep_other_connections_from_their_work)
{
    const guarded_server server;
    relay link(server.running.port());
    logged_in some(link.port(), me, 2);
    BOOST_TEST(some.test.say(ping).what == kind::done);
    link.cut_at_bytes("speculativeAuthenticate", loss::time);
    const auto cuts = link.cuts();
    // A second connection is begun for them after a pause.
    while (link.cuts() == cuts) {
        const auto first = some.test.ask(ping), second = some.test.ask(ping);
        BOOST_TEST(some.test.wait_for(second).what == kind::done);
        BOOST_TEST(some.test.wait_for(first).what == kind::done);
    }
    BOOST_TEST(some.test.say(ping, 1s).what == kind::done);
}

BOOST_AUTO_TEST_CASE(a_context_may_end_at_any_step_of_a_login)
{
    const guarded_server server;
    for (int steps = 1;; ++steps) {
        logged_in some(server.running.port(), me, 2);
        const auto first = some.test.ask(ping);
        const auto second = some.test.ask(ping);
        for (int n = 0; n < steps && !(first->done() && second->done()); ++n)
            some.test.io->run_one();
        const bool finished = first->done() && second->done();
        some.test.io.reset();
        if (finished)
            break;
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
