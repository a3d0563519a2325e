// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Elections of Apache Curator and of etcd.

#include "fixture.hpp"

BOOST_AUTO_TEST_SUITE(elections)

COLOCK_FIXTURE(memory_fixture, leader_works_until_the_shutdown)
{
    int terms = 0;
    const colock::election election(locker, "office");
    auto leading =
        colock::testing::start(io, election.lead([&terms](colock::leadership& held) -> asio::awaitable<void> {
            BOOST_TEST(held.term() > 0U);
            if (++terms == 2)
                co_await pass(1h);
        }));
    co_await pass(1s);
    BOOST_TEST(terms == 2);
    BOOST_TEST(!leading.done());
    co_await locker.shutdown();
    co_await pass(1s);
    BOOST_TEST(leading.done());
}

COLOCK_FIXTURE(memory_fixture, leadership_is_interrupted)
{
    int cancelled = 0;
    const colock::election election(locker, "office");
    auto leading = colock::testing::start(io, election.lead([&cancelled]() -> asio::awaitable<void> {
        try {
            co_await pass(1h);
        } catch (const boost::system::system_error&) {
            ++cancelled;
            throw;
        }
    }));
    co_await pass(1s);
    co_await other.break_lock("office");
    co_await pass(1s);
    BOOST_TEST(cancelled == 1);
    BOOST_TEST(!leading.done());
    co_await locker.shutdown();
}

COLOCK_FIXTURE(memory_fixture, campaign_and_resign)
{
    const colock::election election(locker, "office");
    colock::leadership held = co_await election.campaign();
    BOOST_TEST(held.held());
    const std::uint64_t term = held.term();
    co_await held.resign();
    BOOST_TEST(!held.held());
    held = co_await election.campaign();
    BOOST_TEST(held.term() > term);
}

COLOCK_FIXTURE(memory_fixture, leader_is_named)
{
    const colock::election election(locker, "office", {.comment = "10.0.0.7:8080"});
    BOOST_TEST(!(co_await election.leader()).has_value());
    colock::leadership held = co_await election.campaign();
    std::optional<colock::leader> leader = co_await election.leader();
    BOOST_TEST_REQUIRE(leader.has_value());
    BOOST_TEST(leader->comment == "10.0.0.7:8080");
    BOOST_TEST(leader->owner == locker.defaults().owner);
}

COLOCK_FIXTURE(memory_fixture, changes_are_observed)
{
    const colock::election election(locker, "office");
    colock::leadership held = co_await election.campaign();
    std::uint64_t term = 0;
    colock::leader next = co_await election.next_leader(term);
    BOOST_TEST(next.term == held.term());
    auto change = colock::testing::start(io, election.next_leader(next.term));
    co_await pass(3s);
    BOOST_TEST(!change.done());
    co_await held.resign();
    held = co_await election.campaign();
    co_await pass(2s);
    BOOST_TEST(change.done());
}

BOOST_AUTO_TEST_SUITE_END()
