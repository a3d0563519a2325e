// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/asio/cancel_after.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/test/unit_test.hpp>

#include <set>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// A slow proxy, and so many concurrent operations that a reply to the wrong operation is noticed.
class concurrent_operations
{
public:
    explicit concurrent_operations(std::size_t members)
        // A long interval, because silence is not tested here and a loaded machine may be silent for a while.
        : size(members), between(server.port()),
          client({.url = between.url(), .operation_timeout = 30s, .health_interval = 3s}), direct({.url = server.url()})
    {
        const auto warm = driver::exclusive("warm");
        client.test_driver.grant(warm);
        client.test_driver.release_held(warm);
        for (std::size_t i = 0; i < size; ++i) {
            owner_data holder;
            holder.owner = "holder-" + std::to_string(i);
            theirs.emplace_back(new plain_claim({.key = "theirs-" + std::to_string(i),
                .ttl = driver::long_ttl,
                .owner = std::make_shared<const owner_data>(std::move(holder))}));
            direct.test_driver.grant(theirs.back());
        }
    }

    void run()
    {
        std::vector<running<void>> all;
        all.reserve(size);
        for (std::size_t i = 0; i < size; ++i)
            all.push_back(start(client.io, one(i)));
        for (auto& each : all)
            each.get(client.io, std::source_location::current(), {.time = 120s});
        BOOST_TEST(fences.size() == 2 * size);
        BOOST_TEST(client.events->suspensions == 0);
        BOOST_TEST(client.test_driver.backend().reconnects() == 0u);
        BOOST_TEST(server({"EVAL", "return #redis.call('KEYS', '{colock}:ours-*')", "0"}) == "0");
    }

    const std::size_t size;
    redis_server server;
    redis_toxiproxy between;
    client_side client;
    client_side direct;

private:
    asio::awaitable<void> one(std::size_t i)
    {
        auto& backend = client.test_driver.backend();
        const auto number = std::to_string(i);
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            const plain_claim_ptr claim =
                new plain_claim({.key = "ours-" + number, .mode = mode, .ttl = driver::long_ttl});
            claim->set_operation_start(lease_clock::now());
            const auto created = co_await backend.create(claim);
            BOOST_TEST(created.status == create_status::granted);
            BOOST_TEST(fences.insert(created.fence).second);
            const auto name = "{colock}:ours-" + number;
            const auto stored = mode == lock_mode::shared ? server({"ZRANGE", name, "0", "-1"}) : server({"GET", name});
            BOOST_TEST(stored.find(claim->token().hex()) != std::string::npos);

            const plain_claim_ptr rival = new plain_claim({.key = "theirs-" + number, .mode = mode});
            const auto refused = co_await backend.create(sent_now(rival));
            BOOST_TEST(refused.status == create_status::busy,
                (refused.error ? refused.error->detail : std::string("granted")));
            BOOST_TEST(refused.holder == "holder-" + number);

            const auto held = co_await backend.listing({.filter = {.key = "theirs-" + number}});
            BOOST_TEST_REQUIRE(held.locks.size() == 1u);
            BOOST_TEST(held.locks[0].key == "theirs-" + number);
            BOOST_TEST(held.locks[0].owner == "holder-" + number);

            BOOST_TEST(((co_await backend.extend(claim, 1min)).status == extend_status::extended));
            BOOST_TEST((co_await backend.is_valid(claim)).valid);
            BOOST_TEST(
                ((co_await backend.release(claim, release_guarantee::released)).status == release_status::released));
            BOOST_TEST(!(co_await backend.is_valid(claim)).valid);
        }
    }

    std::vector<plain_claim_ptr> theirs;
    std::set<std::uint64_t> fences;
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_slow_links)

BOOST_AUTO_TEST_CASE(replies_with_alternating_delays_are_assigned_correctly)
{
    concurrent_operations f(40);
    f.between.add("up", "latency", "upstream", R"({"latency":20,"jitter":20})");
    f.between.add("down", "latency", "downstream", R"({"latency":20,"jitter":20})");
    f.run();
}

BOOST_AUTO_TEST_CASE(replies_that_arrive_byte_by_byte)
{
    concurrent_operations f(10);
    f.between.add("down", "slicer", "downstream", R"({"average_size":1,"size_variation":0,"delay":10})");
    f.run();
}

BOOST_AUTO_TEST_CASE(requests_that_arrive_in_pieces)
{
    concurrent_operations f(40);
    f.between.add("up", "slicer", "upstream", R"({"average_size":40,"size_variation":39,"delay":10})");
    f.run();
}

BOOST_AUTO_TEST_CASE(a_narrow_link)
{
    concurrent_operations f(20);
    f.between.add("up", "bandwidth", "upstream", R"({"rate":60})");
    f.between.add("down", "bandwidth", "downstream", R"({"rate":20})");
    f.run();
}

BOOST_AUTO_TEST_CASE(a_connection_is_made_over_a_slow_link)
{
    redis_server server;
    redis_toxiproxy between(server.port());
    between.add("down", "bandwidth", "downstream", R"({"rate":10})");
    between.add("late", "latency", "downstream", R"({"latency":200})");
    client_side client({.url = between.url(), .operation_timeout = 30s});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST(client.events->readies == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
