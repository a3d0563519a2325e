// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "locker_fixture.hpp"
#include "support/faulty_proxy.hpp"
#include "support/name_service.hpp"
#include "support/no_free_descriptors.hpp"
#include "support/peer.hpp"
#include "support/sockets.hpp"
#include "zookeeper/layout/key_encoding.hpp"

#include <colock/error.hpp>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// A poll with this interval comes too late for any test.
const auto rare_polls = retry_policy::fixed(10min);

asio::awaitable<lock_group> acquire_in_group(locker by, std::string key, acquire_options how = {})
{
    auto group = by.group("g");
    co_await group.acquire(std::move(key), how);
    co_return group;
}

std::string url_of(std::uint16_t port, std::string_view host = "127.0.0.1")
{
    return "zookeeper://" + std::string(host) + ':' + std::to_string(port);
}

/// \param lines additional lines of the server's configuration
/// \param disk_delay time by which each wait for the disk is extended
std::unique_ptr<zookeeper_server> make_server(const std::string& lines, std::chrono::milliseconds disk_delay)
{
    std::unique_ptr<zookeeper_server> made;
    on_free_port([&](std::uint16_t port) {
        made = std::make_unique<zookeeper_server>(port, 1, lines);
        made->launch({"LD_PRELOAD=" COLOCK_SLOW_DISK, "COLOCK_DISK_DELAY=" + std::to_string(disk_delay.count())});
        made->wait_until_serving();
    });
    return made;
}

struct server_fixture : locker_fixture
{
    explicit server_fixture(const std::string& lines = {}, std::chrono::milliseconds disk_delay = 0ms)
        : server_fixture(make_server(lines, disk_delay))
    {
    }
    explicit server_fixture(std::unique_ptr<zookeeper_server> only)
        : locker_fixture(url_of(only->port()), [port = only->port()] { return port; }), server(std::move(only)),
          link(server->port())
    {
    }

    void run_for(lease_clock::duration how_long)
    {
        const auto begun = lease_clock::now();
        until([&] { return lease_clock::now() - begun > how_long; });
    }
    [[nodiscard]] std::string linked() const { return url_of(link.port()); }

    std::unique_ptr<zookeeper_server> server;
    faulty_proxy link;
};

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_guarantees)

/// The server is restarted with another configuration.
BOOST_AUTO_TEST_CASE(shorter_timeout_at_a_reconnect_loses_locks)
{
    server_fixture at("maxSessionTimeout=20000\n");
    auto held = at.run(at.add(20s, at.linked()).acquire("k", {.ttl = 0ms}));
    at.server->kill();
    at.server->configure("maxSessionTimeout=2000\n");
    at.server->start();
    at.until([&] { return at.events->reconnections == 1; });
    at.until([&] { return !held.held(); });
    // The lost lock does not block other claims.
    auto next = at.run(at.add(2s).acquire("k", {.ttl = 0ms, .retry = rare_polls}));
    BOOST_TEST(!held.held());
}

BOOST_AUTO_TEST_CASE(root_without_create_permission_is_access_denied)
{
    server_fixture at;
    at.run(at.run(at.add(with_credentials(at.options(), "one", "secret")).acquire("k")).release());
    auto below = at.options();
    below.url += "/below";
    auto& other = at.add(below);
    const auto is_denied = [](const error& refused) { return refused.code() == errc::access_denied; };
    BOOST_CHECK_EXCEPTION(static_cast<void>(at.run(other.try_acquire("k"))), error, is_denied);
    BOOST_CHECK_EXCEPTION(static_cast<void>(at.run(other.acquire("k"))), error, is_denied);
}

BOOST_AUTO_TEST_CASE(inaccessible_parent_of_the_root_is_requested_once)
{
    server_fixture at;
    auto owner = with_credentials(at.options(), "one", "secret");
    at.run(at.run(at.add(owner).acquire("k")).release());
    owner.url += "/open";
    owner.access = {zookeeper::access_right{}};
    at.run(at.run(at.add(owner).acquire("k")).release());
    auto below = at.options(10s, at.linked());
    below.url += "/open";
    auto& by = at.add(below);
    at.run(at.run(by.acquire("a")).release());
    // The path of the parent, as a request contains it.
    at.link.cut_at_any({std::string("\0\0\0\6/locks", 10)}, loss::request);
    at.run(at.run(by.acquire("b")).release());
    BOOST_TEST(at.link.cuts() == 0);
}

BOOST_AUTO_TEST_CASE(the_shortest_session_carries_locks)
{
    server_fixture at("tickTime=250\n");
    auto options = at.options(1s);
    options.server_tick = 250ms;
    at.run(at.run(at.add(options).acquire("k")).release());
}

BOOST_AUTO_TEST_CASE(server_is_found_after_its_name_gets_another_address)
{
    zookeeper_server server;
    const auto port = server.port();
    moving_name_address = "127.0.0.1";
    locker_fixture at(url_of(port, "moving.test"), [port] { return port; });
    auto& by = at.add(2s);
    // Without a lock the client would close the session, and resolve the name for the next one.
    const auto held = at.run(by.acquire("other"));
    server.kill();
    server.configure("clientPortAddress=127.0.0.2\n");
    server.launch();
    moving_name_address = "127.0.0.2";
    BOOST_TEST(at.run(by.acquire("k")).held());
}

/// The event loop stalls for longer than the lease of the session lasts, but not for as long as the server keeps the
/// session.
BOOST_AUTO_TEST_CASE(first_claim_is_granted_once_the_session_lease_is_extended)
{
    server_fixture at;
    auto held = at.run(at.add(20s).acquire("k", {.ttl = 0ms}));
    locker_fixture other(url_of(at.server->port()), [port = at.server->port()] { return port; });
    auto settings = other.options(6s);
    // With this tick, a write shows that the session lives only if it was answered a second before the last write.
    settings.server_tick = 2s;
    auto& by = other.add(settings);
    auto waiter = start(other.io, by.acquire("k", {.ttl = 0ms, .retry = rare_polls}));
    other.until([&] { return other.nodes().size() == 2; });
    const auto queue = other.nodes();
    const auto begun = lease_clock::now();
    other.run(other.run(by.acquire("x")).release());
    other.until([&] { return lease_clock::now() - begun > 1050ms; });
    other.run(other.run(by.acquire("x")).release());
    // The lease ends about 3.9 s after this time, the session after 6 s.
    const auto stalled = lease_clock::now();
    at.run(held.release());
    std::this_thread::sleep_until(stalled + 5s);
    other.until([&] { return waiter.done(); });
    BOOST_TEST(waiter.get(other.io).held());
    // The claim has kept its node.
    BOOST_REQUIRE(other.nodes().size() == 1);
    BOOST_TEST(std::ranges::count(queue, other.nodes().front()) == 1);
}

BOOST_AUTO_TEST_CASE(semaphore_waiters_are_woken_after_their_folder_was_recreated)
{
    server_fixture at;
    const acquire_options alone{.mode = lock_mode::shared, .max_holders = 1, .retry = rare_polls};
    auto held = at.run(at.add(10s, at.linked()).acquire("k", alone));
    auto waiter = start(at.io, at.add(10s, at.linked()).acquire("k", alone));
    auto& other = at.add();
    at.until([&] { return at.nodes().size() == 2; });
    at.run(at.run(other.acquire("x")).release());
    at.run_for(500ms);
    at.link.refuse(true);
    for (const auto each : sessions_of(at.server->port(), at.chroot()))
        end_session(at.server->port(), each);
    client cleaner(at.server->port(), 6s, {.chroot = at.chroot()});
    cleaner.connect();
    BOOST_TEST(cleaner.remove(bucket_of("k") + "/k").ok());
    at.until([&] { return at.events->suspensions == 2; });
    // Another locker creates the folder after the client has checked for it, and before the waiter's node is created.
    at.link.cut_at_bytes("/k/", loss::delayed_reply);
    at.link.refuse(false);
    at.until([&] { return at.link.cuts() == 1; });
    auto next = at.run(other.acquire("k", alone));
    at.link.deliver_replies();
    at.until([&] { return at.nodes().size() == 2; });
    at.run_for(500ms);
    at.run(next.release());
    BOOST_TEST(waiter.get(at.io).held());
}

BOOST_AUTO_TEST_CASE(first_claim_checks_again_after_a_lost_reply)
{
    server_fixture at;
    auto held = at.run(at.add().acquire("k"));
    auto first = start(at.io, at.add(10s, at.linked()).acquire("k", {.retry = rare_polls}));
    at.until([&] { return at.nodes().size() == 2; });
    at.run_for(500ms);
    at.link.cut_at_bytes("/k", loss::reply);
    at.run(held.release());
    BOOST_TEST(first.get(at.io).held());
    BOOST_TEST(at.link.cuts() == 1);
}

/// Loses two messages, one after the other, of an acquire, of the search for its outcome, and of a release.
/// \param bytes text in the messages that are lost
template <class Acquire, class Release>
void lose_two(std::vector<std::string> bytes, std::size_t nodes, Acquire acquire, Release release)
{
    server_fixture at;
    auto& by = at.add(10s, at.linked());
    auto& other = at.add();
    at.run(at.run(by.acquire("k")).release());
    const acquire_options soon{.retry = retry_policy::fixed(20ms)};
    std::vector<std::pair<std::string, loss>> each;
    for (const auto& one : bytes) {
        for (const auto what : {loss::reply, loss::request})
            each.emplace_back(one, what);
    }
    for (const auto& first : each) {
        for (const auto& second : each) {
            BOOST_TEST_CONTEXT(first.first << int(first.second) << ' ' << second.first << int(second.second))
            {
                const auto cuts = at.link.cuts();
                at.link.cut_at_bytes_in_turn({first, second});
                auto held = at.run(acquire(by, soon));
                BOOST_TEST(at.link.cuts() == cuts + 2);
                BOOST_TEST(at.nodes().size() == nodes);
                at.link.cut_at_bytes_in_turn({first, second});
                at.run(release(held));
                at.run(at.run(other.acquire("k", soon)).release());
                at.link.cut_at_any({}, loss::request);
                at.until([&] { return by.stats().settling == 0; });
                BOOST_TEST(at.nodes().empty());
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(two_lost_messages_leave_no_nodes_and_block_no_claims)
{
    // Requests about the key, and requests with a node of the key.
    lose_two(
        {"/k", "-x-"}, 1, [](const locker& by, acquire_options how) { return by.acquire("k", how); },
        [](lock& held) { return held.release(); });
}

BOOST_AUTO_TEST_CASE(two_lost_messages_of_a_group_leave_no_nodes_and_block_no_claims)
{
    // The second text is in the path of the index node.
    lose_two(
        {"-x-", "~k"}, 2, [](const locker& by, acquire_options how) { return acquire_in_group(by, "k", how); },
        [](lock_group& held) -> asio::awaitable<void> {
            // An unknown outcome is reported; the locks are released nevertheless.
            try {
                static_cast<void>(co_await held.release());
            } catch (const release_error&) {
            }
        });
}

/// Handles one request at a time, and rejects a request that has waited for more than a millisecond.
const std::string throttling = "request_throttle_max_requests=1\nrequest_throttle_stall_time=50\n"
                               "throttled_op_wait_time=1\n";

/// The server has not carried out a rejected request, and reports this.
BOOST_AUTO_TEST_CASE(throttled_requests_are_sent_again)
{
    server_fixture at(throttling);
    auto& by = at.add();
    std::vector<running<lock>> asked;
    for (int i = 0; i < 24; ++i)
        asked.push_back(start(at.io, by.acquire("k" + std::to_string(i))));
    // On a busy machine the server rejects nearly all requests: the first lease may have ended before the last grant.
    for (auto& each : asked)
        BOOST_TEST(each.get(at.io, std::source_location::current(), {.time = 3min}).fence() > 0);
    BOOST_TEST(by.stats().attempts > asked.size());
}

/// Such a server carries out only the first of several requests that are sent together. Each attempt has to begin where
/// the previous one has ended.
BOOST_AUTO_TEST_CASE(server_with_one_request_per_attempt_grants_finally)
{
    server_fixture at(throttling, 60ms);
    auto& by = at.add();
    auto in_group = start(at.io, acquire_in_group(by, "in a group"));
    std::vector<running<lock>> asked;
    for (const auto* key : {"a", "b", "c", "d"})
        asked.push_back(start(at.io, by.acquire(key)));
    const run_limits a_while{.time = 1min};
    for (auto& each : asked)
        BOOST_TEST(each.get(at.io, std::source_location::current(), a_while).fence() > 0);
    {
        const auto group = in_group.get(at.io, std::source_location::current(), a_while);
        BOOST_TEST(group.size() == 1U);
        // The folder of the group exists by now, and the folder of the key does not.
        auto another = start(at.io, acquire_in_group(by, "another"));
        BOOST_TEST(another.get(at.io, std::source_location::current(), a_while).size() == 1U);
        BOOST_TEST(by.stats().attempts > asked.size() + 1);
    }
    asked.clear();
    at.until([&] { return by.stats().settling == 0 && at.nodes().empty(); });
}

BOOST_AUTO_TEST_CASE(session_is_resumed_by_a_server_that_throttles)
{
    // The session has to live while the server starts again.
    const std::string long_sessions = "maxSessionTimeout=60000\n";
    server_fixture at(long_sessions);
    auto& by = at.add(60s);
    at.run(at.run(by.acquire("warm")).release());
    // No beat contains these locks, so the verification asks for each.
    std::vector<running<lock>> asked;
    for (int i = 0; i < 30; ++i)
        asked.push_back(start(at.io, by.acquire("k" + std::to_string(i), {.ttl = 0ms})));
    std::vector<lock> held;
    for (auto& each : asked)
        held.push_back(each.get(at.io));
    at.server->kill();
    at.server->configure(long_sessions + throttling);
    at.server->start();
    at.until([&] { return at.events->reconnections > 0; });
    for (const auto& each : held)
        BOOST_TEST(each.held());
}

BOOST_AUTO_TEST_CASE(lack_of_descriptors_is_named_as_the_cause, *boost::unit_test::precondition(may_lack_descriptors))
{
    const error_code none_free(EMFILE, boost::system::system_category());
    server_fixture at;
    for (const auto* const host : {"127.0.0.1", "localhost"}) {
        BOOST_TEST_CONTEXT(host)
        {
            auto given = at.options(10s, url_of(at.server->port(), host));
            given.operation_timeout = 2s;
            auto& by = at.add(given);
            {
                const no_free_descriptors only_now;
                BOOST_CHECK_EXCEPTION(static_cast<void>(at.run(by.try_acquire("k"))), error, [&](const error& failed) {
                    BOOST_TEST((failed.cause() == none_free), failed.what());
                    return failed.code() == errc::unavailable;
                });
            }
            at.run(at.run(by.acquire("k")).release());
        }
    }
}

BOOST_AUTO_TEST_CASE(server_of_another_protocol_is_named_as_the_cause)
{
    server_fixture at;
    for (const std::string text :
        {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"})
    {
        for (const bool closes : {false, true}) {
            BOOST_TEST_CONTEXT(text << closes)
            {
                const peer other(at.io, [&](peer::talk& with) -> asio::awaitable<void> {
                    co_await with.say(text);
                    if (!closes)
                        co_await with.hear("never");
                });
                auto given = at.options(10s, url_of(other.port()));
                given.operation_timeout = 2s;
                BOOST_CHECK_EXCEPTION(
                    static_cast<void>(at.run(at.add(given).try_acquire("k"))), error, [&](const error& failed) {
                        BOOST_TEST(failed.detail().find("not a ZooKeeper server") != std::string::npos, failed.what());
                        return failed.code() == errc::unavailable;
                    });
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
