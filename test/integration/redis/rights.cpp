// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(redis_faults)

BOOST_AUTO_TEST_CASE(wrong_credentials_are_denied_at_once)
{
    redis_server server({"--requirepass", "right"});
    const auto begin = std::chrono::steady_clock::now();
    for (const auto* password : {"", "wrong-and-secret"}) {
        client_side client({.url = server.url(), .password = password, .operation_timeout = 20s});
        const auto outcome = client.test_driver.create(driver::exclusive("k"));
        BOOST_TEST(code_of(outcome) == errc::access_denied);
        BOOST_TEST(outcome.error->detail.find("secret") == std::string::npos);
    }
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 10s));
    client_side client({.url = "redis://:right@127.0.0.1:" + std::to_string(server.port()) + "/3"});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(server({"AUTH", "right"}) == "OK");
    BOOST_TEST(server({"SELECT", "3"}) == "OK");
    BOOST_TEST(server({"EXISTS", "{colock}:k"}) == "1");
}

BOOST_AUTO_TEST_CASE(waiter_and_held_lock_survive_a_change_of_the_password)
{
    redis_server server;
    const auto set_password = [&](const std::string& password) {
        server({"ACL", "SETUSER", "app", "on", "resetpass", ">" + password, "~{colock}*", "&*", "+@all"});
    };
    set_password("old");
    asio::io_context io;
    const auto events = std::make_shared<notes>();
    const locker locks(redis::make_adapter(io.get_executor(), {.url = server.url(), .user = "app", .password = "old"}),
        {.retry = retry_policy::fixed(20ms), .observer = events});
    const locker others(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    auto held = run_coro(io, locks.acquire("held", {.ttl = 1min, .renewal = renewal::automatic}));
    auto theirs = run_coro(io, others.acquire("k"));
    auto waiting = start(io, locks.acquire("k"));
    run_until(io, [&] { return locks.stats().waiting == 1; });

    // The server has the new password before the program has it.
    set_password("new");
    server({"CLIENT", "KILL", "USER", "app"});
    run_until(io, [&] { return events->warned_of("correct the user or the password"); });
    const auto attempts = locks.stats().attempts;
    run_until(io, [&] { return locks.stats().attempts > attempts + 3; });
    BOOST_TEST(!waiting.done());
    BOOST_TEST(held.held());
    // A single attempt fails, and names the cause.
    BOOST_CHECK_EXCEPTION(static_cast<void>(run_coro(io, locks.try_acquire("other"))), error, [](const error& failed) {
        return failed.code() == errc::unavailable &&
               std::string_view(failed.what()).find("correct the user or the password") != std::string_view::npos;
    });

    set_password("old");
    run_coro(io, theirs.release());
    auto granted = waiting.get(io);
    BOOST_TEST(granted.held());
    BOOST_TEST(held.held());
    run_coro(io, held.extend(1min));
    run_coro(io, granted.release());
    run_coro(io, held.release());
}

BOOST_AUTO_TEST_CASE(the_smallest_set_of_rights_suffices)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "resetkeys", "~{colock}:*", "~{colock}#*", "resetchannels",
        "&{colock}:*", "-@all", "+ping", "+info", "+select", "+client|kill", "+eval", "+evalsha", "+set", "+get",
        "+getex", "+mget", "+del", "+incrby", "+persist", "+pexpire", "+pexpireat", "+pttl", "+type", "+time",
        "+publish", "+subscribe", "+unsubscribe", "+scan", "+zadd", "+zcard", "+zrange", "+zrangebyscore", "+zrem",
        "+zscan", "+zscore"});
    client_side client({.url = server.url(), .user = "app", .password = "pw"});
    const auto holder = driver::exclusive("k");
    const auto waiter = driver::exclusive("k");
    client.test_driver.grant(holder);
    auto waiting = client.test_driver.start_acquire(waiter);
    run_until(client.io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    client.test_driver.check_held(holder);
    BOOST_TEST((client.test_driver.extend(holder, 10s).status == extend_status::extended));
    client.test_driver.release_held(holder);
    waiting.get(client.io);
    const auto next = driver::exclusive("k");
    BOOST_TEST((client.test_driver.hand_over(waiter, next).created.status == create_status::granted));
    client.test_driver.release_held(next);
    // Requests in one batch, which use the batched scripts.
    std::vector<plain_claim_ptr> held;
    std::vector<plain_claim_ptr> after;
    std::vector<running<hand_over_outcome>> handed_over;
    std::vector<running<release_outcome>> released;
    for (const auto* key : {"a", "b", "c", "d"}) {
        client.test_driver.grant(held.emplace_back(driver::exclusive(key)));
        after.push_back(driver::exclusive(key));
    }
    for (std::size_t i = 0; i < held.size(); ++i)
        handed_over.push_back(
            start(client.io, client.test_driver.backend().hand_over(sent_now(held[i]), sent_now(after[i]))));
    for (auto& each : handed_over)
        BOOST_TEST((each.get(client.io).created.status == create_status::granted));
    for (const auto& each : after)
        released.push_back(
            start(client.io, client.test_driver.backend().release(sent_now(each), release_guarantee::released)));
    for (auto& each : released)
        BOOST_TEST((each.get(client.io).status == release_status::released));

    const auto reader = driver::shared("s", 2);
    client.test_driver.grant(reader);
    BOOST_TEST((client.test_driver.extend(reader, 10s).status == extend_status::extended));
    client.test_driver.check_held(reader);
    const auto writer = driver::exclusive("s");
    client.test_driver.check_refused(writer);
    client.test_driver.abandon(writer);
    BOOST_TEST(client.test_driver.list().size() == 1u);
    BOOST_TEST(client.test_driver.purge().empty());
    client.test_driver.release_held(reader);
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(client.test_driver.break_key("k").size() == 1u);
    const auto member = [](std::string key, lock_mode mode) {
        return plain_claim_ptr(new plain_claim({.key = std::move(key),
            .mode = mode,
            .owner = std::make_shared<const owner_data>(owner_data{.group = "g"})}));
    };
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        const auto first = member("g1", mode), second = member("g2", mode), third = member("g2", mode);
        client.test_driver.grant(first);
        client.test_driver.grant(second);
        if (mode == lock_mode::shared)
            client.test_driver.grant(third);
        BOOST_TEST((client.test_driver.extend(first, 10s).status == extend_status::extended));
        client.test_driver.release_held(first);
        BOOST_TEST(client.test_driver.extend_group("g", 1h).size() == (mode == lock_mode::shared ? 2u : 1u));
        BOOST_TEST(client.test_driver.release_group("g").size() == (mode == lock_mode::shared ? 2u : 1u));
    }
    BOOST_TEST(!client.events->warned_of("not allowed"));
    BOOST_TEST(!client.events->warned_of("poll"));
    BOOST_TEST(server({"ACL", "LOG"}).empty());
}

BOOST_AUTO_TEST_CASE(the_smallest_set_of_rights_of_the_plain_layout_suffices)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "resetkeys", "~cart:*", "~{colock}#probe", "resetchannels", "&cart:*",
        "-@all", "+ping", "+info", "+select", "+client|kill", "+eval", "+evalsha", "+set", "+get", "+getex", "+mget",
        "+del", "+persist", "+pexpire", "+pttl", "+type", "+time", "+publish", "+subscribe", "+unsubscribe", "+scan"});
    client_side client({.url = server.url(), .layout = redis::layout::plain, .user = "app", .password = "pw"});
    const auto holder = driver::exclusive("cart:7");
    const auto waiter = driver::exclusive("cart:7");
    client.test_driver.grant(holder);
    auto waiting = client.test_driver.start_acquire(waiter);
    run_until(client.io, [&] { return server({"PUBSUB", "NUMSUB", "cart:7"}) == "cart:7\n1\n"; });
    client.test_driver.check_held(holder);
    BOOST_TEST((client.test_driver.extend(holder, 10s).status == extend_status::extended));
    BOOST_TEST(client.test_driver.inspect("cart:7").size() == 1u);
    client.test_driver.release_held(holder);
    waiting.get(client.io);
    const auto next = driver::exclusive("cart:7", 0s);
    BOOST_TEST(
        (client.test_driver.adopt(client.test_driver.export_ticket(waiter), next).status == create_status::granted));
    BOOST_TEST(client.test_driver.break_key("cart:7").size() == 1u);
    BOOST_TEST(!client.events->warned_of("not allowed"));
    BOOST_TEST(server({"ACL", "LOG"}).empty());
}

BOOST_AUTO_TEST_CASE(a_user_without_scripts_is_denied)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", "-@scripting"});
    client_side client({.url = server.url(), .user = "app", .password = "pw"});
    BOOST_TEST(code_of(client.test_driver.create(driver::exclusive("k"))) == errc::access_denied);
    BOOST_TEST(client.events->warned_of(" cannot be used: "));
}

namespace {

/// Options of a user that may run all commands but one.
redis::options user_without(redis_server& server, const std::string& command, redis::layout layout)
{
    server({"ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "&*", "+@all", "-" + command});
    return {.url = server.url(), .layout = layout, .user = "app", .password = "pw"};
}

std::string upper(std::string text)
{
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

plain_claim_ptr member_of_a_group(std::string key, lock_mode mode = lock_mode::exclusive)
{
    return plain_claim_ptr(new plain_claim(
        {.key = std::move(key), .mode = mode, .owner = std::make_shared<const owner_data>(owner_data{.group = "g"})}));
}

} // namespace

BOOST_AUTO_TEST_CASE(no_lock_is_granted_without_rights_for_renewal_or_release)
{
    redis_server server;
    for (const auto layout : {redis::layout::standard, redis::layout::plain}) {
        for (const std::string command : {"eval", "evalsha", "get", "getex", "mget", "set", "del", "pexpire", "persist",
                 "pttl", "type", "time", "incrby"})
        {
            if (command == "incrby" && layout == redis::layout::plain)
                continue;
            BOOST_TEST_CONTEXT("without " << command)
            {
                client_side client(user_without(server, command, layout));
                const auto outcome = client.test_driver.create(driver::exclusive("k"));
                BOOST_TEST(code_of(outcome) == errc::access_denied);
                BOOST_TEST(outcome.error->detail.find(upper(command)) != std::string::npos, outcome.error->detail);
                BOOST_TEST(outcome.error->detail.find("rights") != std::string::npos, outcome.error->detail);
                BOOST_TEST(server({"EXISTS", "{colock}:k", "k", "{colock}#probe"}) == "0");
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_right_that_was_granted_meanwhile_is_noticed)
{
    redis_server server;
    client_side client(user_without(server, "del", redis::layout::standard));
    BOOST_TEST(code_of(client.test_driver.create(driver::exclusive("k"))) == errc::access_denied);
    server({"ACL", "SETUSER", "app", "+del"});
    client.test_driver.grant(driver::exclusive("k"));
}

BOOST_AUTO_TEST_CASE(a_command_that_was_renamed_is_denied_by_its_name)
{
    for (const auto layout : {redis::layout::standard, redis::layout::plain}) {
        for (const std::string command : {"DEL", "EVALSHA", "PEXPIRE"}) {
            redis_server server({"--rename-command", command, ""});
            client_side client({.url = server.url(), .layout = layout});
            const auto outcome = client.test_driver.create(driver::exclusive("k"));
            BOOST_TEST(code_of(outcome) == errc::access_denied);
            BOOST_TEST(outcome.error->detail.find(command) != std::string::npos, outcome.error->detail);
        }
    }
}

BOOST_AUTO_TEST_CASE(without_a_command_of_sorted_sets_shared_locks_and_locks_of_groups_are_denied)
{
    redis_server server;
    for (const std::string command :
        {"zadd", "zrem", "zcard", "zscore", "zrange", "zrangebyscore", "zscan", "pexpireat", "@sortedset"})
    {
        BOOST_TEST_CONTEXT("without " << command)
        {
            client_side client(user_without(server, command, redis::layout::standard));
            const auto name = command == "@sortedset" ? "ZADD" : upper(command);
            const auto check_denied = [&](const create_outcome& outcome) {
                BOOST_TEST(code_of(outcome) == errc::access_denied);
                BOOST_TEST_REQUIRE(outcome.error);
                BOOST_TEST(outcome.error->detail.find(name) != std::string::npos, outcome.error->detail);
                BOOST_TEST(server({"EXISTS", "{colock}:s", "{colock}#g:g"}) == "0");
            };
            const auto writer = driver::exclusive("k");
            client.test_driver.grant(writer);
            BOOST_TEST((client.test_driver.extend(writer, 10s).status == extend_status::extended));
            client.test_driver.release_held(writer);
            BOOST_TEST(client.events->warned_of(name));
            const std::vector<plain_claim_ptr> both{driver::exclusive("a"), driver::exclusive("b")};
            client.test_driver.grant_all(both);
            for (const auto& each : both)
                client.test_driver.release_held(each);

            check_denied(client.test_driver.create(driver::shared("s")));
            check_denied(client.test_driver.create(driver::shared("s", 2)));
            for (const auto mode : {lock_mode::exclusive, lock_mode::shared})
                check_denied(client.test_driver.create(member_of_a_group("s", mode)));
            client_side other({.url = server.url()});
            const auto reader = driver::shared("r");
            other.test_driver.grant(reader);
            check_denied(client.test_driver.adopt(other.test_driver.export_ticket(reader), driver::shared("r")));
            other.test_driver.release_held(reader);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_right_that_is_taken_away_is_reported_and_never_read_as_a_negative_answer)
{
    redis_server server;
    for (const std::string command :
        {"eval", "evalsha", "set", "get", "getex", "mget", "del", "incrby", "persist", "pexpire", "pexpireat", "pttl",
            "type", "time", "publish", "scan", "zadd", "zcard", "zrange", "zrangebyscore", "zrem", "zscan", "zscore"})
    {
        for (const int readers : {0, 1, 2}) {
            for (const bool grouped : {false, true}) {
                BOOST_TEST_CONTEXT("without " << command << ", readers " << readers << ", grouped " << grouped)
                {
                    server({"FLUSHALL"});
                    server({"ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "&*", "+@all"});
                    client_side client({.url = server.url(), .user = "app", .password = "pw"});
                    const auto mode = readers == 0 ? lock_mode::exclusive : lock_mode::shared;
                    const auto make = [&] {
                        return grouped                     ? member_of_a_group("k", mode)
                               : mode == lock_mode::shared ? driver::shared("k")
                                                           : driver::exclusive("k");
                    };
                    const auto held = make();
                    client.test_driver.grant(held);
                    if (readers == 2)
                        client.test_driver.grant(make());
                    const auto denied = [](const failure_ptr& error) {
                        return error && error->code == errc::access_denied;
                    };
                    server({"ACL", "SETUSER", "app", "-" + command});
                    const auto valid = client.test_driver.valid(held);
                    BOOST_TEST((valid.valid || denied(valid.error)), "is_valid");
                    const auto extended = client.test_driver.extend(held, 30s);
                    BOOST_TEST((extended.status == extend_status::extended || denied(extended.error)), "extend");
                    const auto listed =
                        run_coro(client.io, client.test_driver.backend().listing({.filter = {.key = "k"}}));
                    BOOST_TEST((!listed.locks.empty() || denied(listed.error)), "inspect");
                    if (grouped) {
                        const auto group = client.test_driver.group("g", group_action::extend, 1h);
                        BOOST_TEST((!group.locks.empty() || denied(group.error)), "group");
                    }
                    const auto next = make();
                    const auto adopted = client.test_driver.adopt(client.test_driver.export_ticket(held), next);
                    // Without INCRBY, the lock is adopted and its fence is refused.
                    const bool moved = adopted.status == create_status::granted ||
                                       (command == "incrby" && code_of(adopted) == errc::outcome_unknown);
                    BOOST_TEST((moved || denied(adopted.error)), "adopt");
                    const auto released = client.test_driver.release(moved ? next : held);
                    BOOST_TEST((released.status == release_status::released || denied(released.error)), "release");
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(reader_that_is_refused_after_its_first_write_excludes_no_writer)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"});
    client_side client({.url = server.url(), .user = "app", .password = "pw"});
    client_side other({.url = server.url()});
    client.test_driver.grant(driver::exclusive("warm"));
    for (const std::string command : {"zrem", "zcard", "persist"}) {
        for (const int row : {0, 1, 2, 3}) {
            const int readers = row % 2 + 1;
            const bool writer_waits = row > 1;
            BOOST_TEST_CONTEXT("without " << command << ", readers " << readers << ", a writer waits: " << writer_waits)
            {
                server({"ACL", "SETUSER", "app", "-" + command});
                std::vector<plain_claim_ptr> holders;
                for (int i = 0; i < readers; ++i)
                    other.test_driver.grant(holders.emplace_back(driver::shared("k")));
                const auto writer = driver::exclusive("k");
                if (writer_waits)
                    other.test_driver.check_refused(writer);
                // Without a writer, the limit of the semaphore refuses the reader. PERSIST is used after both checks.
                const auto reader = driver::shared("k", writer_waits || command == "persist" ? 0 : 1, 0ms);
                const auto outcome = client.test_driver.create(reader);
                BOOST_TEST((outcome.status == create_status::busy || code_of(outcome) == errc::access_denied));
                server({"ACL", "SETUSER", "app", "+" + command});
                for (const auto& each : holders)
                    other.test_driver.release_held(each);
                other.test_driver.grant(writer);
                other.test_driver.release_held(writer);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(refused_sweep_is_not_reported_as_busy)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"});
    client_side client({.url = server.url(), .user = "app", .password = "pw"});
    const auto brief = driver::shared("k", 2, 200ms), lasting = driver::shared("k", 2);
    client.test_driver.grant(brief);
    client.test_driver.grant(lasting);
    server({"ACL", "SETUSER", "app", "-zrangebyscore"});
    client.run_for(400ms);
    const auto next = driver::shared("k", 2);
    BOOST_TEST(code_of(client.test_driver.create(next)) == errc::access_denied);
    server({"ACL", "SETUSER", "app", "+zrangebyscore"});
    client.test_driver.grant(next);
}

BOOST_AUTO_TEST_CASE(group_extension_that_is_refused_changes_no_lock)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all"});
    client_side client({.url = server.url(), .user = "app", .password = "pw"});
    const auto held = member_of_a_group("k", lock_mode::exclusive);
    client.test_driver.grant(held);
    const auto before = std::stoll(server({"PTTL", "{colock}:k"}));
    server({"ACL", "SETUSER", "app", "-pexpireat"});
    const auto extended = client.test_driver.group("g", group_action::extend, 1h);
    BOOST_TEST((extended.error && extended.error->code == errc::access_denied));
    BOOST_TEST(std::stoll(server({"PTTL", "{colock}:k"})) <= before);
}

BOOST_AUTO_TEST_CASE(without_the_right_to_kill_there_is_a_warning_at_connect)
{
    redis_server server;
    for (const auto layout : {redis::layout::standard, redis::layout::plain}) {
        client_side client(user_without(server, "client|kill", layout));
        client.test_driver.grant(driver::exclusive("k"));
        BOOST_TEST(client.events->warned_of("CLIENT KILL"));
        client_side full({.url = server.url(), .layout = layout});
        full.test_driver.grant(driver::exclusive("l"));
        BOOST_TEST(!full.events->warned_of("CLIENT KILL"));
        server({"FLUSHALL"});
    }
}

BOOST_AUTO_TEST_CASE(without_the_right_to_publish_there_is_a_warning)
{
    redis_server server;
    client_side client(user_without(server, "publish", redis::layout::standard));
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    client.test_driver.release_held(claim);
    BOOST_TEST(client.events->warned_of("PUBLISH"));
}

BOOST_AUTO_TEST_CASE(without_messages_waiters_poll_and_no_connection_is_repeated)
{
    for (const std::string command : {"SUBSCRIBE", "PING"}) {
        redis_server server({"--rename-command", command, ""});
        client_side client({.url = server.url(), .poll_interval = 20ms});
        client_side other({.url = server.url()});
        const auto holder = driver::exclusive("k");
        other.test_driver.grant(holder);
        auto waiting = client.test_driver.start_acquire(driver::exclusive("k"));
        run_until(client.io, [&] { return client.events->warned_of("poll"); });
        const auto connections = [&] {
            const auto reply = server({"INFO", "stats"});
            return std::stoi(reply.substr(reply.find(':') + 1));
        };
        const auto before = connections();
        client.run_for(3s);
        BOOST_TEST(connections() == before);
        BOOST_TEST(!waiting.done());
        other.test_driver.release_held(holder);
        waiting.get(client.io);
        BOOST_TEST(std::ranges::count_if(client.events->warnings,
                       [](const auto& each) { return each.find("poll") != std::string::npos; }) == 1);
    }
}

BOOST_AUTO_TEST_CASE(release_succeeds_without_the_right_to_publish)
{
    redis_server server;
    server({"ACL", "SETUSER", "app", "on", ">pw", "~*", "resetchannels", "+@all"});
    client_side client({.url = server.url(), .user = "app", .password = "pw"});
    const auto exclusive = driver::exclusive("k");
    client.test_driver.grant(exclusive);
    client.test_driver.release_held(exclusive);
    const auto reader = driver::shared("k");
    client.test_driver.grant(reader);
    client.test_driver.release_held(reader);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
