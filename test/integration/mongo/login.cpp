// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/authentication.hpp"

#include "fake_server.hpp"
#include "guarded_server.hpp"
#include "mongo/driver/failures.hpp"
#include "pool_fixture.hpp"
#include "server.hpp"
#include "support/faulty_proxy.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/mongo/adapter.hpp>

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

/// A connection pool with credentials.
struct authenticated_pool
{
    authenticated_pool(std::uint16_t port, credentials who, std::size_t max_connections = 8)
        : test({.host = "127.0.0.1",
                   .port = std::to_string(port),
                   .login = std::make_shared<const credentials>(std::move(who))},
              max_connections)
    {
    }

    pool_fixture test;
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

void check_refused(const answer& got)
{
    BOOST_TEST(got.outcome == kind::refused, got.text);
    BOOST_TEST(got.code == authentication_failed);
    BOOST_TEST(got.ends_connection);
    BOOST_TEST(!got.text.empty());
    BOOST_TEST(got.text.find("secret") == std::string::npos, got.text);
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_login, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(
    only_the_right_credentials_are_accepted, *boost::unit_test::precondition(not_ferretdb("SCRAM-SHA-1")))
{
    const guarded_server server;
    const auto port = server.running.port();
    {
        pool_fixture nobody(port);
        BOOST_TEST(nobody.ask_and_wait(count_up).code == 13);
    }
    const auto ask_as = [&](credentials who) {
        authenticated_pool pool(port, std::move(who));
        const auto asked = pool.test.ask(count_up);
        static_cast<void>(pool.test.wait_for(asked));
        BOOST_TEST(pool.test.all().open_count() == (asked->result().ends_connection ? 0u : 1u));
        return asked;
    };
    for (const auto* const mechanism : {"", "SCRAM-SHA-1", "SCRAM-SHA-256"}) {
        auto who = me;
        who.mechanism = mechanism;
        BOOST_TEST(ask_as(who)->result().outcome == kind::done, mechanism << ": " << ask_as(who)->result().text);
        who.password = "secret, +";
        check_refused(ask_as(who)->result());
        who.user = "nobody";
        check_refused(ask_as(who)->result());
    }
    for (const credentials& who : {credentials{.user = "sha1_user", .password = "secret"},
             credentials{.user = "other_db_user", .password = "secret", .source = "other_db"},
             credentials{.user = "accented",
                 .password = "s\xc3\xa9"
                             "cret"}})
        BOOST_TEST(ask_as(who)->result().outcome == kind::done, who.user << ": " << ask_as(who)->result().text);
    check_refused(ask_as({.user = "accented", .password = "secret"})->result());
    check_refused(ask_as({.user = "other_db_user", .password = "secret"})->result());
    check_refused(ask_as({.user = "me", .password = "secret\n", .mechanism = "SCRAM-SHA-256"})->result());
}

BOOST_AUTO_TEST_CASE(connections_are_authenticated_one_at_a_time)
{
    const guarded_server server;
    authenticated_pool pool(server.running.port(), me, 8);
    std::vector<recorded_command_ptr> asked;
    for (int n = 0; n < 64; ++n)
        asked.push_back(pool.test.ask(ping));
    pool.test.post([](connection_pool& all) {
        BOOST_TEST(all.open_count() == 1u);
        BOOST_TEST(!all.has_capacity());
    });
    static_cast<void>(pool.test.wait_for(asked.front()));
    // The first command did not wait for the other connections.
    BOOST_TEST(pool.test.all().open_count() <= 2u);
    for (const auto& each : asked)
        BOOST_TEST(pool.test.wait_for(each).outcome == kind::done, each->result().text);
}

BOOST_AUTO_TEST_CASE(server_without_proof_of_the_password_gets_no_command)
{
    bool was_sent = false;
    asio::io_context other_io;
    const fake_server fake(other_io, [&](std::string_view command, const document& asked) {
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
        was_sent = was_sent || command == "findAndModify";
        return reply;
    });
    authenticated_pool pool(fake.port(), me);
    const auto asked = pool.test.ask(count_up);
    run_until(*pool.test.io, [&] {
        other_io.poll();
        return asked->done();
    });
    check_refused(asked->result());
    BOOST_TEST(!was_sent);
}

BOOST_AUTO_TEST_CASE(refused_login_is_access_denied_and_refused_greeting_is_unavailable)
{
    // AuthenticationFailed, AtlasError, MechanismUnavailable; then ShutdownInProgress.
    for (const auto& [command, code, expected] :
        {std::tuple("saslStart", 18, errc::access_denied), {"saslStart", 8000, errc::access_denied},
            {"saslStart", 334, errc::access_denied}, {"hello", 91, errc::unavailable}})
    {
        asio::io_context other_io;
        const auto refuses = [&, at = std::string(command), said = std::to_string(code)](
                                 std::string_view asked, const document&) {
            const bool is_greeting = asked == "hello" || asked == "isMaster" || asked == "ismaster";
            if (at == (is_greeting ? "hello" : asked))
                return document::from_json(R"({"ok": 0, "errmsg": "no", "code": )" + said + '}');
            return document::from_json(
                R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "isWritablePrimary": true, "ismaster": true,
                    "saslSupportedMechs": ["SCRAM-SHA-256"]})");
        };
        const fake_server server(other_io, refuses);
        authenticated_pool pool(server.port(), me);
        const auto asked = pool.test.ask(count_up);
        run_until(*pool.test.io, [&] {
            other_io.poll();
            return asked->done();
        });
        BOOST_TEST(
            (failure_of(asked->result())->code == expected), code << ": " << failure_of(asked->result())->detail);
        BOOST_TEST(asked->result().ends_connection);
    }
}

BOOST_AUTO_TEST_CASE(plain_sends_the_password_itself)
{
    asio::io_context other_io;
    std::string said;
    const fake_server server(other_io, [&](std::string_view command, const document& asked) {
        if (command == "saslStart")
            said = asked.to_json();
        return document::from_json(
            R"({"ok": 1, "minWireVersion": 0, "maxWireVersion": 21, "isWritablePrimary": true, "ismaster": true,
                "conversationId": 1, "done": true, "payload": ""})");
    });
    authenticated_pool pool(
        server.port(), {.user = "me", .password = "p", .source = "$external", .mechanism = "PLAIN"});
    const auto asked = pool.test.ask(count_up);
    run_until(*pool.test.io, [&] {
        other_io.poll();
        return asked->done();
    });
    BOOST_TEST(asked->result().outcome == kind::done, asked->result().text);
    // The Base64 form of NUL, user, NUL, password.
    BOOST_TEST(said.find("AG1lAHA=") != std::string::npos, said);
    BOOST_TEST(said.find("PLAIN") != std::string::npos, said);
    BOOST_TEST(said.find("$external") != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(
    connection_loss_during_a_login_is_no_refusal, *boost::unit_test::precondition(not_ferretdb("SCRAM-SHA-1")))
{
    const guarded_server server;
    faulty_proxy link(server.running.port());
    auto who = me;
    // Without a mechanism, the driver asks for SCRAM-SHA-256 in its handshake, and continues with saslContinue.
    for (const auto* const mechanism : {"", "SCRAM-SHA-1"}) {
        who.mechanism = mechanism;
        authenticated_pool pool(link.port(), who, 2);
        for (const auto* const bytes :
            {"saslSupportedMechs", "speculativeAuthenticate", "saslStart", "saslContinue", "ping", "findAndModify"})
        {
            for (const auto what : {loss::request, loss::reply}) {
                BOOST_TEST_CONTEXT(mechanism << ", cut at " << bytes)
                {
                    // The next command needs a new connection, which has to authenticate.
                    pool.test.post([](connection_pool& all) { all.close_free(); });
                    const auto before = link.cuts();
                    link.cut_at_bytes(bytes, what);
                    const auto& got = pool.test.ask_and_wait(count_up);
                    if (link.cuts() == before)
                        continue;
                    BOOST_TEST(got.outcome == (bytes == std::string("findAndModify") ? kind::unknown : kind::unsent));
                    BOOST_TEST(got.ends_connection);
                    BOOST_TEST(pool.test.all().open_count() == 0u);
                    BOOST_TEST(
                        pool.test.ask_and_wait(count_up).outcome == kind::done, pool.test.last_command->result().text);
                }
            }
        }
        BOOST_TEST(link.cuts() >= 6U);
    }
}

BOOST_AUTO_TEST_CASE(login_that_hangs_is_given_up_at_the_deadline_and_when_the_pool_closes)
{
    const guarded_server server;
    faulty_proxy link(server.running.port());
    authenticated_pool pool(link.port(), me, 2);
    link.cut_at_bytes("saslContinue", loss::delayed_reply);
    BOOST_TEST(pool.test.ask_and_wait(ping, 500ms).outcome == kind::unsent);
    BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done);
    pool.test.post([](connection_pool& all) { all.close_free(); });
    link.cut_at_bytes("speculativeAuthenticate", loss::delayed_reply);
    const auto cuts = link.cuts();
    const auto last = pool.test.ask(ping);
    run_until(*pool.test.io, [&] { return link.cuts() > cuts; });
    pool.test.post([](connection_pool& all) { all.close_all(); });
    BOOST_TEST(pool.test.wait_for(last).outcome == kind::unsent);
}

BOOST_AUTO_TEST_CASE(login_that_hangs_does_not_keep_other_connections_from_their_work)
{
    const guarded_server server;
    faulty_proxy link(server.running.port());
    authenticated_pool pool(link.port(), me, 2);
    BOOST_TEST(pool.test.ask_and_wait(ping).outcome == kind::done);
    link.cut_at_bytes("speculativeAuthenticate", loss::delayed_reply);
    const auto cuts = link.cuts();
    // The pool starts a second connection for these commands after a pause.
    while (link.cuts() == cuts) {
        const auto first = pool.test.ask(ping), second = pool.test.ask(ping);
        BOOST_TEST(pool.test.wait_for(second).outcome == kind::done);
        BOOST_TEST(pool.test.wait_for(first).outcome == kind::done);
    }
    BOOST_TEST(pool.test.ask_and_wait(ping, 10s).outcome == kind::done);
}

BOOST_AUTO_TEST_CASE(a_context_may_end_at_any_step_of_a_login)
{
    const guarded_server server;
    for (int steps = 1;; ++steps) {
        authenticated_pool pool(server.running.port(), me, 2);
        const auto first = pool.test.ask(ping);
        const auto second = pool.test.ask(ping);
        for (int n = 0; n < steps && !(first->done() && second->done()); ++n)
            pool.test.io->run_one();
        const bool finished = first->done() && second->done();
        pool.test.io.reset();
        if (finished)
            break;
    }
}

BOOST_AUTO_TEST_CASE(waiter_survives_a_change_of_the_password)
{
    guarded_server server;
    // A changed password has to survive the end of the process.
    const auto restart = [&] {
        server.running.kill();
        server.running.start({"--auth", "--sync-on-commit"});
    };
    restart();
    const auto set_password = [&](const std::string& password) {
        authenticated_pool admin(server.running.port(), {.user = "sha1_user", .password = "secret"});
        const auto asked = admin.test.ask_in("admin", R"({"dropUser": "me"})");
        const auto& got = admin.test.wait_for(asked);
        BOOST_TEST_REQUIRE(got.outcome == kind::done, got.text);
        guarded_server::create(admin.test, "admin", "me", password, R"(["SCRAM-SHA-256"])");
    };
    asio::io_context io;
    const auto url = "mongodb://127.0.0.1:" + std::to_string(server.running.port()) +
                     "/locks?directConnection=true&authSource=admin";
    const auto make_locker = [&](const credentials& who) {
        return locker(mongo::make_adapter(io.get_executor(), {.url = url, .user = who.user, .password = who.password}),
            {.retry = retry_policy::fixed(50ms)});
    };
    const auto locks = make_locker(me);
    const auto others = make_locker({.user = "accented",
        .password = "s\xc3\xa9"
                    "cret"});
    auto theirs = run_coro(io, others.acquire("k", {.ttl = 1min}));
    auto waiting = start(io, locks.acquire("k"));
    run_until(io, [&] { return locks.stats().waiting == 1; });

    set_password("new");
    restart();
    const auto is_denied = [](const error& failed) {
        return failed.code() == errc::unavailable &&
               std::string_view(failed.what()).find("correct user and password") != std::string_view::npos;
    };
    BOOST_CHECK_EXCEPTION(static_cast<void>(run_coro(io, locks.try_acquire("other"))), error, is_denied);
    const auto wait_for_attempts = [&](std::uint64_t count) {
        run_until(io, [&, until = locks.stats().attempts + count] { return locks.stats().attempts >= until; });
    };
    // The pauses of the adapter have grown to at least 800 ms. The policy has only 50 ms.
    wait_for_attempts(6);
    const auto begun = lease_clock::now();
    wait_for_attempts(3);
    BOOST_TEST((lease_clock::now() - begun > 1600ms));
    BOOST_TEST(!waiting.done());

    set_password(me.password);
    run_coro(io, theirs.release());
    run_coro(io, waiting.get(io).release());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
