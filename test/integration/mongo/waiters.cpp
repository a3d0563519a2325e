// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_scene.hpp"
#include "support/relay.hpp"

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

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
