// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_helpers.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

namespace {

asio::awaitable<void> sleep(std::chrono::milliseconds span)
{
    lease_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::use_awaitable);
}

} // namespace

// One lock.

COLOCK_CONTRACT_CASE(locker, a_lock_is_held_until_released)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k", {.ttl = 10min}));
    BOOST_TEST(lock.held());
    BOOST_TEST(lock.key() == "k");
    BOOST_TEST((lock.ttl() == 10min));
    BOOST_TEST(lock.mode() == lock_mode::exclusive);
    BOOST_TEST((lock.fence() > 0) == env.capabilities().fence);
    const auto left = lock.valid_for();
    // If the server does not expire locks, a lock may end earlier, with its session.
    BOOST_TEST((left > (env.capabilities().expires ? 9min : 0min) && left < 10min));
    BOOST_TEST(run_coro(env.io(), lock.is_locked()));
    BOOST_TEST(is_taken(env, locker, "k"));
    BOOST_TEST(!is_taken(env, locker, "kk"));

    run_coro(env.io(), lock.release(on_failure::raise));
    BOOST_TEST(!lock.held());
    BOOST_TEST(!run_coro(env.io(), lock.is_locked()));
    BOOST_TEST(!is_taken(env, locker, "k"));
    // A second release raises nothing.
    run_coro(env.io(), lock.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, the_destructor_releases)
{
    const auto locker = env.make_locker();
    {
        const auto lock = run_coro(env.io(), locker.acquire("k"));
        BOOST_TEST(lock.held());
    }
    // Waits for the release, if it is still in flight.
    auto next = run_coro(env.io(), locker.acquire("k"));
    run_coro(env.io(), next.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, try_acquire_never_waits)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.try_acquire("k"));
    BOOST_REQUIRE(lock);
    BOOST_TEST(!run_coro(env.io(), locker.try_acquire("k")));
    run_coro(env.io(), lock->release());
    lock = run_coro(env.io(), locker.try_acquire("k"));
    BOOST_TEST(lock.has_value());
}

COLOCK_CONTRACT_CASE(locker, lockers_exclude_each_other)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto lock = run_coro(env.io(), mine.acquire("k"));
    BOOST_TEST(!run_coro(env.io(), other.try_acquire("k")));
    BOOST_TEST(is_taken(env, other, "k"));
    auto waiting = testing::start(env.io(), other.acquire("k"));
    env.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    run_coro(env.io(), lock.release());
    auto others = waiting.get(env.io());
    BOOST_TEST(others.held());
    BOOST_TEST((others.fence() > lock.fence() || !env.capabilities().fence));
    BOOST_TEST(!run_coro(env.io(), mine.try_acquire("k")));
    run_coro(env.io(), others.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, waiters_of_a_locker_are_served_in_order)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k"));
    std::vector<int> order;
    std::vector<testing::running<void>> waiting;
    for (int i = 0; i < 5; ++i) {
        waiting.push_back(
            testing::start(env.io(), [](colock::locker by, int number, std::vector<int>& log) -> asio::awaitable<void> {
                auto held = co_await by.acquire("k");
                log.push_back(number);
                co_await held.release(on_failure::raise);
            }(locker, i, order)));
        env.pass_time(1ms);
    }
    BOOST_TEST(!run_coro(env.io(), locker.try_acquire("k")));
    run_coro(env.io(), lock.release());
    for (auto& each : waiting)
        each.get(env.io());
    const std::vector expected{0, 1, 2, 3, 4};
    BOOST_TEST(order == expected, boost::test_tools::per_element());
}

COLOCK_CONTRACT_CASE(locker, bad_input_is_refused)
{
    const auto locker = env.make_locker();
    const auto code_for = [&](std::string key, acquire_options options = {}) {
        return failure_of<validation_error>(env, locker.acquire(std::move(key), std::move(options)));
    };
    BOOST_TEST((code_for("") == errc::invalid_key));
    BOOST_TEST((code_for(std::string(513, 'k')) == errc::invalid_key));
    BOOST_TEST((code_for(std::string("a\0b", 3)) == errc::invalid_key));
    BOOST_TEST((code_for("k", {.ttl = -1ms}) == errc::invalid_ttl));
    BOOST_TEST((code_for("k", {.ttl = std::chrono::hours(24 * 3651)}) == errc::invalid_ttl));
    BOOST_TEST((code_for("k", {.ttl = std::chrono::milliseconds::max()}) == errc::invalid_ttl));
    BOOST_TEST((code_for("k", {.max_holders = 2}) == errc::invalid_options));
    BOOST_TEST((code_for("k", {.retry = retry_policy::fixed(-1s)}) == errc::invalid_retry));
    BOOST_TEST((code_for("k", {.comment = std::string(257, 'c')}) == errc::invalid_options));
    BOOST_TEST((failure_of<validation_error>(env, locker.acquire_all({})) == errc::invalid_options));
    BOOST_TEST((failure_of<validation_error>(env, locker.is_locked("")) == errc::invalid_key));
    BOOST_TEST((failure_of<validation_error>(env, locker.break_lock("")) == errc::invalid_key));
    BOOST_TEST(locker.stats().attempts == 0U);
}

COLOCK_CONTRACT_CASE(locker, the_longest_key_works)
{
    const auto locker = env.make_locker();
    const std::string key(512, 'k');
    auto lock = run_coro(env.io(), locker.acquire(key));
    BOOST_TEST(lock.key() == key);
    BOOST_TEST(!run_coro(env.io(), locker.try_acquire(key)));
    run_coro(env.io(), lock.release(on_failure::raise));
}

// Retry.

COLOCK_CONTRACT_CASE(locker, a_policy_that_ends_reports_it)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto lock = run_coro(env.io(), mine.acquire("k"));
    BOOST_TEST(
        (failure_of<retry_error>(env, other.acquire("k", {.retry = retry_policy::never()})) == errc::retry_exhausted));
    const auto limited = retry_policy::fixed(env.short_ttl() / 10).total_time(env.short_ttl() / 2);
    auto waiting = testing::start(env.io(), other.acquire("k", {.retry = limited}));
    pass_slowly_until(env, [&] { return waiting.done(); });
    try {
        static_cast<void>(waiting.get(env.io()));
        BOOST_ERROR("granted");
    } catch (const retry_error& exhausted) {
        BOOST_TEST((exhausted.code() == errc::retry_exhausted));
        BOOST_TEST(exhausted.key() == "k");
        BOOST_TEST(exhausted.attempts() > 0U);
        BOOST_TEST((exhausted.elapsed() >= env.short_ttl() / 2));
        BOOST_TEST((exhausted.elapsed() < env.short_ttl() * 10));
        // A backend may leave the holder and its expiry unknown, but must not report wrong ones.
        BOOST_TEST((exhausted.holder().empty() || exhausted.holder() == mine.defaults().owner));
        BOOST_TEST((!exhausted.retry_after() || *exhausted.retry_after() <= lock.ttl()));
        if (!exhausted.holder().empty())
            BOOST_TEST(
                exhausted.detail().ends_with(" on " + mine.defaults().host + " (this process)"), exhausted.detail());
    }
    run_coro(env.io(), lock.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, caller_behind_another_one_is_told_the_holder_or_that_another_caller_is_first)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    auto first = testing::start(env.io(), other.acquire("k"));
    pass_slowly_until(env, [&] { return other.stats().waiting == 1; });
    const auto limited = retry_policy::fixed(env.short_ttl() / 10).total_time(env.short_ttl() / 2);
    auto second = testing::start(env.io(), other.acquire("k", {.retry = limited}));
    pass_slowly_until(env, [&] { return second.done(); });
    try {
        static_cast<void>(second.get(env.io()));
        BOOST_ERROR("granted");
    } catch (const retry_error& exhausted) {
        if (exhausted.holder().empty()) {
            BOOST_TEST(exhausted.detail() == "another caller of this locker is first");
        } else {
            BOOST_TEST(exhausted.holder() == mine.defaults().owner);
            BOOST_TEST(exhausted.detail().starts_with("held by " + exhausted.holder()), exhausted.detail());
        }
    }
    run_coro(env.io(), held.release(on_failure::raise));
    run_coro(env.io(), first.get(env.io()).release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, acquire_overrides_one_limit_of_the_lockers_policy)
{
    const auto mine = env.make_locker();
    auto lock = run_coro(env.io(), mine.acquire("k"));
    {
        const auto patient = env.make_other_locker({.retry = retry_policy::fixed(1h).total_time(2h)});
        acquire_options options;
        options.retry.times(0);
        BOOST_TEST((failure_of<retry_error>(env, patient.acquire("k", options)) == errc::retry_exhausted));
        BOOST_TEST((failure_of<retry_error>(env, patient.acquire_all({"k"}, options)) == errc::retry_exhausted));
        BOOST_TEST((failure_of<retry_error>(env, patient.with_lock("k", options, [] {})) == errc::retry_exhausted));
        options.retry.total_time(-1s);
        BOOST_TEST((failure_of<validation_error>(env, patient.acquire("k", options)) == errc::invalid_retry));
        BOOST_TEST((failure_of<validation_error>(env, patient.acquire_all({"k"}, options)) == errc::invalid_retry));
    }
    {
        // The number of retries is still that of the locker.
        const auto impatient = env.make_other_locker({.retry = retry_policy::never()});
        acquire_options options;
        options.retry.total_time(1h);
        BOOST_TEST((failure_of<retry_error>(env, impatient.acquire("k", options)) == errc::retry_exhausted));
        auto waiting = testing::start(env.io(), impatient.acquire("k", {.retry = within(1h)}));
        testing::run_until(env.io(), [&] { return impatient.stats().waiting == 1; });
        run_coro(env.io(), lock.release(on_failure::raise));
        run_coro(env.io(), waiting.get(env.io()).release(on_failure::raise));
    }
    const auto custom = env.make_locker({.retry = retry_policy::custom([](const retry_attempt&) { return 1s; })});
    acquire_options options;
    options.retry.jitter(0.1);
    BOOST_TEST((failure_of<validation_error>(env, custom.acquire("k", options)) == errc::invalid_retry));
}

COLOCK_CONTRACT_CASE(locker, a_waiter_outlives_the_holders_expiry)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const auto lock = run_coro(env.io(), mine.acquire("k", {.ttl = env.short_ttl()}));
    auto waiting = testing::start(env.io(), other.acquire("k"));
    pass_slowly(env, env.short_ttl() * 6 / 5);
    auto others = waiting.get(env.io());
    BOOST_TEST(others.held());
    BOOST_TEST(!lock.held());
    run_coro(env.io(), others.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, waiter_notices_an_earlier_expiry)
{
    // Without the event, the waiter would sleep until the expiry that it knows.
    const acquire_options patient{
        .retry = env.capabilities().events ? retry_policy::fixed(1h) : retry_policy::forever()};
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        if (mode == lock_mode::shared && !env.capabilities().shared)
            continue;
        for (const bool in_another_process : {false, true}) {
            const auto mine = env.make_locker();
            const auto waiting_locker = in_another_process ? env.make_other_locker() : mine;
            auto held = run_coro(env.io(), mine.acquire("k", {.ttl = 1h, .mode = mode}));
            auto waiting = testing::start(env.io(), waiting_locker.acquire("k", patient));
            testing::run_until(env.io(), [&] { return waiting_locker.stats().waiting == 1; });
            run_coro(env.io(), held.extend(env.short_ttl()));
            pass_slowly(env, env.short_ttl() * 6 / 5);
            auto next = waiting.get(env.io());
            BOOST_TEST(next.held());
            run_coro(env.io(), next.release(on_failure::raise));
        }
    }
}

COLOCK_CONTRACT_CASE(locker, a_cancelled_acquire_leaves_nothing)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto lock = run_coro(env.io(), mine.acquire("k"));
    for (const auto type :
        {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
    {
        asio::cancellation_signal signal;
        std::optional<error_code> ended;
        other.async_acquire(
            "k", asio::bind_cancellation_slot(signal.slot(), [&](error_code ec, colock::lock) { ended = ec; }));
        env.pass_time(1ms);
        BOOST_TEST(!ended);
        signal.emit(type);
        testing::run_until(env.io(), [&] { return ended.has_value(); });
        BOOST_TEST((ended == asio::error::operation_aborted));
    }
    // The cancelled acquires do not compete any more.
    auto waiting = testing::start(env.io(), other.acquire("k"));
    env.pass_time(1ms);
    run_coro(env.io(), lock.release(on_failure::raise));
    auto others = waiting.get(env.io());
    run_coro(env.io(), others.release(on_failure::raise));
    BOOST_TEST(run_coro(env.io(), other.shutdown()).clean());
}

// Leases.

COLOCK_CONTRACT_CASE(locker, extend_sets_a_new_ttl)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k", {.ttl = env.short_ttl()}));
    run_coro(env.io(), lock.extend(1h));
    BOOST_TEST((lock.ttl() == 1h));
    env.pass_time(env.short_ttl() * 11 / 10);
    BOOST_TEST(lock.held());
    BOOST_TEST(run_coro(env.io(), lock.is_locked()));
    run_coro(env.io(), lock.extend(10min));
    BOOST_TEST((lock.expires_at() < lease_clock::now() + 10min));
    BOOST_TEST((failure_of<validation_error>(env, lock.extend(0ms)) == errc::invalid_ttl));
    BOOST_TEST((failure_of<validation_error>(env, lock.extend(-1ms)) == errc::invalid_ttl));
    run_coro(env.io(), lock.release(on_failure::raise));
    BOOST_TEST((failure_of<extend_error>(env, lock.extend(1h)) == errc::not_held));
}

COLOCK_CONTRACT_CASE(locker, a_lock_expires_with_its_ttl)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k", {.ttl = env.short_ttl()}));
    auto lost = testing::start(env.io(), lock.lost());
    pass_slowly(env, env.short_ttl());
    BOOST_TEST(!lock.held());
    BOOST_TEST(lost.get(env.io()) == lost_reason::expired);
    BOOST_TEST((failure_of<extend_error>(env, lock.extend(1h)) == errc::not_held));
    BOOST_TEST((failure_of<release_error>(env, lock.release(on_failure::raise)) == errc::not_held));
    // The failure is raised once. This call is a second release, which does nothing.
    run_coro(env.io(), lock.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_quiet_release_of_an_expired_lock_is_no_error)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k", {.ttl = env.short_ttl()}));
    env.pass_time(env.short_ttl());
    run_coro(env.io(), lock.release());
    BOOST_TEST(!lock.held());
}

COLOCK_CONTRACT_CASE(locker, lost_returns_the_reason)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k"));
    auto lost = testing::start(env.io(), lock.lost());
    env.pass_time(1ms);
    BOOST_TEST(!lost.done());
    run_coro(env.io(), lock.release());
    BOOST_TEST(lost.get(env.io()) == lost_reason::released);
    BOOST_TEST(run_coro(env.io(), lock.lost()) == lost_reason::released);
}

COLOCK_CONTRACT_CASE(locker, automatic_renewal_keeps_a_lock)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k", {.ttl = env.short_ttl(), .renewal = renewal::automatic}));
    pass_slowly(env, env.short_ttl() * 2);
    BOOST_TEST(lock.held());
    BOOST_TEST(run_coro(env.io(), lock.is_locked()));
    BOOST_TEST(locker.stats().renewals >= 3U);
    run_coro(env.io(), lock.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, without_ttl_a_lock_never_expires, &capabilities::no_ttl)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k", {.ttl = 0ms}));
    if (env.capabilities().expires)
        BOOST_TEST((lock.expires_at() == lease_clock::time_point::max()));
    env.pass_time(env.short_ttl());
    BOOST_TEST(lock.held());
    BOOST_TEST(run_coro(env.io(), lock.is_locked()));
    BOOST_TEST((failure_of<validation_error>(env, lock.extend(1h)) == errc::invalid_ttl));
    run_coro(env.io(), lock.release(on_failure::raise));
}

// with_lock.

COLOCK_CONTRACT_CASE(locker, with_lock_returns_what_its_body_returns)
{
    const auto locker = env.make_locker();
    const auto answer = run_coro(env.io(), locker.with_lock("k", [&](colock::lock& held) -> asio::awaitable<int> {
        BOOST_TEST(held.held());
        if (env.capabilities().list)
            BOOST_TEST(co_await locker.is_locked("k"));
        BOOST_TEST(!co_await locker.try_acquire("k"));
        co_return 42;
    }));
    BOOST_TEST(answer == 42);
    BOOST_TEST(!is_taken(env, locker, "k"));
    BOOST_TEST(run_coro(env.io(), locker.with_lock("k", [] { return std::string("plain"); })) == "plain");
    run_coro(env.io(), locker.with_lock("k", []() -> asio::awaitable<void> { co_return; }));
    BOOST_TEST(locker.held_locks().empty());
}

COLOCK_CONTRACT_CASE(locker, with_lock_rethrows_the_exception_of_its_body_and_releases)
{
    const auto locker = env.make_locker();
    try {
        run_coro(env.io(), locker.with_lock("k", []() -> asio::awaitable<int> {
            throw std::out_of_range("the body's own");
            co_return 0;
        }));
        BOOST_ERROR("it did not throw");
    } catch (const std::out_of_range& thrown) {
        BOOST_TEST(thrown.what() == "the body's own");
    }
    BOOST_TEST(!is_taken(env, locker, "k"));
}

COLOCK_CONTRACT_CASE(locker, with_lock_keeps_its_lock_for_longer_than_its_ttl)
{
    const auto locker = env.make_locker(), other = env.make_other_locker();
    const auto ttl = env.short_ttl();
    bool enough = false;
    auto body =
        testing::start(env.io(), locker.with_lock("k", {.ttl = ttl}, [&](colock::lock& held) -> asio::awaitable<bool> {
            while (!enough)
                co_await sleep(ttl / 20);
            co_return held.held();
        }));
    pass_slowly(env, ttl * 3 / 2);
    BOOST_TEST(!run_coro(env.io(), other.try_acquire("k")));
    enough = true;
    pass_slowly_until(env, [&] { return body.done(); });
    BOOST_TEST(body.get(env.io()));
}

COLOCK_CONTRACT_CASE(locker, with_lock_cancels_a_body_whose_lease_would_end)
{
    const auto locker = env.make_locker();
    bool cancelled = false;
    auto body = testing::start(env.io(),
        locker.with_lock("k", {.ttl = env.short_ttl(), .renewal = renewal::manual}, [&]() -> asio::awaitable<void> {
            try {
                co_await sleep(1h);
            } catch (const boost::system::system_error&) {
                cancelled = true;
                throw;
            }
        }));
    pass_slowly(env, env.short_ttl());
    try {
        body.get(env.io());
        BOOST_ERROR("it did not throw");
    } catch (const lost_error& lost) {
        BOOST_TEST((lost.code() == errc::lost));
        BOOST_TEST(lost.key() == "k");
    }
    BOOST_TEST(cancelled);
}

} // namespace colock::contract
