// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_helpers.hpp"

#include <colock/clock.hpp>
#include <colock/election.hpp>

#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>

#include <optional>
#include <string>
#include <utility>

namespace colock::contract {

// Elections.

namespace {

/// Returns a body that works for a short time, or until it is cancelled, and checks that no other body works at the
/// same time.
auto work(fixture& env, int& leaders, int& terms)
{
    return [&env, &leaders, &terms](leadership& held) -> asio::awaitable<void> {
        BOOST_TEST(held.held());
        BOOST_TEST(leaders == 0);
        const struct guard
        {
            int& leaders;
            explicit guard(int& counted) : leaders(counted) { ++leaders; }
            ~guard() { --leaders; }
        } on_exit(leaders);
        ++terms;
        lease_timer timer(co_await asio::this_coro::executor, env.short_ttl() / 50);
        co_await timer.async_wait(asio::deferred);
    };
}

} // namespace

COLOCK_CONTRACT_CASE(locker, next_candidate_leads_after_a_resignation)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), election(mine, "k").campaign());
    BOOST_TEST(held.held());
    BOOST_TEST((held.term() > 0) == env.capabilities().fence);
    // Connects. Behind a candidate that waits for the first connection, a single attempt would be unavailable, not
    // busy.
    BOOST_TEST(!run_coro(env.io(), other.try_acquire("k")));
    auto waiting = testing::start(env.io(), election(other, "k").campaign());
    BOOST_TEST(!run_coro(env.io(), other.try_acquire("k")));
    const auto term = held.term();
    run_coro(env.io(), held.resign(on_failure::raise));
    pass_slowly_until(env, [&] { return waiting.done(); });
    auto next = waiting.get(env.io());
    BOOST_TEST((next.term() > term || !env.capabilities().fence));
    run_coro(env.io(), next.resign(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, candidates_of_two_processes_lead_one_at_a_time)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    int leaders = 0, my_terms = 0, other_terms = 0;
    auto my_end = testing::start(env.io(), election(mine, "k").lead(work(env, leaders, my_terms)));
    auto other_end = testing::start(env.io(), election(other, "k").lead(work(env, leaders, other_terms)));
    // Without a queue in the backend, one of the candidates may be elected again and again.
    pass_slowly_until(env, [&] { return my_terms + other_terms >= 3; });
    BOOST_TEST(run_coro(env.io(), mine.shutdown()).clean());
    BOOST_CHECK_NO_THROW(my_end.get(env.io()));
    const auto before = other_terms;
    pass_slowly_until(env, [&] { return other_terms > before; });
    BOOST_TEST(run_coro(env.io(), other.shutdown()).clean());
    BOOST_CHECK_NO_THROW(other_end.get(env.io()));
    BOOST_TEST(leaders == 0);
}

COLOCK_CONTRACT_CASE(locker, leader_is_named, &capabilities::lists_fence)
{
    const auto mine = env.make_locker({.owner = "me", .host = "here"}), other = env.make_other_locker();
    const election candidate(mine, "k", {.comment = "why"}), watched(other, "k");
    BOOST_TEST(!run_coro(env.io(), watched.leader()).has_value());
    if (env.capabilities().shared) {
        auto reader = run_coro(env.io(), mine.acquire("k", {.mode = lock_mode::shared}));
        BOOST_TEST(!run_coro(env.io(), watched.leader()).has_value());
        run_coro(env.io(), reader.release(on_failure::raise));
    }
    auto change = testing::start(env.io(), watched.next_leader(0));
    auto held = run_coro(env.io(), candidate.campaign());
    pass_slowly_until(env, [&] { return change.done(); });
    const leader expected{.owner = "me", .host = "here", .comment = "why", .term = held.term()};
    BOOST_TEST((change.get(env.io()) == expected));
    BOOST_TEST((run_coro(env.io(), watched.leader()) == expected));
    change = testing::start(env.io(), watched.next_leader(expected.term));
    run_coro(env.io(), held.resign(on_failure::raise));
    BOOST_TEST(!run_coro(env.io(), candidate.leader()).has_value());
    held = run_coro(env.io(), candidate.campaign());
    pass_slowly_until(env, [&] { return change.done(); });
    BOOST_TEST(change.get(env.io()).term == held.term());
    run_coro(env.io(), held.resign(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, leader_is_unsupported_without_fences_in_lists)
{
    if (env.capabilities().lists_fence)
        return;
    const election asked(env.make_locker(), "k");
    BOOST_TEST((failure_of<validation_error>(env, asked.leader()) == errc::unsupported));
    BOOST_TEST((failure_of<validation_error>(env, asked.next_leader(0)) == errc::unsupported));
}

} // namespace colock::contract
