// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The life of a session: how it is opened, keeps its server informed, and outlives its connections.
#include "fixture.hpp"
#include "scripted_server.hpp"
#include "support/handler_time.hpp"
#include "support/localhost.hpp"
#include "support/peer.hpp"
#include "support/sockets.hpp"

#include <colock/locker.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(zookeeper_sessions)

BOOST_AUTO_TEST_CASE(the_server_decides_on_the_timeout)
{
    client one(shared_zookeeper(), 1h);
    one.connect();
    BOOST_TEST((one.zk_session->life().timeout() == 10s));
}

BOOST_AUTO_TEST_CASE(a_server_is_found_by_its_name, *boost::unit_test::precondition(knows_localhost))
{
    client one(
        std::vector<endpoint>{{"no.such.host.invalid", "2181"}, {"localhost", std::to_string(shared_zookeeper())}}, 6s);
    one.connect();
}

BOOST_AUTO_TEST_CASE(of_several_servers_one_that_answers_is_found)
{
    for (int dead = 1; dead < 5; ++dead) {
        std::vector<endpoint> servers{{"127.0.0.1", std::to_string(shared_zookeeper())}};
        for (int i = 0; i < dead; ++i)
            servers.push_back({"127.0.0.1", std::to_string(free_port())});
        client one(servers, 6s);
        one.connect();
    }
}

/// Servers that accept connections and never answer are each given up after `connect_timeout`, not after a part of the
/// session timeout, for which the test would not wait. Each is tried once, in random order.
BOOST_AUTO_TEST_CASE(mute_server_is_given_up_after_the_connect_timeout)
{
    for (const std::size_t mute_count : {1U, 2U, 3U}) {
        for (std::size_t tried = 0; tried < mute_count;) {
            client one(free_port());
            std::vector<std::unique_ptr<peer>> mute;
            std::vector<endpoint> servers{{"127.0.0.1", std::to_string(shared_zookeeper())}};
            for (std::size_t i = 0; i < mute_count; ++i) {
                mute.push_back(std::make_unique<peer>(*one.io, [](peer::talk& with) -> asio::awaitable<void> {
                    while (co_await with.hear()) {
                    }
                }));
                servers.push_back({"127.0.0.1", std::to_string(mute.back()->port())});
            }
            const auto opened = session::make(asio::make_strand(one.io->get_executor()),
                {.target = {.servers = servers}, .session_timeout = 1h, .connect_timeout = 500ms}, one.events);
            opened->start();
            one.until([&] { return opened->life().connected(); });
            tried = 0;
            for (const auto& each : mute) {
                BOOST_TEST(each->connections() <= 1U);
                tried += each->connections();
            }
            std::optional<bool> proven;
            opened->close(5s, [&](bool got) { proven = got; });
            one.until([&] { return proven.has_value(); });
        }
    }
}

BOOST_AUTO_TEST_CASE(unreachable_servers_are_reported_with_a_reason)
{
    client one(free_port());
    one.until([&] { return one.events->unreachable.size() > 1; });
    BOOST_TEST(one.events->unreachable.front().find("refused") != std::string::npos, one.events->unreachable.front());
    // There is a pause between two passes through the servers.
    const auto begun = lease_clock::now();
    const auto rounds = one.events->unreachable.size();
    one.until([&] { return one.events->unreachable.size() == rounds + 2; });
    BOOST_TEST((lease_clock::now() - begun >= 100ms));
    client nowhere(std::vector<endpoint>{{"no.such.host.invalid", "2181"}}, 6s);
    nowhere.until([&] { return nowhere.events->unreachable.size() > 1; });
    BOOST_TEST(nowhere.events->unreachable.front().starts_with("no.such.host.invalid: "));
    BOOST_TEST((nowhere.events->causes.front() == asio::error::host_not_found));
}

BOOST_AUTO_TEST_CASE(cause_tells_a_refused_connection_from_a_mute_server)
{
    const auto port = free_port();
    client refused(port);
    refused.until([&] { return !refused.events->unreachable.empty(); });
    BOOST_TEST(refused.events->unreachable.front() == "127.0.0.1:" + std::to_string(port) + ": Connection refused");
    BOOST_TEST((refused.events->causes.front() == asio::error::connection_refused));
    zookeeper_server paused;
    paused.pause();
    client mute(paused.port(), 2s);
    mute.until([&] { return !mute.events->unreachable.empty(); });
    BOOST_TEST(
        mute.events->unreachable.front() == "127.0.0.1:" + std::to_string(paused.port()) + ": no answer in time");
    BOOST_TEST((mute.events->causes.front() == asio::error::timed_out));
    paused.resume();
}

BOOST_AUTO_TEST_CASE(a_session_goes_on_after_its_connection_was_cut)
{
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(one.make("cut", node_kind::ephemeral).ok());
    BOOST_TEST(other.make("watched").ok());
    BOOST_TEST(one.read_and_watch("watched").ok());
    const auto id = one.zk_session->life().id();
    const auto lease = one.zk_session->life().lease();

    link.refuse(true);
    one.until([&] { return one.events->suspensions == 1; });
    BOOST_TEST(!one.zk_session->connected());
    BOOST_TEST((one.exists("cut").outcome == status::unsent));
    BOOST_TEST(other.remove("watched").ok());
    link.refuse(false);
    one.connect();
    BOOST_TEST(one.zk_session->life().id() == id);
    BOOST_TEST(one.zk_session->life().lease() == lease);
    BOOST_TEST(one.read("cut").stat.ephemeral_owner == id);
    // Changes that were made meanwhile are reported.
    one.until([&] { return !one.events->changed.empty(); });
    BOOST_TEST((one.events->changed == std::vector{one.path("watched")}));
    BOOST_TEST(one.events->expired == 0);
}

BOOST_AUTO_TEST_CASE(a_server_that_was_away_for_long_is_found_soon)
{
    faulty_proxy link(shared_zookeeper());
    client one(link.port(), 10s);
    one.connect();
    bool is_soon = false;
    // The machine delays an attempt only sometimes.
    for (int attempts = 0; attempts < 3 && !is_soon; ++attempts) {
        const auto before = one.events->unreachable.size();
        link.refuse(true);
        one.until([&] { return one.events->unreachable.size() == before + 7; });
        link.refuse(false);
        const auto back = lease_clock::now();
        one.connect();
        is_soon = lease_clock::now() - back < 1s;
    }
    BOOST_TEST(is_soon);
}

BOOST_AUTO_TEST_CASE(more_watches_than_a_packet_takes_cut_no_connection)
{
    constexpr int count = 12'000;
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    const std::string folder = "many-" + std::string(90, 'm');
    BOOST_TEST(one.make(folder).ok());
    int answered = 0;
    for (int i = 0; i < count; ++i) {
        const auto path = one.path(folder) + '/' + std::to_string(i);
        one.zk_session->get_requests().create(path, {}, node_kind::ephemeral, reply_handler());
        one.zk_session->get_requests().read_and_watch(path, [&](const reply& got) { answered += got.ok(); });
        if (i % 100 == 99)
            one.until([&] { return answered == i + 1; });
    }
    link.refuse(true);
    one.until([&] { return one.events->suspensions == 1; });
    link.refuse(false);
    one.connect();
    BOOST_TEST(one.events->suspensions == 1);
    // The empty path means that any node may have changed.
    BOOST_TEST((one.events->changed == std::vector{std::string()}));
}

BOOST_AUTO_TEST_CASE(request_that_cannot_be_written_is_completed_and_never_sent)
{
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    client other_client(link.port());
    other_client.connect();
    const auto id = one.zk_session->life().id();
    std::vector<status> statuses;
    const auto note = [&](const reply& got) { statuses.push_back(got.outcome); };
    // If a connection is closed with unread data, it is reset, and the next write fails at once.
    link.silence(true);
    one.zk_session->get_requests().create(one.path("first"), "", node_kind::ephemeral, note);
    run_ready(*one.io);
    link.refuse(true);
    other_client.until([&] { return other_client.events->suspensions == 1; });
    link.silence(false);
    link.refuse(false);
    one.zk_session->get_requests().create(one.path("second"), "", node_kind::ephemeral, note);
    one.zk_session->get_requests().create(one.path("third"), "", node_kind::ephemeral, note);
    one.until([&] { return statuses.size() == 3; });
    BOOST_TEST((std::ranges::find(statuses, status::ok) == statuses.end()));
    one.connect();
    BOOST_TEST(one.zk_session->life().id() == id);
    for (const auto* const name : {"first", "second", "third"})
        BOOST_TEST(one.is_gone(name), name);
    BOOST_TEST(one.make("first", node_kind::ephemeral).ok());
}

BOOST_AUTO_TEST_CASE(end_of_a_session_at_the_server_is_reported)
{
    client one(shared_zookeeper());
    one.connect();
    one.make("expired", node_kind::ephemeral);
    const auto lease = one.zk_session->life().lease();
    end_session(shared_zookeeper(), one.zk_session->life().id());
    one.until([&] { return one.events->expired == 1; });
    BOOST_TEST(lease->has_ended(lease_clock::now()));
    BOOST_TEST((one.make("expired").outcome == status::unsent));
    BOOST_TEST(one.close(1s));
    client other(shared_zookeeper());
    other.connect();
    BOOST_TEST(other.is_gone("expired"));
}

BOOST_AUTO_TEST_CASE(beat_of_a_session_whose_node_is_gone_or_replaced_shows_a_lost_history)
{
    client other(shared_zookeeper());
    other.connect();
    for (const bool is_replaced : {false, true}) {
        client one(shared_zookeeper(), 2s);
        one.connect();
        const auto lease = one.zk_session->life().lease();
        std::string node;
        for (const auto& each : other.children(".s").names()) {
            if (other.exists(".s/" + each).stat.ephemeral_owner == one.zk_session->life().id())
                node = ".s/" + each;
        }
        std::vector<change> changes{{.type = change::kind::remove, .path = other.path(node)}};
        if (is_replaced)
            changes.push_back({.type = change::kind::create, .path = other.path(node)});
        BOOST_TEST(other.multi(changes).ok());
        one.until([&] { return one.events->lost_histories == 1; });
        BOOST_TEST(lease->has_ended(lease_clock::now()));
        BOOST_TEST(one.events->suspensions == 0);
        if (is_replaced)
            BOOST_TEST(other.remove(node).ok());
    }
}

BOOST_AUTO_TEST_CASE(beat_with_an_older_version_of_the_node_shows_a_lost_history)
{
    client one(free_port());
    int writes = 0;
    const scripted_server server(*one.io, [&](std::int32_t operation) -> scripted_server::reply {
        if (operation == scripted_server::create)
            return {.body = scripted_server::text("/node") + scripted_server::stat(5, 5, 0)};
        // The third write finds the node as it was before the second one.
        ++writes;
        return {.body = scripted_server::stat(5, 5 + writes, writes == 3 ? 2 : writes)};
    });
    const auto events = std::make_shared<session_event_log>();
    const auto opened = session::make(asio::make_strand(one.io->get_executor()),
        {.target = {.servers = {{"127.0.0.1", std::to_string(server.port())}}}, .session_timeout = 2s}, events);
    opened->start();
    one.until([&] { return writes == 2; });
    BOOST_TEST(events->lost_histories == 0);
    const auto lease = opened->life().lease();
    one.until([&] { return events->lost_histories == 1; });
    BOOST_TEST(writes == 3);
    BOOST_TEST(lease->has_ended(lease_clock::now()));
    opened->abandon();
}

/// A leader that the other servers have replaced, and that does not know it yet, answers reads from the past.
BOOST_AUTO_TEST_CASE(lock_is_not_confirmed_by_a_server_that_refuses_the_transaction_before_the_read)
{
    using server_type = scripted_server;
    client one(free_port());
    std::string node;
    bool refuses = true;
    int reads = 0;
    const server_type server(*one.io, [&](std::int32_t operation) -> server_type::reply {
        switch (operation) {
        case server_type::create:
            node = server.path() + "0000000000";
            return {.body = server_type::text(node) + server_type::stat(5, 5, 0)};
        case server_type::children:
            return {.body = server_type::only_child(node.substr(node.rfind('/') + 1))};
        case server_type::check_all:
            return {.error = refuses ? server_type::throttled : server_type::no_node};
        case server_type::exists:
            ++reads;
            return {.body = server_type::stat(5, 5, 0)};
        default:
            return {.body = server_type::stat(5, 5, 0)};
        }
    });
    locker locks(zookeeper::make_adapter(
        one.io->get_executor(), {.url = zookeeper_url(server.port()), .layout = zookeeper::layout::curator_mutex}));
    const auto held = start(*one.io, locks.acquire("k")).get(*one.io);
    BOOST_CHECK_THROW(start(*one.io, held.is_locked()).get(*one.io), error);
    BOOST_TEST(reads > 0);
    refuses = false;
    BOOST_TEST(start(*one.io, held.is_locked()).get(*one.io));
}

/// Neither the acquire nor the cleanup of its lost creation relies on a list without the transaction before it.
BOOST_AUTO_TEST_CASE(lost_creation_is_not_searched_on_a_server_that_refuses_the_transaction_before_the_list)
{
    using server_type = scripted_server;
    client one(free_port());
    std::string node;
    bool refuses = true;
    int refusals = 0, lists = 0;
    std::vector<std::string> removed;
    const server_type server(*one.io, [&](std::int32_t operation) -> server_type::reply {
        switch (operation) {
        case server_type::create: {
            const bool is_lost = node.empty() && server.contains("-lock-");
            node = is_lost ? server.path() + "0000000000" : node;
            return {.body = server_type::text(server.path()) + server_type::stat(5, 5, 0), .is_lost = is_lost};
        }
        case server_type::children:
            ++lists;
            return {.body = server_type::only_child(node.substr(node.rfind('/') + 1))};
        case server_type::check_all:
            if (!refuses || !server.contains("the-key"))
                return {.error = server_type::no_node};
            ++refusals;
            return {.error = server_type::throttled};
        case server_type::remove:
            removed.push_back(server.path());
            return {};
        default:
            return {.body = server_type::stat(5, 5, 0)};
        }
    });
    locker locks(zookeeper::make_adapter(
        one.io->get_executor(), {.url = zookeeper_url(server.port()), .layout = zookeeper::layout::curator_mutex}));
    auto refused = start(*one.io, locks.acquire("the-key", {.retry = within(1s)}));
    BOOST_CHECK_THROW(static_cast<void>(refused.get(*one.io)), create_error);
    const auto of_the_acquire = refusals;
    BOOST_TEST(of_the_acquire > 0);
    // The cleanup tries again after a refusal.
    one.until([&] { return lists > 0 || refusals > of_the_acquire + 1; });
    BOOST_TEST(lists == 0);
    BOOST_TEST(removed.empty());
    refuses = false;
    one.until([&] { return locks.stats().settling == 0; });
    BOOST_TEST(lists > 0);
    BOOST_TEST((std::ranges::find(removed, node) != removed.end()));
    BOOST_TEST(locks.stats().unproven == 0U);
}

/// A server answers every request, or every request but the beats, with the end of the session.
BOOST_AUTO_TEST_CASE(session_that_ends_again_and_again_is_opened_with_growing_pauses)
{
    for (const bool answers_beats : {false, true}) {
        client one(free_port());
        const scripted_server server(*one.io, [&](std::int32_t operation) -> scripted_server::reply {
            if (answers_beats && operation == scripted_server::create)
                return {.body = scripted_server::text("/node") + scripted_server::stat(5, 5, 0)};
            return {.error = operation == scripted_server::close ? 0 : scripted_server::session_expired};
        });
        {
            locker locks(zookeeper::make_adapter(one.io->get_executor(), {.url = zookeeper_url(server.port())}));
            auto refused = start(*one.io, locks.acquire("k", {.retry = within(2s)}));
            BOOST_CHECK_THROW(static_cast<void>(refused.get(*one.io)), error);
        }
        // Without pauses there would be thousands.
        BOOST_TEST(server.requests() > 0U);
        BOOST_TEST(server.requests() < (answers_beats ? 200U : 20U));
    }
}

BOOST_AUTO_TEST_CASE(silent_link_ends_the_lease_before_the_server_ends_the_session)
{
    faulty_proxy link(shared_zookeeper());
    constexpr auto timeout = 6s;
    client one(link.port(), timeout);
    one.connect();
    one.make("held", node_kind::ephemeral);
    client other(shared_zookeeper());
    other.connect();
    const auto lease = one.zk_session->life().lease();
    link.silence(true);
    const auto silent = lease_clock::now();
    one.until([&] { return lease->has_ended(lease_clock::now()); });
    BOOST_TEST((lease->valid_until() < silent + timeout));
    BOOST_TEST(!other.is_gone("held"));
    // The session gives the connection up before the driver would. The order of these two events depends on the delay
    // of replies to heartbeats.
    one.until([&] { return one.events->suspensions == 1; });
    for (const auto& line : one.events->log)
        BOOST_TEST(line.find("timed out") == std::string::npos, line);
    other.until([&] { return other.is_gone("held"); });
    link.silence(false);
    one.until([&] { return one.events->expired == 1; });
}

BOOST_AUTO_TEST_CASE(resumed_session_whose_lease_has_ended_gets_another_lease)
{
    faulty_proxy link(shared_zookeeper());
    client one(link.port());
    one.connect();
    const auto lease = one.zk_session->life().lease();
    lease->end();
    link.refuse(true);
    one.until([&] { return one.events->suspensions == 1; });
    link.refuse(false);
    one.connect();
    BOOST_TEST(one.events->ended_leases == 1);
    BOOST_TEST(one.zk_session->life().lease() != lease);
    BOOST_TEST(!one.zk_session->life().lease()->has_ended(lease_clock::now()));
}

BOOST_AUTO_TEST_CASE(no_call_blocks_while_the_server_is_away)
{
    // A blocking call takes at least a second.
    check_not_blocking([] {
        zookeeper_server server;
        client one(server.port(), 2s);
        one.connect();
        server.pause();
        auto longest = longest_handler(*one.io, [&] { return one.events->suspensions == 1; });
        longest = std::max(longest, longest_handler(*one.io, [&] { return one.events->unreachable.size() >= 2; }));
        server.kill();
        longest = std::max(longest, longest_handler(*one.io, [&] { return one.events->unreachable.size() >= 4; }));
        std::optional<bool> proven;
        one.zk_session->close(1s, [&](bool got) { proven = got; });
        longest = std::max(longest, longest_handler(*one.io, [&] { return proven.has_value(); }));
        BOOST_TEST(!*proven);
        return longest;
    });
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_before_its_session)
{
    client one(shared_zookeeper());
    one.connect();
    bool completed = false;
    one.zk_session->get_requests().create(
        one.path("inert"), "", node_kind::ephemeral, [&](const reply&) { completed = true; });
    one.io.reset();
    BOOST_TEST(!completed);
    BOOST_TEST(!one.zk_session->connected());
    one.zk_session->get_requests().exists("/", reply_handler());
    one.zk_session->abandon();
    end_session(shared_zookeeper(), one.zk_session->life().id());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
