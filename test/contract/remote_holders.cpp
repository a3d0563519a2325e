// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace colock::contract {

// Holders of locks behind a link that fails, or on a server that fails. A server ends the locks of a silent client by
// itself, by their TTL or with the session.

namespace {

asio::awaitable<void> sleep_for(lease_clock::duration span)
{
    lease_timer passed(co_await asio::this_coro::executor, span);
    co_await passed.async_wait(asio::use_awaitable);
}

/// Returns a body that ends only when its locker cancels it. `inside` says whether it runs.
auto endless(bool& inside)
{
    return [&inside](lock&) -> asio::awaitable<void> {
        inside = true;
        struct leave_guard
        {
            bool& flag;
            ~leave_guard() { flag = false; }
        } const guard{inside};
        co_await sleep_for(1h);
    };
}

void check_holder_is_notified_first(remote_fixture& env, const lasting_fault& fault, lock_mode mode)
{
    const auto ours = env.make_linked_locker(), theirs = env.make_direct_locker();
    auto held = env.run(ours.acquire("k", {.ttl = env.short_ttl(), .mode = mode}));
    bool notified = false, granted_before = false;
    auto reason_of_loss = env.start([](lock& of, bool& was_notified) -> asio::awaitable<lost_reason> {
        const auto reason = co_await of.lost();
        was_notified = true;
        co_return reason;
    }(held, notified));
    auto next =
        env.start([](locker by, acquire_options how, const bool& was_notified, bool& early) -> asio::awaitable<lock> {
            auto granted = co_await by.acquire("k", std::move(how));
            early = !was_notified;
            co_return granted;
        }(theirs, {.ttl = 1h}, notified, granted_before));
    fault.set(env.link(), true);
    auto second = env.get(std::move(next));
    BOOST_TEST(!granted_before);
    BOOST_TEST(!held.held());
    env.get(std::move(reason_of_loss));
    fault.set(env.link(), false);
    env.until([&] { return ours.stats().settling == 0; });
    // The first locker has cleaned up only its own lock.
    BOOST_TEST(env.run(second.is_locked()));
    env.run(second.release(on_failure::raise));
}

} // namespace

COLOCK_REMOTE_CASE(holder_behind_a_dead_link_is_notified_before_another_grant)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            check_holder_is_notified_first(env, fault, lock_mode::exclusive);
        }
    }
}

COLOCK_REMOTE_CASE(reader_behind_a_dead_link_is_notified_before_a_writer_is_granted, &capabilities::shared)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            check_holder_is_notified_first(env, fault, lock_mode::shared);
        }
    }
}

COLOCK_REMOTE_CASE(a_body_behind_a_dead_link_has_ended_before_another_is_granted)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto ours = env.make_short_timeout_locker(), theirs = env.make_direct_locker();
            bool inside = false;
            auto body = env.start(ours.with_lock("k", {.ttl = env.short_ttl()}, endless(inside)));
            env.until([&] { return inside && ours.stats().renewals > 0; });
            bool together = false;
            auto next = env.start([](locker by, const bool& occupied, bool& both) -> asio::awaitable<lock> {
                auto granted = co_await by.acquire("k");
                both = occupied;
                co_return granted;
            }(theirs, inside, together));
            fault.set(env.link(), true);
            auto second = env.get(std::move(next));
            BOOST_TEST(!together);
            BOOST_CHECK_THROW(env.get(std::move(body)), lost_error);
            env.run(second.release(on_failure::raise));
            fault.set(env.link(), false);
            env.until([&] { return ours.stats().settling == 0; });
        }
    }
}

COLOCK_REMOTE_CASE(a_body_that_loses_its_server_is_ended_and_counted)
{
    for (const auto& fault : all_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto recorder = std::make_shared<event_recorder>();
            const auto locks = env.make_short_timeout_locker({.observer = recorder});
            bool inside = false;
            auto body = env.start(locks.with_lock("k", {.ttl = env.short_ttl()}, endless(inside)));
            env.until([&] { return inside; });
            fault.set(env.link(), true);
            BOOST_CHECK_THROW(env.get(std::move(body)), lost_error);
            BOOST_TEST(!inside);
            BOOST_TEST(recorder->losses.size() == 1U);
            std::uint64_t losses = 0;
            for (const auto each : locks.stats().losses)
                losses += each;
            BOOST_TEST(losses == 1U);
            fault.set(env.link(), false);
            env.until([&] { return locks.stats().settling == 0 && env.link().stored().empty(); });
        }
    }
}

COLOCK_REMOTE_CASE(a_short_fault_of_the_link_loses_no_lock)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto ours = env.make_linked_locker(), theirs = env.make_direct_locker();
            auto held = env.run(ours.acquire("k", {.ttl = 1h}));
            auto next = env.start(ours.acquire("k", {.ttl = 1h}));
            auto other = env.start(theirs.acquire("k", {.ttl = 1h}));
            env.until([&] { return theirs.stats().waiting == 1; });
            fault.set(env.link(), true);
            auto extending = env.start(held.extend(1h));
            env.pass_time(env.short_ttl() / 2);
            fault.set(env.link(), false);
            try {
                env.get(std::move(extending));
            } catch (const extend_error& failed) {
                // The outcome is unknown, but the holder still holds the lock.
                BOOST_TEST(
                    (failed.code() == errc::outcome_unknown || failed.code() == errc::unavailable), failed.what());
            }
            BOOST_TEST(held.held());
            env.until([&] {
                auto asking = env.start(held.is_locked());
                env.until([&] { return asking.done(); });
                try {
                    return asking.get(env.io());
                } catch (const error&) {
                    return false;
                }
            });
            BOOST_TEST(!next.done());
            BOOST_TEST(!other.done());
            env.run(held.release());
            env.until([&] { return next.done() || other.done(); });
            auto* const first = next.done() ? &next : &other;
            auto* const second = first == &next ? &other : &next;
            env.run(first->get(env.io()).release());
            env.run(env.get(std::move(*second)).release());
            env.until([&] { return ours.stats().settling + theirs.stats().settling == 0; });
        }
    }
}

COLOCK_REMOTE_CASE(a_release_behind_a_silent_link_ends_in_time)
{
    for (const bool has_waiter : {false, true}) {
        BOOST_TEST_CONTEXT("a local waiter: " << has_waiter)
        {
            const auto locks = env.make_locker_that_times_out_first();
            auto held = env.run(locks.acquire("k", {.ttl = 1h}));
            std::vector<running<lock>> next;
            if (has_waiter) {
                next.push_back(env.start(locks.acquire("k", {.ttl = 1h})));
                env.until([&] { return locks.stats().waiting == 1; });
            }
            env.link().silence(true);
            const auto begin = lease_clock::now();
            env.run(held.release());
            BOOST_TEST((lease_clock::now() - begin < env.short_timeout() * 8));
            BOOST_TEST(!held.held());
            env.link().silence(false);
            for (auto& each : next)
                env.run(env.get(std::move(each)).release());
            env.until([&] { return locks.stats().settling == 0; });
            BOOST_TEST(locks.stats().unproven == 0U);
            env.check_stored(0);
        }
    }
}

COLOCK_REMOTE_CASE(grants_and_releases_balance_despite_many_cuts)
{
    const auto ours = env.make_linked_locker(), theirs = env.make_direct_locker();
    constexpr int workers = 8, rounds = 20;
    std::array<int, 3> inside{};
    const auto work = [&](const locker& through, int worker) -> asio::awaitable<void> {
        for (int round = 0; round < rounds; ++round) {
            const auto key = static_cast<std::size_t>(worker + round) % inside.size();
            auto held = co_await through.acquire(std::to_string(key), {.ttl = 1h});
            BOOST_TEST(++inside[key] == 1);
            co_await sleep_for(env.short_ttl() / 300);
            if (round % 3 == 0) {
                try {
                    co_await held.extend(1h);
                } catch (const extend_error& failed) {
                    BOOST_TEST((failed.code() == errc::outcome_unknown), failed.what());
                }
            }
            BOOST_TEST(held.held());
            --inside[key];
            co_await held.release();
            if (env.capabilities().semaphore) {
                const acquire_options one_of_three{.ttl = 1h, .mode = lock_mode::shared, .max_holders = 3};
                auto reader = co_await through.acquire("r", one_of_three);
                co_await sleep_for(env.short_ttl() / 300);
                co_await reader.release();
            }
        }
    };
    std::vector<running<void>> all;
    for (int worker = 0; worker < workers; ++worker)
        all.push_back(env.start(work(worker % 4 == 0 ? theirs : ours, worker)));
    const auto done = [&] { return std::ranges::all_of(all, [](const auto& each) { return each.done(); }); };
    for (int cuts = 0; cuts < 24 && !done(); ++cuts) {
        const int before = env.link().cuts();
        env.link().cut(cuts % 3 == 0 ? lost_part::request : lost_part::reply);
        env.until([&] { return done() || env.link().cuts() > before; });
    }
    for (auto& each : all)
        env.get(std::move(each));
    BOOST_TEST(env.link().cuts() >= 6);
    env.until([&] { return ours.stats().settling + theirs.stats().settling == 0; });
    const auto grants = ours.stats().grants + theirs.stats().grants;
    BOOST_TEST(grants == static_cast<std::uint64_t>(workers * rounds * (env.capabilities().semaphore ? 2 : 1)));
    for (const auto* each : {&ours, &theirs}) {
        const auto counted = each->stats();
        BOOST_TEST(counted.held + counted.waiting == 0U);
        BOOST_TEST(counted.unproven == 0U);
        BOOST_TEST(counted.grants == counted.releases);
    }
    env.check_stored(0);
}

} // namespace colock::contract
