// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "memory/store.hpp"
#include "support/driver.hpp"
#include "support/jump.hpp"
#include "support/notes.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>
#include <colock/memory/adapter.hpp>

#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

struct sweep_fixture : memory_fixture
{
    sweep_fixture() : memory_fixture({.sweep_interval = 5min, .sweep_batch = 10}) {}
    /// Runs an operation on an unrelated key.
    void touch() { env.abandon(driver::exclusive("other")); }
};

} // namespace

BOOST_AUTO_TEST_SUITE(memory_adapter_options)

BOOST_AUTO_TEST_CASE(out_of_range_values_are_refused)
{
    asio::io_context io;
    const auto detail_of = [&](memory::options settings) -> std::string {
        try {
            static_cast<void>(memory::make_adapter(io.get_executor(), settings));
        } catch (const validation_error& refused) {
            BOOST_TEST((refused.code() == errc::invalid_options));
            BOOST_TEST(refused.backend() == "memory");
            return refused.detail();
        }
        return "accepted";
    };
    BOOST_TEST(detail_of({.sweep_interval = 0ms}) == "sweep_interval is 0 ms: set more than 0");
    BOOST_TEST(detail_of({.sweep_interval = -5ms}) == "sweep_interval is -5 ms: set more than 0");
    BOOST_TEST(detail_of({.sweep_batch = 0}) == "sweep_batch is 0: set at least 1");
    BOOST_TEST(detail_of({.sweep_interval = 1ms, .sweep_batch = 1}) == "accepted");
    BOOST_TEST(detail_of({.sweep_interval = std::chrono::milliseconds::max()}) == "accepted");
}

BOOST_AUTO_TEST_CASE(every_operation_ends_in_the_call_that_starts_it)
{
    asio::io_context io;
    const auto backend = memory::make_adapter(io.get_executor());
    BOOST_TEST(backend->traits().capabilities.immediate);
    const claim_ptr first = driver::exclusive("k");
    const claim_ptr second = driver::exclusive("k");
    int ended = 0;
    backend->start_create(first, [&](create_outcome) { ++ended; });
    backend->start_extend(first, 1s, [&](extend_outcome) { ++ended; });
    backend->start_is_valid(first, [&](valid_outcome) { ++ended; });
    backend->start_hand_over(first, second, [&](hand_over_outcome) { ++ended; });
    backend->start_release(second, release_guarantee::released, [&](release_outcome) { ++ended; });
    backend->start_release(second, release_guarantee::settled, [&](release_outcome) { ++ended; });
    backend->start_listing({.filter = {.key = "k"}}, [&](list_outcome) { ++ended; });
    backend->start_listing(
        {.action = listing_action::break_key, .filter = {.key = "k"}}, [&](list_outcome) { ++ended; });
    backend->start_listing({}, [&](list_outcome) { ++ended; });
    backend->start_listing({.action = listing_action::purge}, [&](list_outcome) { ++ended; });
    backend->start_close(1s, [&](close_outcome) { ++ended; });
    BOOST_TEST(ended == 11);
    BOOST_TEST(io.poll() == 0U);
}

BOOST_AUTO_TEST_CASE(adapter_works_after_its_context_is_destroyed)
{
    auto io = std::make_unique<asio::io_context>();
    const auto backend = memory::make_adapter(io->get_executor());
    io.reset();
    const claim_ptr claim = driver::exclusive("k");
    std::optional<create_status> created;
    std::optional<release_status> released;
    backend->start_create(claim, [&](create_outcome outcome) { created = outcome.status; });
    backend->start_release(
        claim, release_guarantee::released, [&](release_outcome outcome) { released = outcome.status; });
    BOOST_TEST((created == create_status::granted));
    BOOST_TEST((released == release_status::released));
}

BOOST_AUTO_TEST_CASE(observer_of_every_locker_receives_ready)
{
    asio::io_context io;
    const auto backend = memory::make_adapter(io.get_executor());
    const auto first = std::make_shared<notes>();
    const auto second = std::make_shared<notes>();
    const locker one(backend, {.observer = first});
    BOOST_TEST(first->readies == 1);
    const locker another(backend, {.observer = second});
    const locker same(backend, {.observer = first});
    BOOST_TEST(second->readies == 1);
    BOOST_TEST(first->readies == 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(memory_adapter_sweep, sweep_fixture)

BOOST_AUTO_TEST_CASE(no_sweep_before_its_time)
{
    const auto stale = make_stale(3);
    touch();
    BOOST_TEST(destroyed_count(stale) == 0);
    virtual_clock::skip(5min - 3 * ttl);
    touch();
    BOOST_TEST(destroyed_count(stale) == 0);
    virtual_clock::skip(ttl);
    touch();
    BOOST_TEST(destroyed_count(stale) == 3);
}

BOOST_AUTO_TEST_CASE(a_sweep_is_due_again_after_the_interval)
{
    virtual_clock::skip(5min);
    touch();
    auto stale = make_stale(3);
    touch();
    BOOST_TEST(destroyed_count(stale) == 0);
    virtual_clock::skip(5min);
    touch();
    BOOST_TEST(destroyed_count(stale) == 3);
}

BOOST_AUTO_TEST_CASE(each_operation_removes_one_batch)
{
    const auto stale = make_stale(25);
    virtual_clock::skip(5min);
    touch();
    BOOST_TEST(destroyed_count(stale) == 10);
    touch();
    BOOST_TEST(destroyed_count(stale) == 20);
    touch();
    BOOST_TEST(destroyed_count(stale) == 25);
}

BOOST_AUTO_TEST_CASE(sweep_keeps_live_locks_and_locks_without_ttl)
{
    const auto live = driver::exclusive("live", 1h), eternal = driver::exclusive("eternal", 0ms);
    env.grant(live);
    env.grant(eternal);
    const auto stale = make_stale(3);
    virtual_clock::skip(5min);
    touch();
    BOOST_TEST(destroyed_count(stale) == 3);
    env.check_held(live);
    env.check_held(eternal);
    BOOST_TEST(live->losses.empty());
    env.release_held(live);
    env.release_held(eternal);
}

BOOST_AUTO_TEST_CASE(a_sweep_reaches_every_key_of_many)
{
    // More keys than one operation examines, so that the table grows between two operations of the sweep.
    std::vector<claim_ptr> live;
    const auto add_live = [&](int count) {
        for (int i = 0; i < count; ++i) {
            live.push_back(driver::exclusive("live:" + std::to_string(live.size()), 24h));
            env.backend().start_create(live.back(), [](create_outcome) {});
        }
    };
    add_live(5000);
    const auto stale = make_stale(25);
    virtual_clock::skip(5min);
    for (int i = 0; i < 30; ++i) {
        touch();
        add_live(500);
    }
    BOOST_TEST(destroyed_count(stale) == 25);
    BOOST_TEST(env.list().size() == live.size());
}

BOOST_AUTO_TEST_CASE(sweep_grants_the_lock_to_the_next_waiter)
{
    const auto holder = driver::exclusive("k", ttl), next = driver::exclusive("k");
    env.grant(holder);
    env.check_refused(next);
    const auto next_woken = start_wait(next);
    virtual_clock::skip(5min);
    touch();
    BOOST_TEST(*next_woken);
    env.check_held(next);
    env.release_held(next);
}

BOOST_AUTO_TEST_CASE(key_of_the_operation_is_always_swept)
{
    auto stale = driver::exclusive("k", ttl);
    const auto next = driver::exclusive("k");
    const auto watch = driver::watch(stale);
    env.grant(stale);
    virtual_clock::skip(2 * ttl);
    env.grant(next);
    // The claim is not notified, because the holder detects the expiry by its own deadline.
    BOOST_TEST(stale->losses.empty());
    stale.reset();
    BOOST_TEST(watch.expired());
    env.release_held(next);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(memory_store, virtual_clock)

BOOST_AUTO_TEST_CASE(key_without_a_holder_is_not_stored)
{
    const auto locks = std::make_shared<memory::store>(memory::options{});
    const auto create = [&](const claim_ptr& claim) {
        claim->set_operation_start(lease_clock::now());
        return locks->create(claim).status;
    };
    const auto release = [&](claim& claim) {
        claim.set_operation_start(lease_clock::now());
        return locks->release(claim);
    };
    const auto holder = driver::exclusive("k", ttl), next = driver::exclusive("k");
    auto last = driver::exclusive("k");

    BOOST_TEST(create(holder) == create_status::granted);
    BOOST_TEST(locks->key_count() == 1U);
    BOOST_TEST(release(*holder) == release_status::released);
    BOOST_TEST(locks->key_count() == 0U);
    BOOST_TEST(release(*holder) == release_status::not_held);
    BOOST_TEST(locks->key_count() == 0U);

    create(holder);
    BOOST_TEST(create(next) == create_status::busy);
    BOOST_TEST(create(last) == create_status::busy);
    release(*holder);
    release(*next);
    BOOST_TEST(locks->key_count() == 1U);
    last.reset();
    BOOST_TEST(locks->key_count() == 0U);

    create(holder);
    BOOST_TEST(locks->listing({.action = listing_action::break_key, .filter = {.key = "k"}}).locks.size() == 1U);
    BOOST_TEST(locks->key_count() == 0U);
    create(holder);
    virtual_clock::skip(2 * ttl);
    BOOST_TEST(locks->listing({.action = listing_action::purge}).locks.size() == 1U);
    BOOST_TEST(locks->key_count() == 0U);
    create(holder);
    virtual_clock::skip(2 * ttl);
    holder->set_operation_start(lease_clock::now());
    BOOST_TEST((locks->extend(*holder, ttl) == extend_status::not_held));
    BOOST_TEST(locks->key_count() == 0U);
    create(holder);
    virtual_clock::skip(10min);
    release(*driver::exclusive("other"));
    BOOST_TEST(locks->key_count() == 0U);
}

BOOST_AUTO_TEST_CASE(many_keys_come_and_go)
{
    const auto locks = std::make_shared<memory::store>(memory::options{});
    std::vector<claim_ptr> claims;
    for (int i = 0; i < 20'000; ++i)
        claims.push_back(driver::exclusive("key:" + std::to_string(i)));
    for (const auto& claim : claims)
        BOOST_REQUIRE(locks->create(claim).status == create_status::granted);
    BOOST_TEST(locks->key_count() == claims.size());
    for (const auto& claim : claims)
        BOOST_REQUIRE(locks->release(*claim) == release_status::released);
    BOOST_TEST(locks->key_count() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
