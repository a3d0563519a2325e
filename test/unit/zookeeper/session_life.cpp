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
using phase_change = session_life::change;

struct session_fixture
{
    explicit session_fixture(std::optional<std::chrono::milliseconds> smallest_timeout = {})
        : life(10s, 2s, 500ms, smallest_timeout)
    {
    }

    /// \param sent time at which the handshake is sent
    bool connect(lease_clock::time_point sent)
    {
        BOOST_TEST((life.note_phase(phase::connecting, sent - 1ms) == phase_change::none));
        BOOST_TEST((life.note_phase(phase::greeting, sent) == phase_change::none));
        BOOST_TEST((life.note_phase(phase::connected, sent + 5ms) == phase_change::connected));
        return greet(6s);
    }
    /// Resumes the session at a server that grants `timeout`.
    bool reconnect(lease_clock::time_point sent, std::chrono::milliseconds timeout)
    {
        static_cast<void>(life.note_phase(phase::connecting, sent));
        static_cast<void>(life.note_phase(phase::greeting, sent));
        static_cast<void>(life.note_phase(phase::connected, sent));
        return greet(timeout);
    }
    /// The server accepts the session, and has all of its data.
    bool greet(std::chrono::milliseconds timeout)
    {
        life.note_greeting(7, timeout);
        return !life.is_unverified() || life.note_verified();
    }

    const lease_clock::time_point now = lease_clock::now();
    session_life life;
};

struct session_fixture_with_limit : session_fixture
{
    session_fixture_with_limit() : session_fixture(2s) {}
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_session_life, session_fixture)

BOOST_AUTO_TEST_CASE(lease_counts_from_the_handshake_with_the_granted_timeout)
{
    BOOST_TEST(!life.lease());
    BOOST_TEST((life.timeout() == 10s));
    BOOST_TEST(connect(now));
    BOOST_TEST(life.connected());
    BOOST_TEST(life.id() == 7);
    BOOST_TEST((life.timeout() == 6s));
    BOOST_TEST((life.lease()->valid_until() == now + 6s - 250ms - 62ms));
    BOOST_TEST((life.note_phase(phase::connected, now + 1s) == phase_change::none));
}

BOOST_AUTO_TEST_CASE(timeout_of_few_ticks_is_detected)
{
    BOOST_TEST(!session_life(2s, 2s, 500ms).has_few_ticks());
    BOOST_TEST(session_life(1999ms, 2s, 500ms).has_few_ticks());
    // Without a given tick, a default is assumed.
    BOOST_TEST(!session_life(8s, 2s, std::nullopt).has_few_ticks());
    BOOST_TEST(session_life(7s, 2s, std::nullopt).has_few_ticks());
    // The timeout that the server has granted counts.
    BOOST_TEST(!life.has_few_ticks());
    life.note_greeting(7, 1s);
    BOOST_TEST(life.has_few_ticks());
}

BOOST_AUTO_TEST_CASE(session_resumed_in_time_keeps_its_lease)
{
    BOOST_TEST(connect(now));
    const auto lease = life.lease();
    BOOST_TEST((life.note_phase(phase::disconnected, now + 1s) == phase_change::suspended));
    BOOST_TEST(!life.connected());
    BOOST_TEST((life.note_phase(phase::connecting, now + 1s) == phase_change::none));
    BOOST_TEST(connect(now + 2s));
    BOOST_TEST((life.lease() == lease));
    BOOST_TEST((lease->valid_until() > now + 7s));
}

BOOST_AUTO_TEST_CASE(resumed_session_extends_its_lease_only_when_it_is_verified)
{
    BOOST_TEST(connect(now));
    BOOST_TEST(!life.is_unverified());
    const auto lease = life.lease();
    const auto before = lease->valid_until();
    for (const auto each : {phase::connecting, phase::greeting, phase::connected})
        static_cast<void>(life.note_phase(each, now + 1s));
    life.note_greeting(7, 6s);
    BOOST_TEST(life.is_unverified());
    request write({}, true);
    write.answer.outcome = status::ok;
    driver_report_list fresh;
    fresh.push_back(write);
    BOOST_TEST(life.note_reports(fresh, now + 2s));
    fresh.clear();
    BOOST_TEST((lease->valid_until() == before));
    BOOST_TEST(life.note_verified());
    BOOST_TEST((life.lease() == lease));
    BOOST_TEST((lease->valid_until() == before + 1s));
}

BOOST_AUTO_TEST_CASE(session_resumed_too_late_gets_another_lease)
{
    BOOST_TEST(connect(now - 10s));
    const auto old = life.lease();
    BOOST_TEST((life.note_phase(phase::disconnected, now - 9s) == phase_change::suspended));
    BOOST_TEST(!connect(now));
    BOOST_TEST((life.lease() != old));
    BOOST_TEST(old->has_ended(now));
    BOOST_TEST(!life.lease()->has_ended(now));
}

BOOST_AUTO_TEST_CASE(session_with_a_shorter_timeout_gets_another_lease)
{
    BOOST_TEST(connect(now));
    const auto before = life.lease();
    BOOST_TEST((life.note_phase(phase::connecting, now + 1s) == phase_change::suspended));
    BOOST_TEST((life.note_phase(phase::greeting, now + 1s) == phase_change::none));
    BOOST_TEST((life.note_phase(phase::connected, now + 1s) == phase_change::connected));
    BOOST_TEST(!greet(2s));
    BOOST_TEST(before->has_ended(now));
    BOOST_TEST((life.lease()->valid_until() == now + 1s + 2s - 250ms - 22ms));
}

BOOST_AUTO_TEST_CASE(shorter_grant_ends_leases_though_it_lasts_longer_than_they_did)
{
    BOOST_TEST(connect(now));
    const auto before = life.lease();
    BOOST_TEST(!reconnect(now + 5s, 5s));
    BOOST_TEST(before->has_ended(now));
    BOOST_TEST((life.lease()->valid_until() == now + 10s - 250ms - 52ms));
}

BOOST_FIXTURE_TEST_CASE(leases_count_on_the_smallest_timeout_that_a_server_may_grant, session_fixture_with_limit)
{
    BOOST_TEST((life.counted_timeout() == 2s));
    BOOST_TEST(connect(now));
    BOOST_TEST((life.timeout() == 6s));
    BOOST_TEST((life.counted_timeout() == 2s));
    const auto lease = life.lease();
    BOOST_TEST((lease->valid_until() == now + 2s - 250ms - 22ms));
    // A server that grants exactly the limit ends no lease.
    BOOST_TEST(reconnect(now + 1s, 2s));
    BOOST_TEST((life.lease() == lease));
    BOOST_TEST((lease->valid_until() == now + 3s - 250ms - 22ms));
    // A server that grants less ends the leases.
    BOOST_TEST(!reconnect(now + 2s, 1s));
    BOOST_TEST((life.counted_timeout() == 1s));
    BOOST_TEST(lease->has_ended(now));
}

BOOST_AUTO_TEST_CASE(leases_count_on_the_smallest_timeout_that_was_granted_so_far)
{
    BOOST_TEST(connect(now));
    BOOST_TEST((life.counted_timeout() == 6s));
    BOOST_TEST(!reconnect(now + 1s, 2s));
    const auto lease = life.lease();
    // The session may move to the server with the shorter timeout again at any time.
    BOOST_TEST(reconnect(now + 2s, 6s));
    BOOST_TEST((life.timeout() == 6s));
    BOOST_TEST((life.counted_timeout() == 2s));
    BOOST_TEST((life.lease() == lease));
    BOOST_TEST((lease->valid_until() == now + 4s - 250ms - 22ms));
}

BOOST_AUTO_TEST_CASE(longer_grant_than_the_first_changes_nothing)
{
    BOOST_TEST(connect(now));
    const auto lease = life.lease();
    BOOST_TEST(reconnect(now + 1s, 40s));
    BOOST_TEST((life.lease() == lease));
    BOOST_TEST((lease->valid_until() == now + 7s - 250ms - 62ms));
}

BOOST_AUTO_TEST_CASE(an_attempt_that_fails_suspends_nothing)
{
    BOOST_TEST((life.note_phase(phase::connecting, now) == phase_change::none));
    BOOST_TEST((life.note_phase(phase::greeting, now) == phase_change::none));
    BOOST_TEST((life.note_phase(phase::disconnected, now) == phase_change::none));
    BOOST_TEST(!life.lease());
}

BOOST_AUTO_TEST_CASE(newest_transaction_is_the_highest_that_an_answered_write_was_carried_out_in)
{
    BOOST_TEST(connect(now));
    BOOST_TEST(life.newest_transaction() == 0);
    const auto answer = [&](bool writes, reply got) {
        request asked({}, writes);
        asked.answer = std::move(got);
        driver_report_list fresh;
        fresh.push_back(asked);
        static_cast<void>(life.note_reports(fresh, now));
        fresh.clear();
    };
    answer(true, {.outcome = status::ok, .stat = {.created_in = 7, .modified_in = 9}});
    BOOST_TEST(life.newest_transaction() == 9);
    answer(true, {.outcome = status::ok, .stat = {.created_in = 8}});
    answer(true, {.outcome = status::no_node, .stat = {.modified_in = 12}});
    answer(true, {.outcome = status::unanswered});
    // A transaction that was read may be older than those that were written.
    answer(false, {.outcome = status::ok, .stat = {.modified_in = 13}});
    BOOST_TEST(life.newest_transaction() == 9);
    answer(true, {.outcome = status::ok, .members = {{}, {.outcome = status::ok, .stat = {.modified_in = 11}}}});
    BOOST_TEST(life.newest_transaction() == 11);
}

BOOST_AUTO_TEST_CASE(session_whose_end_a_reply_reports_is_not_connected_any_more)
{
    BOOST_TEST(connect(now));
    request asked({}, true);
    asked.answer.outcome = status::ended;
    driver_report_list fresh;
    fresh.push_back(asked);
    BOOST_TEST(life.note_reports(fresh, now));
    fresh.clear();
    BOOST_TEST(!life.connected());
    // The driver does not know this yet.
    BOOST_TEST((life.note_phase(phase::connected, now) == phase_change::none));
    BOOST_TEST((life.phase() == phase::expired));
}

BOOST_AUTO_TEST_CASE(end_of_the_session_ends_its_lease)
{
    BOOST_TEST(connect(now));
    life.end();
    BOOST_TEST(!life.connected());
    BOOST_TEST(life.lease()->has_ended(now));
}

BOOST_AUTO_TEST_SUITE_END()
