// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "ensemble.hpp"
#include "fixture.hpp"

namespace colock::testing {
namespace {

struct hurt_ensemble
{
    using servers_type = zookeeper_ensemble;

    /// A session with one server only.
    [[nodiscard]] client at(std::size_t number, std::chrono::milliseconds timeout) const
    {
        return client(servers[number].port(), timeout);
    }
    [[nodiscard]] client at_all(std::chrono::milliseconds timeout) const
    {
        return client(parse_url(servers.url()).servers, timeout);
    }

    /// That these servers grant a session.
    static constexpr std::chrono::milliseconds longest = 40s;

    servers_type& servers = shared_ensemble();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_ensemble_sessions, hurt_ensemble)

BOOST_AUTO_TEST_CASE(a_session_outlives_the_leader)
{
    // Nobody runs it while the others choose, for as long as that takes.
    auto one = at_all(longest);
    one.connect();
    BOOST_TEST(one.make("kept", node_kind::ephemeral).ok());
    const auto id = one.talk->life().id();
    const auto dead = servers.leader();
    servers[dead].kill();
    BOOST_TEST(servers.leader() != dead);
    const auto answering = lease_clock::now();
    // Whatever server it was connected to has served nobody for a while.
    one.until([&] { return one.told->suspensions > 0; });
    one.connect();
    // At once, and not when a part of the session's time is over.
    BOOST_TEST((lease_clock::now() - answering < longest / 8));
    BOOST_TEST(one.talk->life().id() == id);
    BOOST_TEST(one.read("kept").stat.ephemeral_owner == id);
    BOOST_TEST(!one.talk->life().bound()->has_ended(lease_clock::now()));
}

BOOST_AUTO_TEST_CASE(a_session_outlives_the_follower_that_it_is_connected_to)
{
    const auto leader = servers.leader();
    const std::size_t followers[] = {(leader + 1) % servers.size, (leader + 2) % servers.size};
    std::vector<endpoint> known;
    for (const auto each : followers)
        known.push_back({"127.0.0.1", std::to_string(servers[each].port())});
    // Nobody runs it while they start.
    client one(known, longest);
    one.connect();
    const auto id = one.talk->life().id();
    for (const auto each : followers) {
        servers[each].kill();
        servers[each].start();
    }
    one.until([&] { return one.told->suspensions > 0; });
    one.connect();
    BOOST_TEST(one.talk->life().id() == id);
    BOOST_TEST(one.told->expired == 0);
}

BOOST_AUTO_TEST_CASE(contact_with_a_follower_that_is_cut_off_from_its_leader_is_none)
{
    const auto follower = servers.follower();
    auto other = at(servers.leader(), 10s);
    other.connect();
    auto one = at(follower, 2s);
    one.connect();
    BOOST_TEST(one.make("held", node_kind::ephemeral).ok());
    const auto bound = one.talk->life().bound();
    BOOST_TEST(other.exists("held").ok());
    servers.cut_off(follower);
    // The leader ends the session when its time is over, while the follower goes on to answer.
    one.until([&] { return bound->has_ended(lease_clock::now()); });
    BOOST_TEST(!other.is_gone("held"));
    other.until([&] { return other.is_gone("held"); });
    servers.cut_off(follower, false);
    one.until([&] { return one.told->expired == 1; });
}

BOOST_AUTO_TEST_CASE(contact_with_a_leader_that_is_cut_off_from_all_followers_is_none)
{
    const auto leader = servers.leader();
    auto other = at((leader + 1) % servers.size, 10s);
    other.connect();
    auto one = at(leader, 2s);
    one.connect();
    BOOST_TEST(one.make("held", node_kind::ephemeral).ok());
    const auto bound = one.talk->life().bound();
    servers.cut_off(leader);
    one.until([&] { return bound->has_ended(lease_clock::now()); });
    // The others choose a leader among them, who ends the session.
    other.until([&] { return other.told->connections > 1 && other.talk->connected(); });
    other.until([&] { return other.is_gone("held"); });
    servers.cut_off(leader, false);
    one.until([&] { return one.told->expired == 1; });
}

BOOST_AUTO_TEST_CASE(a_wrong_clock_of_the_leader_does_not_count)
{
    constexpr std::size_t wrong = servers_type::size - 1;
    servers.set_clock(wrong, 72h);
    servers.make_leader(wrong);
    auto one = at_all(4s);
    one.connect();
    const auto made = one.make("kept", node_kind::ephemeral).stat.created_ms;
    BOOST_TEST((std::chrono::system_clock::time_point(std::chrono::milliseconds(made)) >
                std::chrono::system_clock::now() + 48h));
    const auto bound = one.talk->life().bound();
    const auto first = bound->valid_until();
    one.until([&] { return bound->valid_until() > first + 4s; });
    BOOST_TEST(!one.is_gone("kept"));
    BOOST_TEST(one.told->expired == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
