// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Faults of single nodes, of the links to them, and of what they say about the cluster.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"
#include "links.hpp"
#include "load.hpp"
#include "support/movable_clock.hpp"

#include <colock/locker.hpp>

#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

using steady_clock = std::chrono::steady_clock;

redis_cluster& cleared_cluster()
{
    static redis_cluster servers;
    servers.clear();
    return servers;
}

const std::vector<std::string> partial_coverage{"--cluster-require-full-coverage", "no"};

/// Returns a key of a slot of this node. More text behind it makes another key of the same slot.
std::string key_at(redis_cluster& servers, std::size_t node)
{
    for (int i = 0;; ++i) {
        auto key = "{" + std::to_string(i) + "}";
        if (servers.owner_of(key) == node)
            return key;
    }
}

/// Acquires a lock, and pauses after an error: some errors are answered at once for several seconds.
asio::awaitable<std::uint64_t> acquire_with_pauses(std::shared_ptr<adapter> backend, plain_claim_ptr claim)
{
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        const auto outcome = co_await backend->create(sent_now(claim));
        if (outcome.status == create_status::granted)
            co_return outcome.fence;
        if (outcome.status == create_status::busy)
            co_await backend->wait(claim, lease_clock::time_point::max());
        pause.expires_after(5ms);
        co_await pause.async_wait(asio::deferred);
    }
}

/// Starts an acquire that continues after errors.
running<std::uint64_t> start_acquire(client_side& by, const std::string& key)
{
    return start(by.io, acquire_with_pauses(by.test_driver.shared_backend(), driver::exclusive(key)));
}

std::uint64_t acquire_now(client_side& by, const std::string& key)
{
    return start_acquire(by, key).get(by.io);
}

/// The slot of the keys with the tag "a", which moves from its owner to another master.
struct moving_slot
{
    explicit moving_slot(redis_cluster& cluster) : servers(cluster) {}
    void begin() { servers.begin_move(number, from, to); }
    void move_keys() { servers.move_keys(number, from, to); }
    void finish() { servers.finish_move(number, from, to); }
    void move() { servers.move_slot(number, from, to); }
    void move_back() { servers.move_slot(number, to, from); }

    redis_cluster& servers;
    const std::uint16_t number = servers.slot_of("{a}");
    const std::size_t from = servers.owner_of("{a}");
    const std::size_t to = (from + 1) % redis_cluster::masters;
};

void check_load(const cluster_load::result& seen)
{
    BOOST_TEST(seen.grants > 200u);
    BOOST_TEST(seen.overlaps == 0u);
    BOOST_TEST(seen.low_fences == 0u);
    BOOST_TEST(seen.errors.size() == 0u, (seen.errors.empty() ? "" : seen.errors.front()));
    BOOST_TEST_MESSAGE(seen.grants << " grants, longest acquire " << seen.longest_acquire.count() << " ms");
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_cluster_faults)

/// The owner receives the create after its slot has moved away and back. Another client has acquired the lock at the
/// other master.
BOOST_AUTO_TEST_CASE(create_that_is_delayed_while_its_slot_moves_away_and_back_respects_the_other_holder)
{
    for (const bool is_released : {false, true}) {
        moving_slot slot(cleared_cluster());
        links_to_nodes links(slot.servers);
        client_side late({.url = links.url(),
            .address_map = links.map,
            .operation_timeout = 30s,
            .idle_timeout = 10min,
            .health_interval = 30s});
        client_side other({.url = slot.servers.url()});
        late.test_driver.grant(driver::exclusive("{a}1"));
        links.all[slot.from]->silence(true);
        const auto claim = driver::exclusive("{a}2");
        auto delayed = start(late.io, late.test_driver.backend().create(sent_now(claim)));
        late.run_for(100ms);
        slot.move();
        const auto between = driver::exclusive("{a}2");
        const auto fence = other.test_driver.grant(between);
        if (is_released)
            other.test_driver.release_held(between);
        slot.move_back();
        BOOST_TEST(!delayed.done());
        links.all[slot.from]->silence(false);
        const auto outcome = delayed.get(late.io);
        BOOST_TEST((outcome.status == (is_released ? create_status::granted : create_status::busy)));
        if (is_released)
            BOOST_TEST(outcome.fence > fence);
        else
            other.test_driver.release_held(between);
    }
}

/// The create has been given up. The client has settled it at the former owner, which executes it no more when it gets
/// the slot back.
BOOST_AUTO_TEST_CASE(create_that_was_settled_is_not_executed_after_its_slot_has_moved_away_and_back)
{
    moving_slot slot(cleared_cluster());
    links_to_nodes links(slot.servers);
    client_side late({.url = links.url(), .address_map = links.map, .operation_timeout = 5s, .health_interval = 400ms});
    late.test_driver.grant(driver::exclusive("{a}1"));
    auto& link = *links.all[slot.from];
    link.hold();
    const auto claim = driver::exclusive("{a}2");
    BOOST_TEST(code_of(late.test_driver.create(claim)) == errc::outcome_unknown);
    BOOST_TEST(link.keeps("colock:{a}2"));
    slot.move();
    BOOST_TEST((late.test_driver.abandon(claim).status == release_status::not_held));
    slot.move_back();
    link.deliver();
    BOOST_TEST(slot.servers.node(slot.from)({"EXISTS", "colock:{a}2"}) == "0");
}

/// Toxiproxy delays all requests by up to 60 ms, so that many are on their way while their slot moves away and back.
BOOST_AUTO_TEST_CASE(locks_are_held_once_while_slots_move_away_and_back_behind_slow_links)
{
    auto& servers = cleared_cluster();
    std::vector<std::unique_ptr<redis_toxiproxy>> links;
    redis::options settings{.url = "redis+cluster://", .operation_timeout = 10s, .idle_timeout = 100ms};
    for (std::size_t i = 0; i < redis_cluster::masters; ++i) {
        links.push_back(std::make_unique<redis_toxiproxy>(servers.node(i).port()));
        links.back()->add("slow", "latency", "upstream", R"({"latency":30,"jitter":30})");
        const auto address = links_to_nodes::address(links.back()->port());
        settings.address_map[links_to_nodes::address(servers.node(i).port())] = address;
        settings.url += (i > 0 ? "," : "") + address;
    }
    cluster_load load(settings, keys_in_six_slots(), 5s);
    int moves = 0;
    check_load(load.run(6s, [&] {
        for (const auto ends = steady_clock::now() + 5s; steady_clock::now() < ends;) {
            for (const auto* const key : {"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"}) {
                const auto slot = servers.slot_of(key);
                const auto from = servers.owner_of(key), to = (from + 1) % redis_cluster::masters;
                servers.move_slot(slot, from, to);
                servers.move_slot(slot, to, from);
                moves += 2;
            }
        }
    }));
    BOOST_TEST(moves > 6);
}

/// The waiter has subscribed at the source of the move.
BOOST_AUTO_TEST_CASE(release_during_a_move_wakes_the_waiter)
{
    enum class progress : unsigned char
    {
        begun,
        keys_moved,
        finished,
    };
    for (const auto reached : {progress::begun, progress::keys_moved, progress::finished}) {
        moving_slot slot(cleared_cluster());
        client_side holder({.url = slot.servers.url()});
        client_side waiter({.url = slot.servers.url()});
        const auto held = driver::exclusive("{a}", 0ms);
        const auto fence = holder.test_driver.grant(held);
        auto next = start_acquire(waiter, "{a}");
        waiter.run_for(300ms);
        slot.begin();
        if (reached >= progress::keys_moved)
            slot.move_keys();
        if (reached == progress::finished)
            slot.finish();
        BOOST_TEST(!next.done());
        holder.test_driver.release_held(held);
        const auto released = steady_clock::now();
        // After a release at the target, the holder also sends the message at the source.
        holder.run_for(200ms);
        BOOST_TEST(next.get(waiter.io) > fence);
        BOOST_TEST((steady_clock::now() - released < 5s));
        if (reached == progress::finished)
            continue;
        slot.move_keys();
        slot.finish();
    }
}

/// The locks of the master are lost, which their holders are told. Those of the other masters are not affected.
BOOST_AUTO_TEST_CASE(lost_data_of_one_master_affects_its_own_locks_only)
{
    auto& servers = cleared_cluster();
    asio::io_context io;
    locker locks(redis::make_adapter(io.get_executor(), {.url = servers.url()}));
    locker others(redis::make_adapter(io.get_executor(), {.url = servers.url()}));
    std::vector<lock> held;
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        held.push_back(run_coro(io, locks.acquire(key_at(servers, i), {.ttl = 2s, .renewal = renewal::automatic})));
    // The other client has used the counter before, too.
    run_coro(io, run_coro(io, others.acquire(held[0].key() + "another")).release());
    BOOST_TEST(servers.node(0)({"FLUSHALL"}) == "OK");
    BOOST_TEST(run_coro(io, held[0].lost()) == lost_reason::taken);
    const auto again = run_coro(io, others.acquire(held[0].key()));
    BOOST_TEST(again.fence() > held[0].fence());
    for (std::size_t i = 1; i < redis_cluster::masters; ++i) {
        BOOST_TEST(run_coro(io, held[i].is_locked()));
        BOOST_TEST(!run_coro(io, others.try_acquire(held[i].key())));
    }
    run_coro(io, locks.shutdown(5s));
    run_coro(io, others.shutdown(5s));
}

/// Overlaps are not counted, because each FLUSHALL removes locks that are held.
BOOST_AUTO_TEST_CASE(fences_rise_over_lost_data)
{
    auto& servers = cleared_cluster();
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    const auto seen = load.run(3s, [&] {
        for (int i = 0; i < 5; ++i) {
            std::this_thread::sleep_for(500ms);
            servers.node(0)({"FLUSHALL"});
        }
    });
    BOOST_TEST(seen.grants > 200u);
    BOOST_TEST(seen.low_fences == 0u);
    BOOST_TEST(seen.errors.size() == 0u, (seen.errors.empty() ? "" : seen.errors.front()));
    BOOST_TEST_MESSAGE(seen.grants << " grants, " << seen.overlaps << " overlaps");
    check_load(load.run(1s, [] {}));
}

BOOST_AUTO_TEST_CASE(master_with_too_many_clients_does_not_affect_the_others)
{
    auto& servers = cleared_cluster();
    const auto key = key_at(servers, 0), other = key_at(servers, 1);
    // The URL begins with this master.
    BOOST_TEST(servers.node(0)({"CONFIG", "SET", "maxclients", "1"}) == "OK");
    client_side client({.url = servers.url(), .operation_timeout = 1s});
    const auto refused = client.test_driver.create(driver::exclusive(key));
    acquire_now(client, other);
    const auto refused_again = client.test_driver.create(driver::exclusive(key));
    BOOST_TEST(servers.node(0)({"CONFIG", "SET", "maxclients", "10000"}) == "OK");
    for (const auto& each : {refused, refused_again}) {
        BOOST_TEST(code_of(each) == errc::unavailable);
        BOOST_TEST(each.error->detail.find("max number of clients") != std::string::npos, each.error->detail);
    }
    // A server that has too many clients closes a new connection before it reads a request.
    BOOST_TEST(client.events->obstacle_address == links_to_nodes::address(servers.node(0).port()));
    acquire_now(client, key);
}

/// The raise of the counter was refused together with the grant. Without another one, a counter that has fallen would
/// give fences that are below earlier ones.
BOOST_AUTO_TEST_CASE(refused_raise_of_the_counter_is_repeated)
{
    auto& servers = cleared_cluster();
    auto& node = servers.node(servers.owner_of("{a}"));
    client_side other({.url = servers.url()});
    const auto fence = other.test_driver.grant(driver::exclusive("{a}1"));
    std::string counter = node({"KEYS", "colock#f*"});
    BOOST_TEST_REQUIRE(servers.keys().size() == 2u);
    counter.pop_back();
    client_side client({.url = servers.url()});
    node({"CONFIG", "SET", "min-replicas-to-write", "5"});
    const auto refused = client.test_driver.create(driver::exclusive("{a}2"));
    node({"CONFIG", "SET", "min-replicas-to-write", "0"});
    BOOST_TEST(code_of(refused) == errc::unavailable);
    // The lowest value that a client accepts.
    BOOST_TEST(node({"SET", counter, "1600000000000000"}) == "OK");
    BOOST_TEST(client.test_driver.grant(driver::exclusive("{a}2")) > fence);
}

BOOST_AUTO_TEST_SUITE_END()

/// Each test has a cluster of its own.
BOOST_AUTO_TEST_SUITE(redis_cluster_outages)

/// The server answers LOADING for about three seconds.
BOOST_AUTO_TEST_CASE(master_that_loads_its_data_does_not_affect_the_others)
{
    redis_cluster servers(15s, {"--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"});
    const auto owner = servers.owner_of("{a}");
    auto& node = servers.node(owner);
    client_side client({.url = servers.url()});
    const auto held = driver::exclusive("{a}held");
    client.test_driver.grant(held);
    for (int i = 0; i < 300; ++i)
        node({"SET", "{a}" + std::to_string(i), std::string(1000, 'x')});
    BOOST_TEST(node({"SAVE"}) == "OK");
    node.kill();
    node.start({"--key-load-delay", "10000"});
    const auto is_loading = [&] { return node({"PING"}).starts_with("-LOADING"); };
    wait_until(is_loading, "begin of the loading");
    auto waiting = start_acquire(client, "{a}");
    for (std::size_t i = 0; i < redis_cluster::masters; ++i) {
        if (i != owner)
            acquire_now(client, key_at(servers, i));
    }
    BOOST_TEST(!waiting.done());
    BOOST_TEST(is_loading());
    waiting.get(client.io);
    client.test_driver.release_held(held);
}

BOOST_AUTO_TEST_CASE(nodes_are_added_and_removed_under_load)
{
    redis_cluster servers;
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    check_load(load.run(6s, [&] {
        const auto added = servers.add_node();
        std::map<std::string, std::size_t> owners;
        for (const auto* const tag : {"{a}", "{b}", "{c}"}) {
            owners[tag] = servers.owner_of(tag);
            servers.move_slot(servers.slot_of(tag), owners[tag], added);
        }
        std::this_thread::sleep_for(500ms);
        for (const auto& [tag, owner] : owners)
            servers.move_slot(servers.slot_of(tag), added, owner);
        servers.remove_node(added);
    }));
}

/// A server that is not a node of the cluster listens at the address of a master that has died.
BOOST_AUTO_TEST_CASE(foreign_server_at_the_address_of_a_master_grants_nothing)
{
    redis_cluster servers(2s, partial_coverage);
    const auto key = key_at(servers, 0);
    client_side client({.url = servers.url(), .operation_timeout = 1s});
    const auto fence = client.test_driver.grant(driver::exclusive(key));
    servers.wait_for_replica(0);
    servers.node(0).kill();
    redis_server foreign;
    foreign.move_to(servers.node(0).port());
    const auto refused = client.test_driver.create(driver::exclusive(key + "another"));
    BOOST_TEST((refused.status == create_status::failed));
    BOOST_TEST_MESSAGE(refused.error->detail);
    acquire_now(client, key_at(servers, 1));
    servers.wait_until_promoted(redis_cluster::masters);
    BOOST_TEST(acquire_now(client, key + "another") > fence);
    client.test_driver.check_refused(driver::exclusive(key));
    BOOST_TEST(foreign({"DBSIZE"}) == "0");
}

/// A replica of another master is started at the address of a master that was replaced.
BOOST_AUTO_TEST_CASE(other_node_at_the_address_of_a_master_refers_to_the_new_owner)
{
    redis_cluster servers(2s, partial_coverage);
    const auto key = key_at(servers, 0);
    client_side client({.url = servers.url()});
    const auto held = driver::exclusive(key);
    client.test_driver.grant(held);
    servers.wait_for_replica(0);
    const auto port = servers.node(0).port();
    servers.node(0).kill();
    servers.wait_until_promoted(redis_cluster::masters);
    servers.replica_of(1).move_to(port);
    client_side other({.url = servers.url()});
    for (auto* const each : {&client, &other}) {
        acquire_now(*each, key_at(servers, 1) + (each == &client ? "1" : "2"));
        wait_until([&] { return each->test_driver.create(driver::exclusive(key)).status == create_status::busy; },
            "the answer");
    }
    wait_until([&] { return client.test_driver.release(held).status == release_status::released; }, "the release");
    BOOST_TEST(acquire_now(other, key) != 0u);
}

BOOST_AUTO_TEST_CASE(host_names_that_cannot_be_resolved_are_reported_and_may_be_mapped)
{
    redis_cluster servers(
        15s, {"--cluster-announce-hostname", "nowhere.invalid", "--cluster-preferred-endpoint-type", "hostname"});
    client_side client({.url = servers.url(), .operation_timeout = 2s, .connect_timeout = 500ms});
    const auto refused = client.test_driver.create(driver::exclusive("{a}"));
    BOOST_TEST(code_of(refused) == errc::unavailable);
    BOOST_TEST(refused.error->detail.find("nowhere.invalid") != std::string::npos, refused.error->detail);

    std::map<std::string, std::string> map;
    for (std::size_t i = 0; i < redis_cluster::size; ++i) {
        const auto port = servers.node(i).port();
        map["nowhere.invalid:" + std::to_string(port)] = links_to_nodes::address(port);
    }
    client_side mapped({.url = servers.url(), .address_map = map});
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        mapped.test_driver.grant(driver::exclusive(key_at(servers, i)));

    for (std::size_t i = 0; i < redis_cluster::size; ++i)
        servers.node(i)({"CONFIG", "SET", "cluster-preferred-endpoint-type", "ip"});
    acquire_now(client, "{a}");
}

/// Both masters may accept writes for a moment, so overlaps are not counted during the failovers.
BOOST_AUTO_TEST_CASE(locks_are_granted_again_after_a_forced_failover)
{
    redis_cluster servers(2s);
    cluster_load load(servers.url(), keys_of_all_masters(), 1s);
    const auto seen = load.run(5s, [&] {
        std::this_thread::sleep_for(500ms);
        servers.fail_over(0, "FORCE");
        servers.fail_over(1, "TAKEOVER");
    });
    BOOST_TEST(seen.grants > 200u);
    BOOST_TEST(seen.errors.size() == 0u, (seen.errors.empty() ? "" : seen.errors.front()));
    BOOST_TEST_MESSAGE(seen.grants << " grants, longest acquire " << seen.longest_acquire.count() << " ms");
    check_load(load.run(1s, [] {}));
}

/// A master that is cut off from the other nodes, and reached by its clients. It answers CLUSTERDOWN after the node
/// timeout.
BOOST_AUTO_TEST_CASE(clients_leave_a_master_that_is_cut_off_from_the_other_nodes)
{
    redis_cluster servers(2s, partial_coverage, bus_link::proxied);
    client_side client({.url = servers.url()});
    const auto key = key_at(servers, 0), other = key_at(servers, 1);
    const auto held = driver::exclusive(key);
    const auto fence = client.test_driver.grant(held);
    client.test_driver.release_held(held);
    servers.wait_for_replica(0);
    servers.cut_off(0);
    client.test_driver.grant(driver::exclusive(other));
    servers.wait_until_promoted(redis_cluster::masters);
    BOOST_TEST(acquire_now(client, key) > fence);
    BOOST_TEST(servers.replica_of(0)({"EXISTS", "colock:" + key}) == "1");
    BOOST_TEST(servers.node(0)({"GET", "colock:" + key}).starts_with("-CLUSTERDOWN"));
    servers.connect_again(0);
    servers.wait_until_ok();
    client.test_driver.check_refused(driver::exclusive(key));
}

/// A lock that the replica does not have. Its ttl is shorter than the node timeout, so it has ended when the replica is
/// promoted.
BOOST_AUTO_TEST_CASE(short_lock_of_a_master_that_is_cut_off_has_no_second_holder)
{
    redis_cluster servers(2s, partial_coverage, bus_link::proxied);
    links_to_nodes links(servers);
    client_side holder({.url = links.url(), .address_map = links.map});
    client_side other({.url = servers.url()});
    const auto key = key_at(servers, 0);
    acquire_now(holder, key + "another");
    servers.cut_off(0);
    const auto held = driver::exclusive(key, 1s);
    const auto asked = steady_clock::now();
    const auto fence = holder.test_driver.grant(held);
    links.all[0]->refuse(true);
    servers.node(0).pause();
    auto next = start_acquire(other, key);
    // The other masters grant locks meanwhile.
    acquire_now(other, key_at(servers, 1));
    acquire_now(holder, key_at(servers, 2));
    servers.wait_until_promoted(redis_cluster::masters);
    BOOST_TEST(next.get(other.io) > fence);
    BOOST_TEST((steady_clock::now() - asked > 1s));
    servers.node(0).resume();
    servers.connect_again(0);
    links.all[0]->refuse(false);
    servers.wait_until_ok();
    wait_until([&] { return holder.test_driver.extend(held, 1s).status == extend_status::not_held; }, "the answer");
    other.test_driver.check_refused(driver::exclusive(key));
}

BOOST_AUTO_TEST_SUITE_END()

/// The clocks of the masters are five seconds apart.
BOOST_AUTO_TEST_SUITE(redis_cluster_clocks)

namespace {

struct masters_with_wrong_clocks
{
    movable_clock ahead{5s};
    movable_clock behind{-5s};
    redis_cluster servers{
        std::chrono::seconds(15), {}, bus_link::direct, {{}, ahead.environment(), behind.environment()}};
};

/// Moves the slot of the key to the master.
void move_to(redis_cluster& servers, const std::string& key, std::size_t to)
{
    if (const auto from = servers.owner_of(key); from != to)
        servers.move_slot(servers.slot_of(key), from, to);
}

/// Returns how long the lease of the first holder would still have lasted when the second was granted the lock at a
/// master whose clock is five seconds ahead. Negative if the leases did not overlap.
lease_clock::duration overlap_after_move(const redis::options& options, lock_mode mode, std::chrono::milliseconds ttl)
{
    masters_with_wrong_clocks all;
    auto settings = options;
    settings.url = all.servers.url();
    asio::io_context io;
    locker locks(redis::make_adapter(io.get_executor(), settings));
    locker others(redis::make_adapter(io.get_executor(), settings));
    move_to(all.servers, "{a}", 0);
    const auto first = run_coro(io, locks.acquire("{a}", {.ttl = ttl, .mode = mode}));
    move_to(all.servers, "{a}", 1);
    const auto second = run_coro(io, others.acquire("{a}", {.ttl = ttl}));
    const auto overlap = first.expires_at() - lease_clock::now();
    BOOST_TEST(second.fence() > first.fence());
    run_coro(io, locks.shutdown(5s));
    run_coro(io, others.shutdown(5s));
    return overlap;
}

} // namespace

BOOST_AUTO_TEST_CASE(exclusive_locks_do_not_depend_on_the_clocks)
{
    masters_with_wrong_clocks all;
    auto& servers = all.servers;
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    check_load(load.run(5s, [&] {
        for (const auto ends = steady_clock::now() + 4s; steady_clock::now() < ends;) {
            for (const auto* const tag : {"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"})
                move_to(servers, tag, (servers.owner_of(tag) + 1) % redis_cluster::masters);
        }
    }));
    BOOST_TEST((overlap_after_move({.max_clock_lead = 0ms}, lock_mode::exclusive, 3s) < 0s));
}

/// The expiry of a reader is stored by the clock of the first master, and judged by that of the second.
BOOST_AUTO_TEST_CASE(shared_locks_depend_on_the_clock_lead)
{
    BOOST_TEST((overlap_after_move({.max_clock_lead = 0ms}, lock_mode::shared, 7s) > 0s));
    BOOST_TEST((overlap_after_move({.max_clock_lead = 5s}, lock_mode::shared, 20s) < 0s));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
