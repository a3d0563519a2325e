// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/login.hpp"

#include "guarded_server.hpp"
#include "loop_time.hpp"
#include "pretender.hpp"
#include "scene.hpp"
#include "server.hpp"
#include "support/relay.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

/// Lanes that are logged in.
struct logged_in
{
    logged_in(std::uint16_t port, credentials who, std::size_t most = 8)
        : as(std::make_unique<login>(std::move(who))),
          test({.host = "127.0.0.1", .port = std::to_string(port), .as = as.get()}, most)
    {
    }

    const std::unique_ptr<login> as;
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

BOOST_AUTO_TEST_CASE(who_is_known_is_let_in_and_nobody_else)
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
             credentials{.user = "there", .password = "secret", .source = "elsewhere"}})
        BOOST_TEST(say(who)->got().what == kind::done, who.user << ": " << say(who)->got().why);
    is_refused(say({.user = "there", .password = "secret"})->got());
    is_refused(say({.user = "me", .password = "secr\xc3\xa9t", .mechanism = "SCRAM-SHA-256"})->got());
    is_refused(say({.user = "me", .password = "secret\n", .mechanism = "SCRAM-SHA-256"})->got());
    is_refused(say({.user = "me", .password = "secret", .mechanism = "PLAIN"})->got());
}

BOOST_AUTO_TEST_CASE(the_password_is_hashed_once_for_all_lanes_and_the_loop_does_not_stand_still)
{
    check_brisk([] {
        const guarded_server server;
        logged_in some(server.running.port(), me, 8);
        std::vector<noted_ptr> asked;
        for (int n = 0; n < 8; ++n)
            asked.push_back(some.test.ask(ping));
        const auto longest = longest_until(
            *some.test.io, [&] { return std::ranges::all_of(asked, [](const auto& each) { return each->done(); }); });
        for (const auto& each : asked)
            BOOST_TEST(each->got().what == kind::done, each->got().why);
        BOOST_TEST(some.test.all().open() == 8u);
        BOOST_TEST(some.as->hashed() == 1u);
        return longest;
    });
}

BOOST_AUTO_TEST_CASE(a_server_that_does_not_know_the_password_is_told_nothing_more)
{
    bool told = false;
    asio::io_context elsewhere;
    const pretender liar(elsewhere, [&](std::string_view command, const document& asked) {
        auto reply = document::from_json(
            R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "isWritablePrimary": true, "ismaster": true,
                "saslSupportedMechs": ["SCRAM-SHA-256"], "conversationId": 1, "done": true})");
        std::string payload = "v=" + std::string(43, 'A') + '=';
        if (command == "saslStart") {
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

BOOST_AUTO_TEST_CASE(nothing_is_said_by_nobody_whatever_is_lost)
{
    const guarded_server server;
    relay link(server.running.port());
    logged_in some(link.port(), me, 2);
    for (const auto* const bytes : {"saslSupportedMechs", "saslStart", "saslContinue", "findAndModify"}) {
        for (const auto what : {loss::request, loss::reply}) {
            // The next lane is logged in anew.
            some.test.post([](lanes& all) { all.close_free(); });
            const auto before = link.cuts();
            link.cut_at_bytes(bytes, what);
            const auto& got = some.test.say(count_up);
            // The mechanism is asked for once, as long as no login fails.
            if (link.cuts() == before)
                continue;
            BOOST_TEST(got.what == (bytes == std::string("findAndModify") ? kind::unknown : kind::unsent), bytes);
            BOOST_TEST(got.spoils);
            BOOST_TEST(some.test.all().open() == 0u);
            BOOST_TEST(some.test.say(count_up).what == kind::done, some.test.last->got().why);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_login_that_hangs_is_given_up_at_the_deadline_and_at_the_end)
{
    const guarded_server server;
    relay link(server.running.port());
    logged_in some(link.port(), me, 2);
    link.cut_at_bytes("saslContinue", loss::time);
    BOOST_TEST(some.test.say(ping, 500ms).what == kind::unsent);
    BOOST_TEST(some.test.say(ping).what == kind::done);
    some.test.post([](lanes& all) { all.close_free(); });
    link.cut_at_bytes("saslStart", loss::time);
    const auto cuts = link.cuts();
    const auto last = some.test.ask(ping);
    run_until(*some.test.io, [&] { return link.cuts() > cuts; });
    some.test.post([](lanes& all) { all.close_all(); });
    BOOST_TEST(some.test.wait_for(last).what == kind::unsent);
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
