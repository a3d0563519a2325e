// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "go_between.hpp"
#include "locker_scene.hpp"
#include "mongo/commands/query.hpp"
#include "support/driver.hpp"
#include "support/print.hpp"
#include "support/relay.hpp"

#include <map>
#include <string>
#include <vector>

namespace colock::testing {

BOOST_FIXTURE_TEST_SUITE(mongo_waiters, mongo_scene, *boost::unit_test::precondition(has_mongodb))

BOOST_AUTO_TEST_CASE(a_waiter_in_another_process_is_woken_by_the_release)
{
    const auto ours = add();
    const auto by = last;
    BOOST_TEST((mongo::waiting(*by) == mongo::waiting_by::nothing));
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    // It looks again when it is told to, or in an hour.
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream && ours.stats().busy >= 2; });
    BOOST_TEST(!waiting.done());
    run(held.release(on_failure::raise));
    auto next = waiting.get(io);
    BOOST_TEST(next.fence() > held.fence());
    run(next.release(on_failure::raise));
    // Nobody waits any more: the stream goes.
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
    // Whoever waits looks once more when there is another.
    until([&] { return ours.stats().busy >= 3; });
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(a_change_stream_that_says_nothing_is_not_believed_for_long)
{
    relay link(server->port());
    auto how = options(mongodb_url(link.port()));
    how.operation_timeout = 500ms;
    const auto ours = add(how);
    const auto by = last;
    const auto theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream && ours.stats().busy >= 2; });
    // From its connection comes nothing more, and nobody is told.
    link.cut_at_bytes("getMore", loss::time);
    until([&] { return link.cuts() == 1; });
    run(held.release(on_failure::raise));
    until([&] { return mongo::waiting(*by) != mongo::waiting_by::change_stream; });
    BOOST_TEST(!waiting.done());
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(whoever_waits_for_long_marks_anew_that_it_does)
{
    const auto ours = add(), theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return ours.stats().busy >= 2; });
    // As if that had been long ago: a release would not be told.
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
    const auto by = last;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::poll; });
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(refused_change_stream_is_replaced_by_polling, *boost::unit_test::precondition(has_fail_points))
{
    // 8000, 33: what other makes of servers call Unauthorized. CommandNotFound. Unrecognized pipeline stage.
    for (const int code : {8000, 33, 59, 40324}) {
        BOOST_TEST_CONTEXT("code " << code)
        {
            told->warnings.clear();
            const auto ours = add();
            const auto by = last;
            const auto theirs = add();
            auto held = run(theirs.acquire("k"));
            fail(R"({"failCommands":["aggregate"],"errorCode":)" + std::to_string(code) + '}');
            auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
            until([&] { return mongo::waiting(*by) == mongo::waiting_by::poll; });
            BOOST_TEST(told->warnings.size() == 1U);
            BOOST_TEST(told->warned_of("code " + std::to_string(code)));
            run(held.release(on_failure::raise));
            run(waiting.get(io).release(on_failure::raise));
        }
    }
}

BOOST_AUTO_TEST_CASE(
    temporarily_refused_change_stream_is_opened_later, *boost::unit_test::precondition(has_fail_points))
{
    const auto ours = add();
    const auto by = last;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    // TemporarilyUnavailable.
    fail(R"({"failCommands":["aggregate"],"errorCode":365})");
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream; });
    BOOST_TEST(told->warnings.empty());
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

namespace {

/// A server whose commands for cursors a test sees and answers.
struct seen_cursors : mongo_scene
{
    seen_cursors()
    {
        between.say([this](const go_between::request& what) {
            ++commands[std::string(what.command)];
            if (what.command == "killCursors")
                killed = what.text;
            // The upstream server forgets the cursor together with the connection that opened it.
            if (what.command == "aggregate")
                return mongo::detail::document::from_json(
                    R"({"ok":1,"cursor":{"id":{"$numberLong":"4711"},"ns":"colock.locks","firstBatch":[]}})");
            if (what.command == "getMore")
                return mongo::detail::document::from_json(more);
            return what.carry_out();
        });
    }

    go_between between{io, server->port()};
    std::map<std::string, int> commands;
    std::string killed;
    std::string more = R"({"ok":1,"cursor":{"id":{"$numberLong":"4711"},"ns":"colock.locks","nextBatch":[]}})";
};

} // namespace

BOOST_FIXTURE_TEST_CASE(change_stream_whose_every_get_more_fails_is_opened_less_and_less_often, seen_cursors)
{
    more = R"({"ok":0,"code":237,"errmsg":"cursor killed"})";
    const auto ours = add(options(mongodb_url(between.port()))), theirs = add();
    auto held = run(theirs.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
    const auto begun = lease_clock::now();
    until([&] { return lease_clock::now() - begun > 4s; });
    // 100 ms between attempts would be about 40 of them.
    BOOST_TEST(commands["aggregate"] >= 3);
    BOOST_TEST(commands["aggregate"] <= 10);
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
}

BOOST_FIXTURE_TEST_CASE(cursor_of_a_change_stream_is_killed_when_nobody_waits_any_more, seen_cursors)
{
    const auto ours = add(options(mongodb_url(between.port())));
    const auto by = last;
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
    const auto ours = add(options(mongodb_url(between.port())));
    const auto by = last;
    const auto theirs = add();
    auto held = run(theirs.acquire("k"));
    auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(100ms)}));
    until([&] { return mongo::waiting(*by) == mongo::waiting_by::change_stream; });
    run(ours.shutdown());
    BOOST_CHECK_THROW(static_cast<void>(waiting.get(io)), error);
    until([&] { return !killed.empty(); });
    run(held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(what_was_released_while_there_was_no_change_stream_is_heard_of_when_there_is)
{
    bool heard = false;
    // Whoever has waited for ten seconds looks again by itself: that is not what is meant.
    for (int attempts = 0; attempts < 3 && !heard; ++attempts) {
        relay link(server->port());
        const auto ours = add(options(mongodb_url(link.port()))), theirs = add();
        auto held = run(theirs.acquire("k", {.ttl = 1h}));
        const auto begun = lease_clock::now();
        auto waiting = start(io, ours.acquire("k", {.retry = retry_policy::fixed(1h)}));
        until([&] { return ours.stats().busy >= 2; });
        link.refuse(true);
        run(held.release(on_failure::raise));
        link.refuse(false);
        auto next = waiting.get(io);
        heard = lease_clock::now() - begun < 9s;
        run(next.release(on_failure::raise));
    }
    BOOST_TEST(heard);
}

namespace {

/// One who holds, and another who waits, and so is told of releases by what it looks at.
struct told_scene : mongo_scene
{
    [[nodiscard]] std::int64_t counted(const std::string& key) const
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
    void check_told(const plain_claim_ptr& held, bool told_of, const std::function<void()>& act)
    {
        const auto key = std::string(held->key());
        some.grant(held);
        act();
        BOOST_TEST(counted(key) == 0);
        if (some.inspect(key).empty())
            some.grant(held);
        const auto waits = held->mode() == lock_mode::shared ? driver::shared(key, 1) : driver::exclusive(key);
        other.refuse(waits);
        act();
        BOOST_TEST(counted(key) == (told_of ? 1 : 0));
    }

    const driver some{io, mongo::make_adapter(io.get_executor(), options())};
    const driver other{io, mongo::make_adapter(io.get_executor(), options())};
};

} // namespace

BOOST_FIXTURE_TEST_CASE(those_who_wait_are_told_whenever_a_lock_becomes_free_earlier_than_was_said, told_scene)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        const auto claim = [&](const std::string& key) {
            const auto name = key + (mode == lock_mode::shared ? ", shared" : "");
            return mode == lock_mode::shared ? driver::shared(name) : driver::exclusive(name);
        };
        const auto released = claim("released"), abandoned = claim("abandoned"), broken = claim("broken"),
                   shortened = claim("shortened"), lengthened = claim("lengthened");
        check_told(released, true, [&] { some.give_back(released); });
        check_told(abandoned, true, [&] { BOOST_TEST((some.abandon(abandoned).status == release_status::released)); });
        check_told(broken, true, [&] { BOOST_TEST(other.break_key(std::string(broken->key())).size() == 1U); });
        check_told(shortened, true, [&] {
            BOOST_TEST((some.extend(shortened, 10min).status == extend_status::extended));
            BOOST_TEST((some.extend(shortened, 20min).status == extend_status::extended));
        });
        check_told(
            lengthened, false, [&] { BOOST_TEST((some.extend(lengthened, 2h).status == extend_status::extended)); });
    }
}

BOOST_FIXTURE_TEST_CASE(readers_that_a_writer_has_kept_out_are_told_when_it_gives_up, told_scene)
{
    some.grant(driver::shared("k"));
    const auto writer = driver::exclusive("k");
    some.refuse(writer);
    other.refuse(driver::shared("k"));
    some.abandon(writer);
    BOOST_TEST(counted("k") == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
