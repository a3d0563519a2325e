// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/driver.hpp"

#include <colock/zookeeper/adapter.hpp>

#include <string>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(zookeeper_foreign_sessions)

BOOST_AUTO_TEST_CASE(a_node_of_another_session_grants_nothing)
{
    zookeeper_server server;
    faulty_proxy link(server.port());
    asio::io_context io;
    const driver by(
        io, zookeeper::make_adapter(io.get_executor(),
                {.url = zookeeper_url(link.port()) + "/locks", .session_timeout = 4s, .server_tick = 500ms}));
    const auto first = driver::exclusive("k"), wanted = driver::exclusive("k");
    by.grant(first);
    by.release_held(first);
    link.cut_at_bytes("/k", loss::reply);
    BOOST_TEST_REQUIRE((by.create(wanted).error->code == errc::outcome_unknown));
    // The lost reply may have been the reply to a heartbeat, so the server may not have created the node yet.
    auto nodes = ephemeral_nodes(server.port());
    for (const auto limit = lease_clock::now() + 30s; nodes.empty() && lease_clock::now() < limit;)
        nodes = ephemeral_nodes(server.port());
    BOOST_TEST_REQUIRE(nodes.size() == 1U);

    // The session ends, and another session creates a node with the same name.
    const std::string folder = "/locks/";
    const auto name = nodes[0].substr(folder.size(), nodes[0].size() - folder.size() - 10);
    end_session(server.port(), sessions_of(server.port(), "/locks").at(0));
    client other(server.port(), 6s, {.chroot = "/locks"});
    other.connect();
    BOOST_TEST_REQUIRE(other.make(name, node_kind::ephemeral_sequential).ok());
    by.grant(wanted);
    BOOST_TEST(ephemeral_nodes(server.port()).size() == 1U);
    BOOST_TEST(other.close(5s));
    by.check_held(wanted);
    by.release_held(wanted);
    BOOST_TEST(ephemeral_nodes(server.port()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
