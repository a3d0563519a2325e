// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo_fixture.hpp"
#include "support/no_free_descriptors.hpp"
#include "support/peer.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cerrno>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace colock::testing {

using namespace std::string_literals;

BOOST_FIXTURE_TEST_SUITE(mongo_lockers, mongo_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_write_that_no_majority_confirms_in_time_is_unknown_and_is_settled,
    *boost::unit_test::precondition(has_fail_points))
{
    const auto ours = add();
    run(run(ours.acquire("warm")).release());
    fail(R"({"failCommands":["findAndModify","update"],"writeConcernError":{"code":64,"errmsg":"waiting timed out"}})");
    try {
        static_cast<void>(run(ours.acquire("k", {.retry = retry_policy::never()})));
        BOOST_ERROR("granted, although nobody has confirmed it");
    } catch (const create_error& failed) {
        BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
    }
    until([&] { return ours.stats().settling == 0; });
    BOOST_TEST(ours.stats().unproven == 0U);
    BOOST_TEST(holders_at(server->port()).empty());
    // The write was carried out, and a late request could find the lock. So the token is refused.
    BOOST_TEST(lock_document("k").find("\"d\" : [ {") != std::string::npos, lock_document("k"));
    run(run(ours.acquire("k")).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(new_primary_is_found_after_a_step_down, *boost::unit_test::precondition(has_fail_points))
{
    const auto ours = add();
    run(run(ours.acquire("warm")).release());
    fail(R"({"failCommands":["findAndModify","update"],"errorCode":10107})");
    auto held = run(ours.acquire("k"));
    BOOST_TEST(event_log->suspensions == 1);
    BOOST_TEST(event_log->reconnections == 1);
    fail(R"({"failCommands":["findAndModify","update"],"errorCode":11600})");
    BOOST_CHECK_THROW(run(held.extend(1min)), extend_error);
    BOOST_TEST(held.held());
    run(held.extend(1min));
    run(held.release(on_failure::raise));
    until([&] { return ours.stats().settling == 0; });
}

BOOST_AUTO_TEST_CASE(
    raced_writes_are_tried_again_and_are_busy_in_the_end, *boost::unit_test::precondition(has_fail_points))
{
    const auto ours = add();
    run(run(ours.acquire("warm")).release());
    fail(R"({"failCommands":["findAndModify","update"],"errorCode":112})", 4);
    auto held = run(ours.try_acquire("k"));
    BOOST_TEST_REQUIRE(held.has_value());
    run(held->release(on_failure::raise));
    fail(R"({"failCommands":["findAndModify","update"],"errorCode":112})", 5);
    BOOST_TEST(!run(ours.try_acquire("k")).has_value());
}

BOOST_AUTO_TEST_CASE(a_server_that_turns_requests_away_is_asked_again, *boost::unit_test::precondition(has_fail_points))
{
    const auto ours = add();
    run(run(ours.acquire("warm")).release());
    for (const auto* const code : {"365", "462"}) {
        fail(R"({"failCommands":["findAndModify","update"],"errorCode":)"s + code + '}', 2);
        run(run(ours.acquire("k")).release(on_failure::raise));
    }
    BOOST_TEST(event_log->suspensions == 0);
}

BOOST_AUTO_TEST_CASE(document_of_a_held_lock_does_not_grow_with_refused_attempts)
{
    const auto ours = add(), theirs = add();
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        auto held = run(ours.acquire("k"));
        const auto attempt = [&] { BOOST_TEST(!run(theirs.try_acquire("k", {.mode = mode})).has_value()); };
        // The reply contains times besides the document.
        const auto first_fields = [&] {
            const auto reply = lock_document("k");
            const auto begin = reply.find("firstBatch");
            return reply.substr(begin, reply.find("hx") - begin);
        };
        attempt();
        const auto before = first_fields();
        for (int i = 0; i < 5; ++i)
            attempt();
        BOOST_TEST(first_fields() == before);
        run(held.release(on_failure::raise));
    }
}

BOOST_AUTO_TEST_CASE(unresponsive_member_causes_no_delay, *boost::unit_test::precondition(not_ferretdb("replica set")))
{
    asio::io_context other;
    asio::ip::tcp::acceptor mute(other, {asio::ip::address_v4::loopback(), 0});
    auto ours = add({.url = "mongodb://127.0.0.1:" + std::to_string(mute.local_endpoint().port()) +
                            ",127.0.0.1:" + std::to_string(server->port()),
        .connect_timeout = 1h});
    run(run(ours.acquire("k")).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(the_fence_survives_the_release_and_a_purge)
{
    const auto ours = add();
    auto first = run(ours.acquire("k"));
    // As if the fence had been given a minute ago, and the key had been free for two days.
    const auto fence = first.fence() - 60'000;
    run(first.release(on_failure::raise));
    BOOST_TEST(run(ours.purge()).empty());
    BOOST_TEST(lock_document("k").find("\"f\"") != std::string::npos);
    static_cast<void>(
        ask(R"({"update":"locks","updates":[{"q":{"_id":"k"},"u":{"$set":{"p":{"$date":0},"f":{"$numberLong":")" +
            std::to_string(fence) + R"("}}}}]})"));
    BOOST_TEST(run(ours.purge()).empty());
    BOOST_TEST(lock_document("k").find("\"f\"") == std::string::npos);
    auto second = run(ours.acquire("k"));
    BOOST_TEST(second.fence() > fence);
    run(second.release());
}

BOOST_AUTO_TEST_CASE(the_fence_grows_though_the_servers_clock_is_behind_it)
{
    const auto ours = add();
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        auto first = run(ours.acquire("k", {.mode = mode}));
        // As if a member whose clock is an hour ahead had been the primary.
        const auto ahead = first.fence() + 3'600'000;
        static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":"k"},"u":{"$set":{"f":{"$numberLong":")" +
                              std::to_string(ahead) + R"("}}}}]})"));
        run(first.release(on_failure::raise));
        auto second = run(ours.acquire("k", {.mode = mode}));
        BOOST_TEST(second.fence() > ahead);
        auto waiting = start(io, ours.acquire("k"));
        until([&] { return ours.stats().waiting == 1; });
        run(second.release(on_failure::raise));
        auto third = waiting.get(io);
        BOOST_TEST(third.fence() > second.fence());
        run(third.release(on_failure::raise));
    }
}

BOOST_AUTO_TEST_CASE(a_purge_never_takes_what_is_held_or_refused)
{
    const auto ours = add();
    auto held = run(ours.acquire("held"));
    auto forever = run(ours.acquire("forever", {.ttl = 0ms}));
    auto shared = run(ours.acquire("shared", {.mode = lock_mode::shared}));
    for (const std::string key : {"held", "forever", "shared"})
        static_cast<void>(
            ask(R"({"update":"locks","updates":[{"q":{"_id":")" + key + R"("},"u":{"$set":{"p":{"$date":0}}}}]})"));
    BOOST_TEST(run(ours.purge()).empty());
    for (auto* const each : {&held, &forever, &shared}) {
        BOOST_TEST(run(each->is_locked()));
        run(each->release(on_failure::raise));
    }
}

BOOST_AUTO_TEST_CASE(indexes_are_made_when_they_are_asked_for_and_with_the_first_list)
{
    const auto names = [this] {
        try {
            return ask(R"({"listIndexes":"locks"})").to_json();
        } catch (const std::runtime_error&) {
            return ""s;
        }
    };
    const auto ours = add();
    run(mongo::create_indexes(last_adapter));
    for (const auto* const name : {"colock_group", "colock_shared_group", "colock_free_since"})
        BOOST_TEST(names().find(name) != std::string::npos, name);
    static_cast<void>(ask(R"({"drop":"locks"})"));
    run(run(ours.acquire("k")).release());
    BOOST_TEST(names().find("colock_group") == std::string::npos);
    BOOST_TEST(run(ours.list()).empty());
    until([&] { return names().find("colock_group") != std::string::npos; });
}

BOOST_AUTO_TEST_CASE(binary_keys_are_listed)
{
    const auto ours = add();
    std::vector<lock> held;
    for (const std::string key : {"plain", "\xc3\xbc", "\xff", "\xff\xfe", "a\xff"})
        held.push_back(run(ours.acquire(key)));
    BOOST_TEST(run(ours.list()).size() == 5U);
    BOOST_TEST(run(ours.list({.key_prefix = "\xff"})).size() == 2U);
    BOOST_TEST(run(ours.list({.key_prefix = "\xc3"})).size() == 1U);
    BOOST_TEST(run(ours.list({.key_prefix = "a"})).size() == 1U);
    for (auto& each : held)
        run(each.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(operations_wait_for_a_free_connection)
{
    auto few = options();
    few.connections = 2;
    // A forgotten operation would end only after this time.
    few.operation_timeout = 1h;
    const auto ours = add(few);
    std::vector<running<lock>> asked;
    for (int i = 0; i < 100; ++i)
        asked.push_back(start(io, ours.acquire(std::to_string(i))));
    std::vector<lock> held;
    for (auto& each : asked)
        held.push_back(each.get(io));
    std::vector<running<void>> released;
    for (auto& each : held)
        released.push_back(start(io, each.release(on_failure::raise)));
    for (auto& each : released)
        each.get(io);
}

BOOST_AUTO_TEST_CASE(a_check_of_a_server_is_not_disturbed_by_a_purge)
{
    const auto purging = add();
    bool done = false;
    auto purges = start(io, [](locker by, const bool& enough) -> asio::awaitable<void> {
        while (!enough)
            static_cast<void>(co_await by.purge());
    }(purging, done));
    for (int i = 0; i < 20; ++i)
        run(run(add().acquire("k")).release(on_failure::raise));
    done = true;
    purges.get(io);
}

BOOST_AUTO_TEST_CASE(lack_of_descriptors_is_named_as_the_cause, *boost::unit_test::precondition(may_lack_descriptors))
{
    const error_code none_free(EMFILE, boost::system::system_category());
    // A locker that ends would close its connection later, and free a descriptor.
    std::vector<locker> all;
    for (const std::string host : {"127.0.0.1", "localhost"}) {
        BOOST_TEST_CONTEXT(host)
        {
            const auto by =
                all.emplace_back(add({.url = "mongodb://" + host + ':' + std::to_string(server->port()) + "/colock",
                    .operation_timeout = 5s}));
            {
                const no_free_descriptors only_now;
                const auto failed = required_error<create_error>([&] { static_cast<void>(run(by.try_acquire("k"))); });
                BOOST_TEST((failed.code() == errc::unavailable), failed.what());
                BOOST_TEST((failed.cause() == none_free), failed.what());
            }
            run(run(by.acquire("k", {.retry = retry_policy::forever()})).release(on_failure::raise));
        }
    }
}

BOOST_AUTO_TEST_CASE(server_of_another_protocol_is_named_as_the_cause)
{
    std::vector<std::unique_ptr<peer>> servers;
    std::vector<locker> all;
    std::vector<running<std::optional<lock>>> asked;
    for (const std::string text :
        {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"})
    {
        for (const bool closes : {false, true}) {
            servers.push_back(std::make_unique<peer>(io, [text, closes](peer::talk& with) -> asio::awaitable<void> {
                co_await with.say(text);
                if (!closes)
                    co_await with.hear("never");
            }));
            const auto& by = all.emplace_back(
                add({.url = "mongodb://127.0.0.1:" + std::to_string(servers.back()->port()), .operation_timeout = 5s}));
            asked.push_back(start(io, by.try_acquire("k")));
        }
    }
    for (auto& each : asked) {
        const auto failed = required_error<create_error>([&] { static_cast<void>(each.get(io)); });
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        BOOST_TEST(failed.detail().find("not a MongoDB server") != std::string::npos, failed.what());
        BOOST_TEST((failed.cause() == boost::system::errc::protocol_error), failed.what());
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
