// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/jump.hpp"

#include <colock/spi/lease.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

struct counting_watcher final : session_lease::watcher
{
    void on_session_ended(const session_lease&) noexcept override { ++ends; }

    int ends = 0;
};

struct watched_session
{
    virtual_clock clock;
    const lease_clock::time_point start = lease_clock::now();
    std::shared_ptr<session_lease> session = std::make_shared<session_lease>(start + 10s);
    std::shared_ptr<counting_watcher> watcher = std::make_shared<counting_watcher>();

    watched_session() { session->watch(watcher); }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(session_leases, watched_session)

BOOST_AUTO_TEST_CASE(lease_ends_at_the_earlier_bound)
{
    lease tested;
    BOOST_TEST((tested.valid_until() == lease_clock::time_point::max()));
    tested.set_ttl_bound(start + 15s);
    BOOST_TEST((tested.valid_until() == start + 15s));
    tested.tie(session);
    BOOST_TEST((tested.valid_until() == start + 10s));
    BOOST_TEST((tested.ttl_bound() == start + 15s));
    BOOST_TEST(!tested.has_ended(start + 10s - 1ns));
    BOOST_TEST(session->extend(start + 20s));
    BOOST_TEST((tested.valid_until() == start + 15s));
    BOOST_TEST(tested.has_ended(start + 15s));
    BOOST_TEST((session->valid_until() == start + 20s));
}

BOOST_AUTO_TEST_CASE(lease_counts_in_the_session_to_which_it_is_tied_last)
{
    int times = 0;
    const auto other = std::make_shared<session_lease>(start + 10s, [&times] { ++times; });
    {
        lease tested;
        tested.tie(other);
        tested.tie(other);
        BOOST_TEST(other->is_used());
        tested.tie(session);
        BOOST_TEST(!other->is_used());
        BOOST_TEST(session->is_used());
        BOOST_TEST(times == 1);
    }
    BOOST_TEST(!session->is_used());
    BOOST_TEST(times == 1);
}

BOOST_AUTO_TEST_CASE(session_deadline_is_extended_and_never_shortened)
{
    BOOST_TEST(session->extend(start + 20s));
    BOOST_TEST(session->extend(start + 15s));
    BOOST_TEST((session->valid_until() == start + 20s));
    BOOST_TEST(watcher->ends == 0);
}

BOOST_AUTO_TEST_CASE(session_that_was_seen_as_ended_stays_ended)
{
    // As if another thread, whose time is slightly later, had detected the end first.
    BOOST_TEST(session->has_ended(start + 10s));
    BOOST_TEST(!session->extend(start + 20s));
    BOOST_TEST(session->has_ended(start));
    BOOST_TEST((session->valid_until() == lease_clock::time_point::min()));
    BOOST_TEST(watcher->ends == 1);
}

BOOST_AUTO_TEST_CASE(session_that_ended_unnoticed_cannot_be_extended)
{
    clock.skip(10s);
    BOOST_TEST(!session->extend(start + 30s));
    BOOST_TEST(session->has_ended(start));
    BOOST_TEST(watcher->ends == 1);
}

BOOST_AUTO_TEST_CASE(end_of_a_session_is_reported_once_to_each_living_watcher)
{
    session->watch(watcher);
    session->watch(std::make_shared<counting_watcher>());
    session->end();
    BOOST_TEST(session->has_ended(start));
    BOOST_TEST(watcher->ends == 1);
}

BOOST_AUTO_TEST_SUITE_END()
