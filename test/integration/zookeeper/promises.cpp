// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "locker_scene.hpp"
#include "support/relay.hpp"
#include "support/sockets.hpp"
#include "zookeeper/recipe/names.hpp"

#include <colock/error.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <netdb.h>

namespace {

/// Where the name moving.test leads.
std::atomic<const char*> moving_to{"127.0.0.1"};

} // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** found)
{
    using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (node && std::string_view(node) == "moving.test")
        node = moving_to.load();
    return real(node, service, hints, found);
}

namespace colock::testing {
namespace {

/// An attempt that is made for no reason but its age comes too late for any test.
const auto hardly_ever = retry_policy::fixed(10min);

asio::awaitable<lock_group> acquire_in_group(locker by, std::string key, acquire_options how = {})
{
    auto some = by.group("g");
    co_await some.acquire(std::move(key), how);
    co_return some;
}

std::string url_of(std::uint16_t port, std::string_view host = "127.0.0.1")
{
    return "zookeeper://" + std::string(host) + ':' + std::to_string(port);
}

/// \param lines of its configuration
/// \param disk_delay of each wait for its disk
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

struct promise_scene : locker_scene
{
    explicit promise_scene(const std::string& lines = {}, std::chrono::milliseconds disk_delay = 0ms)
        : promise_scene(make_server(lines, disk_delay))
    {
    }
    explicit promise_scene(std::unique_ptr<zookeeper_server> only)
        : locker_scene(url_of(only->port()), [port = only->port()] { return port; }), server(std::move(only)),
          link(server->port())
    {
    }

    void rest(lease_clock::duration how_long)
    {
        const auto begun = lease_clock::now();
        until([&] { return lease_clock::now() - begun > how_long; });
    }
    [[nodiscard]] std::string linked() const { return url_of(link.port()); }

    std::unique_ptr<zookeeper_server> server;
    relay link;
};

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_promises)

/// The servers were started again, with another configuration.
BOOST_AUTO_TEST_CASE(who_is_granted_less_time_at_a_reconnect_loses_what_counted_on_more)
{
    promise_scene at("maxSessionTimeout=20000\n");
    auto held = at.run(at.add(20s, at.linked()).acquire("k", {.ttl = 0ms}));
    at.server->kill();
    at.server->configure("maxSessionTimeout=2000\n");
    at.server->start();
    at.until([&] { return at.told->reconnections == 1; });
    at.until([&] { return !held.held(); });
    // And stands in nobody's way.
    auto next = at.run(at.add(2s).acquire("k", {.ttl = 0ms, .retry = hardly_ever}));
    BOOST_TEST(!held.held());
}

BOOST_AUTO_TEST_CASE(a_root_that_may_not_be_made_is_access_denied)
{
    promise_scene at;
    at.run(at.run(at.add(of_user(at.options(), "one", "secret")).acquire("k")).release());
    auto below = at.options();
    below.url += "/below";
    auto& other = at.add(below);
    const auto is_denied = [](const error& refused) { return refused.code() == errc::access_denied; };
    BOOST_CHECK_EXCEPTION(static_cast<void>(at.run(other.try_acquire("k"))), error, is_denied);
    BOOST_CHECK_EXCEPTION(static_cast<void>(at.run(other.acquire("k"))), error, is_denied);
}

BOOST_AUTO_TEST_CASE(a_parent_of_the_root_that_is_closed_to_it_is_asked_for_once)
{
    promise_scene at;
    auto owner = of_user(at.options(), "one", "secret");
    at.run(at.run(at.add(owner).acquire("k")).release());
    owner.url += "/open";
    owner.access = {zookeeper::access_right{}};
    at.run(at.run(at.add(owner).acquire("k")).release());
    auto below = at.options(10s, at.linked());
    below.url += "/open";
    auto& by = at.add(below);
    at.run(at.run(by.acquire("a")).release());
    // The path of that, as a request tells it.
    at.link.cut_at_any({std::string("\0\0\0\6/locks", 10)}, loss::request);
    at.run(at.run(by.acquire("b")).release());
    BOOST_TEST(at.link.cuts() == 0);
}

BOOST_AUTO_TEST_CASE(the_shortest_session_carries_locks)
{
    promise_scene at("tickTime=250\n");
    auto options = at.options(1s);
    options.server_tick = 250ms;
    at.run(at.run(at.add(options).acquire("k")).release());
}

BOOST_AUTO_TEST_CASE(a_server_whose_name_leads_elsewhere_is_found)
{
    zookeeper_server server;
    const auto port = server.port();
    moving_to = "127.0.0.1";
    locker_scene at(url_of(port, "moving.test"), [port] { return port; });
    auto& by = at.add(2s);
    // Whoever holds nothing lets go of the session, and looks the name up for the next.
    const auto held = at.run(by.acquire("other"));
    server.kill();
    server.configure("clientPortAddress=127.0.0.2\n");
    server.launch();
    moving_to = "127.0.0.2";
    BOOST_TEST(at.run(by.acquire("k")).held());
}

/// Nothing runs for longer than the session is certain to live, and for less than it lives.
BOOST_AUTO_TEST_CASE(who_is_first_while_nothing_is_certain_is_granted_when_it_is)
{
    promise_scene at;
    auto held = at.run(at.add(20s).acquire("k", {.ttl = 0ms}));
    locker_scene other(url_of(at.server->port()), [port = at.server->port()] { return port; });
    auto waits = start(other.io, other.add(6s).acquire("k", {.ttl = 0ms, .retry = hardly_ever}));
    const auto begun = lease_clock::now();
    other.until([&] { return other.nodes().size() == 2 && lease_clock::now() - begun > 2500ms; });
    const auto stalled = lease_clock::now();
    at.run(held.release());
    std::this_thread::sleep_until(stalled + 4900ms);
    other.until([&] { return waits.done(); });
    BOOST_TEST(waits.get(other.io).held());
}

BOOST_AUTO_TEST_CASE(a_semaphore_whose_folder_is_made_anew_wakes_its_waiters)
{
    promise_scene at;
    const acquire_options alone{.mode = lock_mode::shared, .max_holders = 1, .retry = hardly_ever};
    auto held = at.run(at.add(10s, at.linked()).acquire("k", alone));
    auto waits = start(at.io, at.add(10s, at.linked()).acquire("k", alone));
    auto& other = at.add();
    at.until([&] { return at.nodes().size() == 2; });
    at.run(at.run(other.acquire("x")).release());
    at.rest(500ms);
    at.link.refuse(true);
    for (const auto each : sessions_of(at.server->port(), at.chroot()))
        end_session(at.server->port(), each);
    client cleaner(at.server->port(), 6s, {.chroot = at.chroot()});
    cleaner.connect();
    BOOST_TEST(cleaner.remove(bucket_of("k") + "/k").ok());
    at.until([&] { return at.told->suspensions == 2; });
    // Somebody else makes the folder after it was looked for, and before the waiter's node is there.
    at.link.cut_at_bytes("/k/", loss::time);
    at.link.refuse(false);
    at.until([&] { return at.link.cuts() == 1; });
    auto next = at.run(other.acquire("k", alone));
    at.link.deliver_replies();
    at.until([&] { return at.nodes().size() == 2; });
    at.rest(500ms);
    at.run(next.release());
    BOOST_TEST(waits.get(at.io).held());
}

BOOST_AUTO_TEST_CASE(who_stands_first_looks_again_after_an_answer_was_lost)
{
    promise_scene at;
    auto held = at.run(at.add().acquire("k"));
    auto first = start(at.io, at.add(10s, at.linked()).acquire("k", {.retry = hardly_ever}));
    at.until([&] { return at.nodes().size() == 2; });
    at.rest(500ms);
    at.link.cut_at_bytes("/k", loss::reply);
    at.run(held.release());
    BOOST_TEST(first.get(at.io).held());
    BOOST_TEST(at.link.cuts() == 1);
}

/// Loses two messages, one after the other, of an acquire, of what is looked for after that, and of a release.
/// \param bytes what those have in them
template <class Acquire, class Release>
void lose_two(std::vector<std::string> bytes, std::size_t nodes, Acquire acquire, Release release)
{
    promise_scene at;
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

BOOST_AUTO_TEST_CASE(whatever_is_lost_one_after_the_other_leaves_nothing_and_keeps_nobody_waiting)
{
    // All that is asked about the key; what has a node in it.
    lose_two(
        {"/k", "-x-"}, 1, [](const locker& by, acquire_options how) { return by.acquire("k", how); },
        [](lock& held) { return held.release(); });
}

BOOST_AUTO_TEST_CASE(the_same_of_a_group_whose_index_may_be_lost_too)
{
    // Its node in the index of its group.
    lose_two(
        {"-x-", "~k"}, 2, [](const locker& by, acquire_options how) { return acquire_in_group(by, "k", how); },
        [](lock_group& held) -> asio::awaitable<void> {
            // It tells what is not known; each is given back all the same.
            try {
                static_cast<void>(co_await held.release());
            } catch (const release_error&) {
            }
        });
}

/// Takes one request at a time, and puts off what has waited for longer than a millisecond.
const std::string throttling = "request_throttle_max_requests=1\nrequest_throttle_stall_time=50\n"
                               "throttled_op_wait_time=1\n";

/// It has carried nothing out, and says so.
BOOST_AUTO_TEST_CASE(what_a_server_that_throttles_has_put_off_is_tried_again)
{
    promise_scene at(throttling);
    auto& by = at.add();
    std::vector<running<lock>> asked;
    for (int i = 0; i < 24; ++i)
        asked.push_back(start(at.io, by.acquire("k" + std::to_string(i))));
    // On a busy machine it puts nearly everything off: the first lease may have ended before the last is granted.
    for (auto& each : asked)
        BOOST_TEST(each.get(at.io, std::source_location::current(), {.time = 3min}).fence() > 0);
    BOOST_TEST(by.stats().attempts > asked.size());
}

/// Of all that is sent at once, such a server carries out what comes first: each attempt has to begin where the last
/// one ended.
BOOST_AUTO_TEST_CASE(a_server_that_carries_out_one_request_of_each_attempt_grants_in_the_end)
{
    promise_scene at(throttling, 60ms);
    auto& by = at.add();
    auto in_group = start(at.io, acquire_in_group(by, "in a group"));
    std::vector<running<lock>> asked;
    for (const auto* key : {"a", "b", "c", "d"})
        asked.push_back(start(at.io, by.acquire(key)));
    const run_limits a_while{.time = 1min};
    for (auto& each : asked)
        BOOST_TEST(each.get(at.io, std::source_location::current(), a_while).fence() > 0);
    {
        const auto some = in_group.get(at.io, std::source_location::current(), a_while);
        BOOST_TEST(some.size() == 1U);
        // The folder of the group is there by now, and that of the key is not.
        auto another = start(at.io, acquire_in_group(by, "another"));
        BOOST_TEST(another.get(at.io, std::source_location::current(), a_while).size() == 1U);
        BOOST_TEST(by.stats().attempts > asked.size() + 1);
    }
    asked.clear();
    at.until([&] { return by.stats().settling == 0 && at.nodes().empty(); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
