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

void check_holder_is_notified_first(remote_subject& on, const lasting_fault& fault, lock_mode mode)
{
    const auto ours = on.make_linked_locker(), theirs = on.make_direct_locker();
    auto held = on.run(ours.acquire("k", {.ttl = on.short_ttl(), .mode = mode}));
    bool notified = false, granted_before = false;
    auto reason_of_loss = on.start([](lock& of, bool& was_notified) -> asio::awaitable<lost_reason> {
        const auto reason = co_await of.lost();
        was_notified = true;
        co_return reason;
    }(held, notified));
    auto next =
        on.start([](locker by, acquire_options how, const bool& was_notified, bool& early) -> asio::awaitable<lock> {
            auto granted = co_await by.acquire("k", std::move(how));
            early = !was_notified;
            co_return granted;
        }(theirs, {.ttl = 1h}, notified, granted_before));
    fault.set(on.link(), true);
    auto second = on.get(std::move(next));
    BOOST_TEST(!granted_before);
    BOOST_TEST(!held.held());
    on.get(std::move(reason_of_loss));
    fault.set(on.link(), false);
    on.until([&] { return ours.stats().settling == 0; });
    // The first locker has cleaned up only its own lock.
    BOOST_TEST(on.run(second.is_locked()));
    on.run(second.release(on_failure::raise));
}

} // namespace

COLOCK_REMOTE_CASE(holder_behind_a_dead_link_is_notified_before_another_grant)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            check_holder_is_notified_first(on, fault, lock_mode::exclusive);
        }
    }
}

COLOCK_REMOTE_CASE(reader_behind_a_dead_link_is_notified_before_a_writer_is_granted, &capabilities::shared)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            check_holder_is_notified_first(on, fault, lock_mode::shared);
        }
    }
}

COLOCK_REMOTE_CASE(a_body_behind_a_dead_link_has_ended_before_another_is_granted)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto ours = on.make_short_timeout_locker(), theirs = on.make_direct_locker();
            bool inside = false;
            auto body = on.start(ours.with_lock("k", {.ttl = on.short_ttl()}, endless(inside)));
            on.until([&] { return inside && ours.stats().renewals > 0; });
            bool together = false;
            auto next = on.start([](locker by, const bool& occupied, bool& both) -> asio::awaitable<lock> {
                auto granted = co_await by.acquire("k");
                both = occupied;
                co_return granted;
            }(theirs, inside, together));
            fault.set(on.link(), true);
            auto second = on.get(std::move(next));
            BOOST_TEST(!together);
            BOOST_CHECK_THROW(on.get(std::move(body)), lost_error);
            on.run(second.release(on_failure::raise));
            fault.set(on.link(), false);
            on.until([&] { return ours.stats().settling == 0; });
        }
    }
}

COLOCK_REMOTE_CASE(a_body_that_loses_its_server_is_ended_and_counted)
{
    for (const auto& fault : all_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto recorder = std::make_shared<event_recorder>();
            const auto locks = on.make_short_timeout_locker({.observer = recorder});
            bool inside = false;
            auto body = on.start(locks.with_lock("k", {.ttl = on.short_ttl()}, endless(inside)));
            on.until([&] { return inside; });
            fault.set(on.link(), true);
            BOOST_CHECK_THROW(on.get(std::move(body)), lost_error);
            BOOST_TEST(!inside);
            BOOST_TEST(recorder->losses.size() == 1U);
            std::uint64_t losses = 0;
            for (const auto each : locks.stats().losses)
                losses += each;
            BOOST_TEST(losses == 1U);
            fault.set(on.link(), false);
            on.until([&] { return locks.stats().settling == 0 && on.link().stored().empty(); });
        }
    }
}

COLOCK_REMOTE_CASE(a_short_fault_of_the_link_loses_no_lock)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto ours = on.make_linked_locker(), theirs = on.make_direct_locker();
            auto held = on.run(ours.acquire("k", {.ttl = 1h}));
            auto next = on.start(ours.acquire("k", {.ttl = 1h}));
            auto other = on.start(theirs.acquire("k", {.ttl = 1h}));
            on.until([&] { return theirs.stats().waiting == 1; });
            fault.set(on.link(), true);
            auto extending = on.start(held.extend(1h));
            on.pass_time(on.short_ttl() / 2);
            fault.set(on.link(), false);
            try {
                on.get(std::move(extending));
            } catch (const extend_error& failed) {
                // The outcome is unknown, but the holder still holds the lock.
                BOOST_TEST(
                    (failed.code() == errc::outcome_unknown || failed.code() == errc::unavailable), failed.what());
            }
            BOOST_TEST(held.held());
            on.until([&] {
                auto asking = on.start(held.is_locked());
                on.until([&] { return asking.done(); });
                try {
                    return asking.get(on.io());
                } catch (const error&) {
                    return false;
                }
            });
            BOOST_TEST(!next.done());
            BOOST_TEST(!other.done());
            on.run(held.release());
            on.until([&] { return next.done() || other.done(); });
            auto* const first = next.done() ? &next : &other;
            auto* const second = first == &next ? &other : &next;
            on.run(first->get(on.io()).release());
            on.run(on.get(std::move(*second)).release());
            on.until([&] { return ours.stats().settling + theirs.stats().settling == 0; });
        }
    }
}

COLOCK_REMOTE_CASE(a_release_behind_a_silent_link_ends_in_time)
{
    for (const bool has_waiter : {false, true}) {
        BOOST_TEST_CONTEXT("a local waiter: " << has_waiter)
        {
            const auto locks = on.make_short_operation_timeout_locker();
            auto held = on.run(locks.acquire("k", {.ttl = 1h}));
            std::vector<running<lock>> next;
            if (has_waiter) {
                next.push_back(on.start(locks.acquire("k", {.ttl = 1h})));
                on.until([&] { return locks.stats().waiting == 1; });
            }
            on.link().silence(true);
            const auto begin = lease_clock::now();
            on.run(held.release());
            BOOST_TEST((lease_clock::now() - begin < on.short_timeout() * 8));
            BOOST_TEST(!held.held());
            on.link().silence(false);
            for (auto& each : next)
                on.run(on.get(std::move(each)).release());
            on.until([&] { return locks.stats().settling == 0; });
            BOOST_TEST(locks.stats().unproven == 0U);
            on.check_stored(0);
        }
    }
}

COLOCK_REMOTE_CASE(grants_and_releases_balance_despite_many_cuts)
{
    const auto ours = on.make_linked_locker(), theirs = on.make_direct_locker();
    constexpr int workers = 8, rounds = 20;
    std::array<int, 3> inside{};
    const auto work = [&](const locker& through, int worker) -> asio::awaitable<void> {
        for (int round = 0; round < rounds; ++round) {
            const auto key = static_cast<std::size_t>(worker + round) % inside.size();
            auto held = co_await through.acquire(std::to_string(key), {.ttl = 1h});
            BOOST_TEST(++inside[key] == 1);
            co_await sleep_for(on.short_ttl() / 300);
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
            if (on.able().semaphore) {
                const acquire_options one_of_three{.ttl = 1h, .mode = lock_mode::shared, .max_holders = 3};
                auto reader = co_await through.acquire("r", one_of_three);
                co_await sleep_for(on.short_ttl() / 300);
                co_await reader.release();
            }
        }
    };
    std::vector<running<void>> all;
    for (int worker = 0; worker < workers; ++worker)
        all.push_back(on.start(work(worker % 4 == 0 ? theirs : ours, worker)));
    const auto done = [&] { return std::ranges::all_of(all, [](const auto& each) { return each.done(); }); };
    for (int cuts = 0; cuts < 24 && !done(); ++cuts) {
        const int before = on.link().cuts();
        on.link().cut(cuts % 3 == 0 ? lost_part::request : lost_part::reply);
        on.until([&] { return done() || on.link().cuts() > before; });
    }
    for (auto& each : all)
        on.get(std::move(each));
    BOOST_TEST(on.link().cuts() >= 6);
    on.until([&] { return ours.stats().settling + theirs.stats().settling == 0; });
    const auto grants = ours.stats().grants + theirs.stats().grants;
    BOOST_TEST(grants == static_cast<std::uint64_t>(workers * rounds * (on.able().semaphore ? 2 : 1)));
    for (const auto* each : {&ours, &theirs}) {
        const auto counted = each->stats();
        BOOST_TEST(counted.held + counted.waiting == 0U);
        BOOST_TEST(counted.unproven == 0U);
        BOOST_TEST(counted.grants == counted.releases + counted.settled);
    }
    on.check_stored(0);
}

} // namespace colock::contract
