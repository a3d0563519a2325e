// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "intercepting_proxy.hpp"
#include "mongo/commands/query.hpp"
#include "mongo_fixture.hpp"
#include "support/driver.hpp"
#include "support/faulty_proxy.hpp"
#include "support/print.hpp"

#include <map>
#include <string>
#include <vector>

namespace colock::testing {

BOOST_FIXTURE_TEST_SUITE(mongo_waiters, mongo_fixture, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_waiter_in_another_process_is_woken_by_the_release,
    *boost::unit_test::precondition(not_ferretdb("change streams")))
{
    const auto ours = add();
    const auto by = last_adapter;
    BOOST_TEST((mongo::waiting(*by) == mongo::waiting_by::nothing));
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    // The claim checks again when it is notified, or after an hour.
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream && ours.stats().busy >= 2; });
    BOOST_TEST(!waiting.done());
    run(held.release(on_failure::raise));
    auto next = waiting.get(io);
    BOOST_TEST(next.fence() > held.fence());
    run(next.release(on_failure::raise));
    // No claim waits any more, so the stream is closed.
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::nothing; });
}

BOOST_AUTO_TEST_CASE(
    a_waiter_is_woken_though_its_change_stream_was_cut, *boost::unit_test::precondition(has_fail_points))
{
    const auto ours = add(), theirs = add();
    auto held = run(theirs.acquire("k"));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return ours.stats().busy >= 2; });
    fail(R"({"failCommands":["getMore"],"closeConnection":true})");
    // A new change stream makes waiters check once more.
    until([&] { return ours.stats().busy >= 3; });
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(silent_change_stream_is_given_up, *boost::unit_test::precondition(not_ferretdb("change streams")))
{
    faulty_proxy link(server->port());
    auto how = options(mongodb_url(link.port()));
    how.operation_timeout = 2s;
    const auto ours = add(how);
    const auto by = last_adapter;
    run(run(ours.acquire("warm")).release(on_failure::raise));
    const auto theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream && ours.stats().busy >= 2; });
    // The connection becomes silent without being closed.
    link.cut_at_bytes("getMore", loss::delayed_reply);
    until([&] { return link.cuts() == 1; });
    run(held.release(on_failure::raise));
    until([&] { return mongo::waiting(*by) != mongo::waiting_by::change_stream; });
    BOOST_TEST(!waiting.done());
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(long_waiting_claim_renews_its_mark)
{
    const auto ours = add(), theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return ours.stats().busy >= 2; });
    // As if the mark were old: releases would not be reported.
    static_cast<void>(ask(R"({"update":"locks","updates":[{"q":{"_id":"k"},"u":{"$set":{"w":1}}}]})"));
    until([&] { return ours.stats().busy >= 3; });
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(without_change_streams_waiters_poll)
{
    own.emplace(std::vector<std::string>{"--standalone"});
    server = &*own;
    const auto ours = add();
    const auto by = last_adapter;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::poll; });
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(refused_change_stream_is_replaced_by_polling, *boost::unit_test::precondition(has_fail_points))
{
    // Codes 8000 and 33: names of other servers for Unauthorized. Then CommandNotFound, and an unrecognized pipeline
    // stage.
    for (const int code : {8000, 33, 59, 40324}) {
        BOOST_TEST_CONTEXT("code " << code)
        {
            event_log->warnings.clear();
            const auto ours = add();
            const auto by = last_adapter;
            const auto theirs = add();
            auto held = run(theirs.acquire("k"));
            fail(R"({"failCommands":["aggregate"],"errorCode":)" + std::to_string(code) + '}');
            auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
            until([&] { return mongo::waiting(*by) == mongo::waiting_by::poll; });
            BOOST_TEST(event_log->warnings.size() == 1U);
            BOOST_TEST(event_log->warned_of("code " + std::to_string(code)));
            run(held.release(on_failure::raise));
            run(waiting.get(io).release(on_failure::raise));
        }
    }
}

BOOST_AUTO_TEST_CASE(
    temporarily_refused_change_stream_is_opened_later, *boost::unit_test::precondition(has_fail_points))
{
    const auto ours = add();
    const auto by = last_adapter;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    // TemporarilyUnavailable.
    fail(R"({"failCommands":["aggregate"],"errorCode":365})");
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream; });
    BOOST_TEST(event_log->warnings.empty());
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

namespace {

/// A server whose cursor commands are recorded and answered by the test.
struct seen_cursors : mongo_fixture
{
    seen_cursors()
    {
        interceptor.on_command([this](const intercepting_proxy::request& what) {
            ++commands[std::string(what.command)];
            if (what.command == "killCursors")
                killed = what.text;
            // The upstream server forgets a cursor together with the connection that opened it.
            if (what.command == "aggregate")
                return mongo::detail::document::from_json(
                    R"({"ok":1,"cursor":{"id":{"$numberLong":"4711"},"ns":"colock.locks","firstBatch":[]}})");
            if (what.command == "getMore")
                return mongo::detail::document::from_json(more);
            return what.carry_out();
        });
    }

    intercepting_proxy interceptor{io, server->port()};
    std::map<std::string, int> commands;
    std::string killed;
    std::string more = R"({"ok":1,"cursor":{"id":{"$numberLong":"4711"},"ns":"colock.locks","nextBatch":[]}})";
};

} // namespace

BOOST_FIXTURE_TEST_CASE(change_stream_whose_every_get_more_fails_is_opened_less_and_less_often, seen_cursors)
{
    more = R"({"ok":0,"code":237,"errmsg":"cursor killed"})";
    const auto ours = add(options(mongodb_url(interceptor.port()))), theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    const auto begun = lease_clock::now();
    // With 100 ms between attempts, there would be about 40 attempts.
    until([&] { return lease_clock::now() - begun > 4s && commands["aggregate"] >= 3; });
    BOOST_TEST(commands["aggregate"] <= 10);
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_FIXTURE_TEST_CASE(server_that_does_not_wait_for_changes_is_asked_ten_times_per_second, seen_cursors)
{
    const auto ours = add(options(mongodb_url(interceptor.port()))), theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return commands["getMore"] > 0; });
    const auto begun = lease_clock::now();
    until([&] { return commands["getMore"] > 10; });
    BOOST_TEST((lease_clock::now() - begun > 900ms));
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_FIXTURE_TEST_CASE(cursor_of_a_change_stream_is_killed_after_the_last_waiter, seen_cursors)
{
    const auto ours = add(options(mongodb_url(interceptor.port())));
    const auto by = last_adapter;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(100ms)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream; });
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::nothing && !killed.empty(); });
    BOOST_TEST(commands["killCursors"] == 1);
    BOOST_TEST(killed.find("4711") != std::string::npos, killed);
    BOOST_TEST(killed.find("locks") != std::string::npos, killed);
}

BOOST_FIXTURE_TEST_CASE(cursor_of_a_change_stream_is_killed_at_shutdown, seen_cursors)
{
    const auto ours = add(options(mongodb_url(interceptor.port())));
    const auto by = last_adapter;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(100ms)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream; });
    run(ours.shutdown());
    BOOST_CHECK_THROW(static_cast<void>(waiting.get(io)), error);
    until([&] { return !killed.empty(); });
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(release_without_a_change_stream_is_noticed_after_it_opens)
{
    bool was_notified = false;
    // A claim that has waited for ten seconds checks by itself, so such an attempt proves nothing.
    for (int attempts = 0; attempts < 3 && !was_notified; ++attempts) {
        faulty_proxy link(server->port());
        const auto ours = add(options(mongodb_url(link.port()))), theirs = add();
        auto held = run(theirs.acquire("k", {.ttl = 1h}));
        const auto begun = lease_clock::now();
        auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
        until([&] { return ours.stats().busy >= 2; });
        link.refuse(true);
        run(held.release(on_failure::raise));
        link.refuse(false);
        auto next = waiting.get(io);
        was_notified = lease_clock::now() - begun < 9s;
        run(next.release(on_failure::raise));
    }
    BOOST_TEST(was_notified);
}

namespace {

/// One client holds a lock, and another waits. The counter in the document shows the notifications of waiters.
struct notification_fixture : mongo_fixture
{
    [[nodiscard]] std::int64_t release_counter(const std::string& key) const
    {
        std::int64_t count = 0;
        mongo::detail::for_each_document(
            ask(R"({"find":"locks","filter":{"_id":")" + key + "\"}}"), [&](const bson_iter_t& each) {
                bson_iter_t fields;
                if (bson_iter_recurse(&each, &fields) && bson_iter_find(&fields, "g"))
                    count = bson_iter_as_int64(&fields);
            });
        return count;
    }
    void check_notified(const plain_claim_ptr& held, bool is_notified, const std::function<void()>& act)
    {
        const auto key = std::string(held->key());
        test_driver.grant(held);
        act();
        BOOST_TEST(release_counter(key) == 0);
        if (test_driver.inspect(key).empty())
            test_driver.grant(held);
        const auto waiting_claim = held->mode() == lock_mode::shared ? driver::shared(key, 1) : driver::exclusive(key);
        other.check_refused(waiting_claim);
        act();
        BOOST_TEST(release_counter(key) == (is_notified ? 1 : 0));
    }

    const driver test_driver{io, mongo::make_adapter(io.get_executor(), options())};
    const driver other{io, mongo::make_adapter(io.get_executor(), options())};
};

} // namespace

BOOST_FIXTURE_TEST_CASE(waiters_are_notified_when_a_lock_becomes_free_early, notification_fixture)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        const auto claim = [&](const std::string& key) {
            const auto name = key + (mode == lock_mode::shared ? ", shared" : "");
            return mode == lock_mode::shared ? driver::shared(name) : driver::exclusive(name);
        };
        const auto released = claim("released"), abandoned = claim("abandoned"), broken = claim("broken"),
                   shortened = claim("shortened"), lengthened = claim("lengthened");
        check_notified(released, true, [&] { test_driver.release_held(released); });
        check_notified(
            abandoned, true, [&] { BOOST_TEST((test_driver.abandon(abandoned).status == release_status::released)); });
        check_notified(broken, true, [&] { BOOST_TEST(other.break_key(std::string(broken->key())).size() == 1U); });
        check_notified(shortened, true, [&] {
            BOOST_TEST((test_driver.extend(shortened, 10min).status == extend_status::extended));
            BOOST_TEST((test_driver.extend(shortened, 20min).status == extend_status::extended));
        });
        check_notified(lengthened, false,
            [&] { BOOST_TEST((test_driver.extend(lengthened, 2h).status == extend_status::extended)); });
    }
}

BOOST_FIXTURE_TEST_CASE(readers_are_notified_when_the_waiting_writer_gives_up, notification_fixture)
{
    test_driver.grant(driver::shared("k"));
    const auto writer = driver::exclusive("k");
    test_driver.check_refused(writer);
    other.check_refused(driver::shared("k"));
    test_driver.abandon(writer);
    BOOST_TEST(release_counter("k") == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
