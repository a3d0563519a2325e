// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "ensemble.hpp"
#include "fixture.hpp"

namespace colock::testing {
namespace {

struct faulty_ensemble
{
    using servers_type = zookeeper_ensemble;

    /// A session with only one server.
    [[nodiscard]] client make_client(std::size_t number, std::chrono::milliseconds timeout) const
    {
        return client(servers[number].port(), timeout);
    }
    [[nodiscard]] client make_client_of_all(std::chrono::milliseconds timeout) const
    {
        return client(parse_url(servers.url()).servers, timeout);
    }

    /// The longest session timeout that these servers grant.
    static constexpr std::chrono::milliseconds max_timeout = 40s;

    servers_type& servers = shared_ensemble();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_ensemble_sessions, faulty_ensemble)

BOOST_AUTO_TEST_CASE(a_session_outlives_the_leader)
{
    // The client's event loop does not run during the election, which may take long.
    auto one = make_client_of_all(max_timeout);
    one.connect();
    BOOST_TEST(one.make("kept", node_kind::ephemeral).ok());
    const auto id = one.zk_session->life().id();
    const auto dead = servers.leader();
    servers[dead].kill();
    BOOST_TEST(servers.leader() != dead);
    const auto answering = lease_clock::now();
    // No server serves clients during the election, so the connection has ended.
    one.until([&] { return one.events->suspensions > 0; });
    one.connect();
    // The client is connected at once, not after a part of the session timeout.
    BOOST_TEST((lease_clock::now() - answering < max_timeout / 8));
    BOOST_TEST(one.zk_session->life().id() == id);
    BOOST_TEST(one.read("kept").stat.ephemeral_owner == id);
    BOOST_TEST(!one.zk_session->life().lease()->has_ended(lease_clock::now()));
}

BOOST_AUTO_TEST_CASE(a_session_outlives_the_follower_that_it_is_connected_to)
{
    const auto leader = servers.leader();
    const std::size_t followers[] = {(leader + 1) % servers.size, (leader + 2) % servers.size};
    std::vector<endpoint> known;
    for (const auto each : followers)
        known.push_back({"127.0.0.1", std::to_string(servers[each].port())});
    // The client's event loop does not run while the servers start.
    client one(known, max_timeout);
    one.connect();
    const auto id = one.zk_session->life().id();
    for (const auto each : followers) {
        servers[each].kill();
        servers[each].start();
    }
    one.until([&] { return one.events->suspensions > 0; });
    one.connect();
    BOOST_TEST(one.zk_session->life().id() == id);
    BOOST_TEST(one.events->expired == 0);
}

BOOST_AUTO_TEST_CASE(replies_of_a_follower_cut_off_from_its_leader_do_not_extend_the_lease)
{
    const auto follower = servers.follower();
    auto other = make_client(servers.leader(), 10s);
    other.connect();
    auto one = make_client(follower, 2s);
    one.connect();
    BOOST_TEST(one.make("held", node_kind::ephemeral).ok());
    const auto lease = one.zk_session->life().lease();
    BOOST_TEST(other.exists("held").ok());
    servers.cut_off(follower);
    // The leader ends the session after its timeout, while the follower still answers.
    one.until([&] { return lease->has_ended(lease_clock::now()); });
    BOOST_TEST(!other.is_gone("held"));
    other.until([&] { return other.is_gone("held"); });
    servers.cut_off(follower, false);
    one.until([&] { return one.events->expired == 1; });
}

BOOST_AUTO_TEST_CASE(replies_of_a_leader_cut_off_from_all_followers_do_not_extend_the_lease)
{
    const auto leader = servers.leader();
    auto other = make_client((leader + 1) % servers.size, 10s);
    other.connect();
    auto one = make_client(leader, 2s);
    one.connect();
    BOOST_TEST(one.make("held", node_kind::ephemeral).ok());
    const auto lease = one.zk_session->life().lease();
    servers.cut_off(leader);
    one.until([&] { return lease->has_ended(lease_clock::now()); });
    // The others elect a leader, which ends the session.
    other.until([&] { return other.events->connections > 1 && other.zk_session->connected(); });
    other.until([&] { return other.is_gone("held"); });
    servers.cut_off(leader, false);
    one.until([&] { return one.events->expired == 1; });
}

/// For a moment, the leader answers reads and handshakes, because it does not know yet that it was replaced. Without
/// the cut, the moment would be shorter.
BOOST_AUTO_TEST_CASE(resumed_leader_that_was_replaced_does_not_verify_a_session)
{
    const auto leader = servers.leader();
    faulty_proxy link(servers[leader].port());
    client one(link.port(), 16s);
    one.connect();
    const auto lease = one.zk_session->life().lease();
    servers[leader].pause();
    servers.cut_off(leader);
    link.refuse(true);
    static_cast<void>(servers.leader(leader));
    one.until([&] { return one.events->suspensions == 1; });
    // The server finds the request to resume the session when it continues.
    link.refuse(false);
    one.until([&] { return one.zk_session->life().phase() == zk_client::phase::greeting; });
    const auto until = lease->valid_until();
    BOOST_TEST_REQUIRE(!lease->has_ended(lease_clock::now()));
    servers[leader].resume();
    one.until([&] { return one.zk_session->life().phase() != zk_client::phase::greeting; });
    one.until([&] { return !one.zk_session->life().connected(); });
    BOOST_TEST(one.events->connections == 1);
    BOOST_TEST((lease->valid_until() == until));
}

BOOST_AUTO_TEST_CASE(wrong_clock_of_the_leader_has_no_effect)
{
    constexpr std::size_t wrong = servers_type::size - 1;
    servers.set_clock(wrong, 72h);
    servers.make_leader(wrong);
    auto one = make_client_of_all(4s);
    one.connect();
    const auto made = one.make("kept", node_kind::ephemeral).stat.created_ms;
    BOOST_TEST((std::chrono::system_clock::time_point(std::chrono::milliseconds(made)) >
                std::chrono::system_clock::now() + 48h));
    const auto lease = one.zk_session->life().lease();
    const auto first = lease->valid_until();
    one.until([&] { return lease->valid_until() > first + 4s; });
    BOOST_TEST(!one.is_gone("kept"));
    BOOST_TEST(one.events->expired == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
