// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Faults of single nodes, of the links to them, and of what they say about the cluster, which go on running.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"
#include "links.hpp"
#include "load.hpp"
#include "persistent_acquire.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
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
    load.run(6s,
            [&] {
                for (const auto ends = steady_clock::now() + 5s; steady_clock::now() < ends;) {
                    for (const auto* const key : {"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"}) {
                        const auto slot = servers.slot_of(key);
                        const auto from = servers.owner_of(key), to = (from + 1) % redis_cluster::masters;
                        servers.move_slot(slot, from, to);
                        servers.move_slot(slot, to, from);
                        moves += 2;
                    }
                }
            })
        .check();
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
        held.push_back(run_coro(io, locks.acquire(servers.key_at(i), {.ttl = 2s, .renewal = renewal::automatic})));
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
    load.run(1s, [] {}).check();
}

BOOST_AUTO_TEST_CASE(master_with_too_many_clients_does_not_affect_the_others)
{
    auto& servers = cleared_cluster();
    const auto key = servers.key_at(0), other = servers.key_at(1);
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

} // namespace colock::testing
