// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

// Tests of the shutdown of a locker and of a context, while the server can be reached and while it cannot.

namespace {

/// Two lockers of two processes. One holds a lock, and both have a waiter.
struct waiting_pair
{
    explicit waiting_pair(remote_fixture& of)
        : env(of), ours(env.make_linked_locker()), theirs(env.make_linked_locker())
    {
        // The first use takes longer than later ones, and must not use up the ttl.
        for (const auto* each : {&*ours, &*theirs})
            env.run(env.run(each->acquire("warm")).release(on_failure::raise));
        held = env.run(ours->acquire("k", {.ttl = env.short_ttl() * 3}));
        far.emplace(env.start(theirs->acquire("k")));
        env.until([&] { return theirs->stats().waiting == 1; });
        near.emplace(env.start(ours->acquire("k")));
        env.until([&] { return ours->stats().waiting == 1; });
    }

    /// Shuts both down, and checks that they end in time.
    shutdown_report shut_down(std::chrono::milliseconds deadline)
    {
        const auto begin = lease_clock::now();
        const auto theirs_left = env.run(theirs->shutdown(deadline));
        auto ours_left = env.run(ours->shutdown(deadline));
        BOOST_TEST((lease_clock::now() - begin < deadline * 2 + env.short_ttl() * 4));
        BOOST_CHECK_THROW(static_cast<void>(env.get(std::move(*far))), create_error);
        BOOST_CHECK_THROW(static_cast<void>(env.get(std::move(*near))), create_error);
        BOOST_TEST(!held.held());
        return ours_left;
    }

    remote_fixture& env;
    std::optional<locker> ours;
    std::optional<locker> theirs;
    lock held;
    std::optional<running<lock>> far;
    std::optional<running<lock>> near;
};

} // namespace

COLOCK_REMOTE_CASE(a_shutdown_leaves_nothing_to_wait_for)
{
    waiting_pair pair(env);
    BOOST_TEST(pair.shut_down(env.long_timeout()).clean());
    // Nothing is left, not even a connection or a channel that another caller might use.
    BOOST_TEST(env.out_of_work());
    env.check_stored(0);
}

COLOCK_REMOTE_CASE(shutdown_with_an_unreachable_server_ends_within_its_deadline_and_reports)
{
    for (const auto& fault : all_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            waiting_pair pair(env);
            fault.set(env.link(), true);
            const auto report = pair.shut_down(env.short_ttl() / 5);
            BOOST_TEST(!report.clean());
            BOOST_TEST(std::ranges::count(report.unsettled, "k") > 0);
            env.until([&] { return env.out_of_work(); });
            fault.set(env.link(), false);
            // The lock would also end by itself, but later.
            if (env.capabilities().list) {
                env.direct_driver().break_key("k");
                env.run(env.direct_driver().backend().close(env.long_timeout()));
            }
            env.until([&] { return env.link().stored().empty(); });
        }
    }
}

COLOCK_REMOTE_CASE(connections_close_when_the_last_body_of_a_shut_down_locker_has_ended)
{
    const auto locks = env.make_linked_locker();
    asio::steady_timer end_of_body(env.io(), asio::steady_timer::time_point::max());
    auto body = env.start(locks.with_lock("k", {.ttl = env.short_ttl() * 10}, [&]() -> asio::awaitable<void> {
        // The body ignores its cancellation.
        co_await asio::this_coro::throw_if_cancelled(false);
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await end_of_body.async_wait(asio::as_tuple(asio::deferred));
    }));
    env.until([&] { return locks.stats().held == 1; });
    const auto report = env.run(locks.shutdown(env.short_ttl() / 5));
    BOOST_TEST(report.still_running == std::vector<std::string>{"k"}, boost::test_tools::per_element());
    end_of_body.cancel();
    BOOST_CHECK_THROW(env.get(std::move(body)), error);
    // The connection for the release is not kept, although its idle timeout is long.
    env.until([&] { return env.out_of_work(); });
    env.check_stored(0);
}

COLOCK_REMOTE_CASE(locker_made_during_a_shutdown_ends_the_close)
{
    const auto timeout = env.short_ttl() / 5;
    const locker first(env.shared_backend(), {.operation_timeout = timeout});
    env.run(env.run(first.acquire("k")).release(on_failure::raise));
    // A close that waits for this request waits for at most the operation timeout of the locker.
    env.link().silence(true);
    const auto claim = env.exclusive("k");
    auto created = env.start(env.backend().create(testing::sent_now(claim)));
    auto ends = env.start(first.shutdown(env.long_timeout()));
    env.pass_time(timeout / 10);
    const locker second(env.shared_backend());
    env.pass_time(timeout * 2);
    BOOST_TEST(!created.done());
    env.link().silence(false);
    // Some links lose a request during a silence.
    if (env.get(std::move(created)).status == create_status::failed)
        claim->mark_in_doubt();
    BOOST_TEST(env.get(std::move(ends)).clean());
    env.settle(claim);
    env.run(env.run(second.acquire("k")).release(on_failure::raise));
}

COLOCK_REMOTE_CASE(failed_acquire_leaves_no_work_in_the_context)
{
    for (const auto& fault : {refusal, death}) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            fault.set(env.link(), true);
            // An attempt may be in flight for much longer than its caller waits for it.
            const auto locks = env.make_linked_locker();
            const auto failed = env.failure_of(locks.acquire("k", {.retry = within(env.short_ttl() / 5)}));
            BOOST_TEST((failed.code() == errc::unavailable || failed.code() == errc::outcome_unknown), failed.what());
            const auto begin = lease_clock::now();
            env.until([&] { return env.out_of_work(); });
            BOOST_TEST((lease_clock::now() - begin < env.long_timeout() / 2));
            BOOST_TEST(locks.stats().settling == 0U);
            fault.set(env.link(), false);
            env.run(env.run(locks.acquire("k")).release(on_failure::raise));
        }
    }
}

COLOCK_REMOTE_CASE(adapter_closed_while_its_server_was_unreachable_connects_again)
{
    for (const auto& fault : all_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto test_driver = env.make_short_timeout_driver();
            fault.set(env.link(), true);
            std::vector<plain_claim_ptr> claims;
            const auto begin = [&] {
                const auto& claim = claims.emplace_back(env.exclusive("k" + std::to_string(claims.size())));
                return env.start(test_driver.backend().create(testing::sent_now(claim)));
            };
            auto waiting = begin();
            env.pass_time(env.short_ttl() / 20);
            env.run(test_driver.backend().close(1ms));
            fault.set(env.link(), false);
            // In each round an operation waits, so that the adapter has a reason to connect.
            bool granted = false;
            for (int i = 0; i < 20 && !granted; ++i) {
                env.pass_time(env.short_ttl() / 3);
                auto next = begin();
                granted = env.get(std::exchange(waiting, std::move(next))).status == create_status::granted;
            }
            BOOST_TEST(granted);
            static_cast<void>(env.get(std::move(waiting)));
            for (const auto& each : claims)
                env.until([&] {
                    return env.run(test_driver.backend().release(each, release_guarantee::settled)).status !=
                           release_status::failed;
                });
        }
    }
}

} // namespace colock::contract
