// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <utility>
#include <vector>

namespace colock::contract {

// Waiters behind a link that fails, or on a server that fails.

namespace {

/// An acquire that a test cancels.
struct cancelled_acquire
{
    cancelled_acquire(const locker& by, std::string key)
    {
        by.async_acquire(std::move(key), asio::bind_cancellation_slot(signal.slot(), [this](error_code ended, lock) {
            code = ended;
            over = true;
        }));
    }

    /// Checks that the acquire does not end by itself, but ends at once when it is cancelled.
    void check_cancellation(remote_fixture& env)
    {
        env.pass_time(env.short_ttl() / 10);
        BOOST_TEST(!over);
        signal.emit(asio::cancellation_type::terminal);
        testing::run_ready(env.io());
        BOOST_TEST(over);
        BOOST_TEST(code == asio::error::operation_aborted);
    }

    asio::cancellation_signal signal{};
    error_code code{};
    bool over = false;
};

/// Waits like the core does, but only the adapter can report a release.
asio::awaitable<void> wait_for(remote_fixture& env, plain_claim_ptr claim)
{
    for (;;) {
        const auto outcome = co_await env.backend().create(testing::sent_now(claim));
        if (outcome.status == create_status::granted)
            co_return;
        if (outcome.status == create_status::busy) {
            co_await env.backend().wait(claim, lease_clock::time_point::max());
            continue;
        }
        claim->mark_in_doubt();
        lease_timer pause(env.io(), env.short_ttl() / 50);
        co_await pause.async_wait(asio::deferred);
    }
}

/// Checks that the waiter is granted the lock, and releases it.
void check_granted(remote_fixture& env, running<lock>& waiting, std::string_view what)
{
    BOOST_TEST_CONTEXT(what)
    {
        auto held = env.get(std::move(waiting));
        BOOST_TEST(env.run(held.is_locked()));
        env.check_stored(1);
        env.run(held.release());
    }
}

} // namespace

COLOCK_REMOTE_CASE(waiter_is_granted_after_any_lost_request_or_reply)
{
    for (const auto what : lost_parts) {
        // Either the first request is lost, or a later one, which is sent after a busy answer.
        for (const bool later : {false, true}) {
            BOOST_TEST_CONTEXT("loses a " << what << ", later: " << later)
            {
                env.warm_up();
                const auto ours = env.make_linked_locker();
                env.run(env.run(ours.acquire("warm")).release(on_failure::raise));
                const auto holder = env.exclusive("k");
                env.direct_driver().grant(holder);
                if (!later)
                    env.link().cut(what);
                auto waiting = env.start(ours.acquire("k"));
                if (later) {
                    env.until([&] { return ours.stats().busy > 0; });
                    env.link().cut(what);
                }
                env.pass_time(env.short_ttl() / 10);
                BOOST_TEST(!waiting.done());
                env.direct_driver().release_held(holder);
                check_granted(env, waiting, "the waiter");
                env.until([&] { return ours.stats().settling == 0; });
            }
        }
    }
}

COLOCK_REMOTE_CASE(a_release_during_an_outage_is_not_missed, &capabilities::events)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto holder = env.exclusive("k"), claim = env.exclusive("k");
            env.direct_driver().grant(holder);
            auto waiting = env.start(wait_for(env, claim));
            env.pass_time(env.short_ttl() / 10);
            fault.set(env.link(), true);
            env.direct_driver().release_held(holder);
            env.pass_time(env.short_ttl() / 5);
            BOOST_TEST(!waiting.done());
            fault.set(env.link(), false);
            env.get(std::move(waiting));
            env.check_held(claim);
            env.settle(claim);
        }
    }
}

COLOCK_REMOTE_CASE(waiters_are_granted_after_the_server_has_returned)
{
    // With the default retry delays.
    const auto ours = env.make_linked_locker({}), theirs = env.make_direct_locker();
    auto held = env.run(ours.acquire("k", {.ttl = 1h}));
    int holders = 1, max_holders = 0;
    const auto pass = [&](const locker& by) -> asio::awaitable<void> {
        auto granted = co_await by.acquire("k", {.ttl = 1h});
        max_holders = std::max(max_holders, ++holders);
        co_await asio::post(asio::deferred);
        --holders;
        co_await granted.release();
    };
    std::vector<running<void>> waiting;
    for (const auto* by : {&ours, &theirs, &ours, &theirs})
        waiting.push_back(env.start(pass(*by)));
    env.until([&] { return ours.stats().waiting + theirs.stats().waiting == 4; });
    env.link().serve(false);
    --holders;
    env.run(held.release());
    env.pass_time(env.short_ttl() / 5);
    env.link().serve(true);
    for (auto& each : waiting)
        env.get(std::move(each));
    BOOST_TEST(max_holders == 1);
    env.until([&] { return ours.stats().settling + theirs.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(a_cancelled_acquire_behind_a_dead_link_ends_at_once_and_is_settled)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto locks = env.make_linked_locker();
            env.run(env.run(locks.acquire("warm")).release(on_failure::raise));
            fault.set(env.link(), true);
            cancelled_acquire acquire(locks, "k");
            acquire.check_cancellation(env);
            fault.set(env.link(), false);
            env.until([&] { return locks.stats().settling == 0; });
            BOOST_TEST(locks.stats().unproven == 0U);
            env.check_stored(0);
        }
    }
}

COLOCK_REMOTE_CASE(a_cancelled_wait_behind_a_dead_link_ends_at_once_and_leaves_the_queue)
{
    for (const auto& fault : link_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto locks = env.make_linked_locker();
            const auto holder = env.exclusive("k");
            env.direct_driver().grant(holder);
            cancelled_acquire acquire(locks, "k");
            env.until([&] { return locks.stats().busy > 0; });
            fault.set(env.link(), true);
            acquire.check_cancellation(env);
            fault.set(env.link(), false);
            env.until([&] { return locks.stats().settling == 0; });
            env.check_stored(1);
            env.direct_driver().release_held(holder);
        }
    }
}

} // namespace colock::contract
