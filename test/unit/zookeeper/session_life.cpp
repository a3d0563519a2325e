// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_life.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>

using namespace colock;
using namespace colock::zookeeper::detail;
using namespace std::chrono_literals;

namespace {

using phase = zk_client::phase;
using seen = session_life::change;

struct scene
{
    explicit scene(std::optional<std::chrono::milliseconds> smallest_timeout = {}) : life(10s, 500ms, smallest_timeout)
    {
    }

    /// The handshake is sent at that moment.
    bool connect(lease_clock::time_point sent)
    {
        BOOST_TEST((life.saw(phase::connecting, sent - 1ms) == seen::none));
        BOOST_TEST((life.saw(phase::greeting, sent) == seen::none));
        BOOST_TEST((life.saw(phase::connected, sent + 5ms) == seen::connected));
        return life.greeted(7, 6s);
    }
    /// The session goes on, at a server that grants that.
    bool reconnect(lease_clock::time_point sent, std::chrono::milliseconds timeout)
    {
        static_cast<void>(life.saw(phase::connecting, sent));
        static_cast<void>(life.saw(phase::greeting, sent));
        static_cast<void>(life.saw(phase::connected, sent));
        return life.greeted(7, timeout);
    }

    const lease_clock::time_point now = lease_clock::now();
    session_life life;
};

struct scene_with_limit : scene
{
    scene_with_limit() : scene(2s) {}
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_session_life, scene)

BOOST_AUTO_TEST_CASE(it_counts_from_the_handshake_and_by_what_the_server_grants)
{
    BOOST_TEST(!life.bound());
    BOOST_TEST((life.timeout() == 10s));
    BOOST_TEST(connect(now));
    BOOST_TEST(life.connected());
    BOOST_TEST(life.id() == 7);
    BOOST_TEST((life.timeout() == 6s));
    BOOST_TEST((life.bound()->valid_until() == now + 6s - 250ms - 62ms));
    BOOST_TEST((life.saw(phase::connected, now + 1s) == seen::none));
}

BOOST_AUTO_TEST_CASE(one_of_few_ticks_is_short)
{
    BOOST_TEST(!session_life(2s, 500ms).is_short());
    BOOST_TEST(session_life(1999ms, 500ms).is_short());
    // The ticks are assumed.
    BOOST_TEST(!session_life(8s, std::nullopt).is_short());
    BOOST_TEST(session_life(7s, std::nullopt).is_short());
    // What the server grants counts.
    BOOST_TEST(!life.is_short());
    BOOST_TEST(life.greeted(7, 1s));
    BOOST_TEST(life.is_short());
}

BOOST_AUTO_TEST_CASE(one_that_comes_back_in_time_goes_on_with_its_bound)
{
    BOOST_TEST(connect(now));
    const auto bound = life.bound();
    BOOST_TEST((life.saw(phase::disconnected, now + 1s) == seen::suspended));
    BOOST_TEST(!life.connected());
    BOOST_TEST((life.saw(phase::connecting, now + 1s) == seen::none));
    BOOST_TEST(connect(now + 2s));
    BOOST_TEST((life.bound() == bound));
    BOOST_TEST((bound->valid_until() > now + 7s));
}

BOOST_AUTO_TEST_CASE(one_that_was_away_for_too_long_gets_another_bound)
{
    BOOST_TEST(connect(now - 10s));
    const auto old = life.bound();
    BOOST_TEST((life.saw(phase::disconnected, now - 9s) == seen::suspended));
    BOOST_TEST(!connect(now));
    BOOST_TEST((life.bound() != old));
    BOOST_TEST(old->has_ended(now));
    BOOST_TEST(!life.bound()->has_ended(now));
}

BOOST_AUTO_TEST_CASE(one_that_is_granted_less_than_before_gets_another_bound)
{
    BOOST_TEST(connect(now));
    const auto before = life.bound();
    BOOST_TEST((life.saw(phase::connecting, now + 1s) == seen::suspended));
    BOOST_TEST((life.saw(phase::greeting, now + 1s) == seen::none));
    BOOST_TEST((life.saw(phase::connected, now + 1s) == seen::connected));
    BOOST_TEST(!life.greeted(7, 2s));
    BOOST_TEST(before->has_ended(now));
    BOOST_TEST((life.bound()->valid_until() == now + 1s + 2s - 250ms - 22ms));
}

BOOST_AUTO_TEST_CASE(shorter_grant_ends_leases_though_it_lasts_longer_than_they_did)
{
    BOOST_TEST(connect(now));
    const auto before = life.bound();
    BOOST_TEST(!reconnect(now + 5s, 5s));
    BOOST_TEST(before->has_ended(now));
    BOOST_TEST((life.bound()->valid_until() == now + 10s - 250ms - 52ms));
}

BOOST_FIXTURE_TEST_CASE(leases_count_on_the_smallest_timeout_that_a_server_may_grant, scene_with_limit)
{
    BOOST_TEST((life.counted_timeout() == 2s));
    BOOST_TEST(connect(now));
    BOOST_TEST((life.timeout() == 6s));
    BOOST_TEST((life.counted_timeout() == 2s));
    const auto bound = life.bound();
    BOOST_TEST((bound->valid_until() == now + 2s - 250ms - 22ms));
    // A server that grants just that takes nothing away.
    BOOST_TEST(reconnect(now + 1s, 2s));
    BOOST_TEST((life.bound() == bound));
    BOOST_TEST((bound->valid_until() == now + 3s - 250ms - 22ms));
    // One that grants less does.
    BOOST_TEST(!reconnect(now + 2s, 1s));
    BOOST_TEST((life.counted_timeout() == 1s));
    BOOST_TEST(bound->has_ended(now));
}

BOOST_AUTO_TEST_CASE(leases_count_on_the_smallest_timeout_that_was_granted_so_far)
{
    BOOST_TEST(connect(now));
    BOOST_TEST((life.counted_timeout() == 6s));
    BOOST_TEST(!reconnect(now + 1s, 2s));
    const auto bound = life.bound();
    // The one with the shorter sessions may be asked again at any time.
    BOOST_TEST(reconnect(now + 2s, 6s));
    BOOST_TEST((life.timeout() == 6s));
    BOOST_TEST((life.counted_timeout() == 2s));
    BOOST_TEST((life.bound() == bound));
    BOOST_TEST((bound->valid_until() == now + 4s - 250ms - 22ms));
}

BOOST_AUTO_TEST_CASE(longer_grant_than_the_first_changes_nothing)
{
    BOOST_TEST(connect(now));
    const auto bound = life.bound();
    BOOST_TEST(reconnect(now + 1s, 40s));
    BOOST_TEST((life.bound() == bound));
    BOOST_TEST((bound->valid_until() == now + 7s - 250ms - 62ms));
}

BOOST_AUTO_TEST_CASE(an_attempt_that_fails_suspends_nothing)
{
    BOOST_TEST((life.saw(phase::connecting, now) == seen::none));
    BOOST_TEST((life.saw(phase::greeting, now) == seen::none));
    BOOST_TEST((life.saw(phase::disconnected, now) == seen::none));
    BOOST_TEST(!life.bound());
}

BOOST_AUTO_TEST_CASE(newest_transaction_is_the_highest_that_an_answered_write_was_carried_out_in)
{
    BOOST_TEST(connect(now));
    BOOST_TEST(life.newest_transaction() == 0);
    const auto answer = [&](bool writes, reply got) {
        request asked({}, writes);
        asked.answer = std::move(got);
        told_list fresh;
        fresh.push_back(asked);
        static_cast<void>(life.answered(fresh, now));
        fresh.clear();
    };
    answer(true, {.what = status::ok, .stat = {.created_in = 7, .modified_in = 9}});
    BOOST_TEST(life.newest_transaction() == 9);
    answer(true, {.what = status::ok, .stat = {.created_in = 8}});
    answer(true, {.what = status::no_node, .stat = {.modified_in = 12}});
    answer(true, {.what = status::unanswered});
    // What is read may be older than what was written.
    answer(false, {.what = status::ok, .stat = {.modified_in = 13}});
    BOOST_TEST(life.newest_transaction() == 9);
    answer(true, {.what = status::ok, .members = {{}, {.what = status::ok, .stat = {.modified_in = 11}}}});
    BOOST_TEST(life.newest_transaction() == 11);
}

BOOST_AUTO_TEST_CASE(its_end_ends_its_bound)
{
    BOOST_TEST(connect(now));
    life.end();
    BOOST_TEST(!life.connected());
    BOOST_TEST(life.bound()->has_ended(now));
}

BOOST_AUTO_TEST_SUITE_END()
