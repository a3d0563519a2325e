// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Groups of locks that are acquired together: what a group holds while it waits, fails and ends.
#include "locker_helpers.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace colock::contract {

COLOCK_CONTRACT_CASE(locker, a_group_holds_all_its_keys_in_order)
{
    const auto locker = env.make_locker();
    auto group = run_coro(env.io(), locker.acquire_all(strings{"b", "a", "c", "a"}));
    BOOST_TEST(group.held());
    CHECK_STRINGS(keys_of(locker.held_locks()), {"a", "b", "c"});
    if (env.capabilities().list) {
        BOOST_TEST(run_coro(env.io(), locker.list({.group = group.id()})).size() == 3U);
    }
    run_coro(env.io(), group.acquire("0"));
    BOOST_TEST(group.size() == 4U);
    for (const auto& report : run_coro(env.io(), group.extend(1h)))
        BOOST_TEST(!report.status);
    for (const auto& lock : group.locks())
        BOOST_TEST((lock.ttl() == 1h));
    strings released;
    for (const auto& report : run_coro(env.io(), group.release())) {
        BOOST_TEST(!report.status);
        released.push_back(report.key);
    }
    CHECK_STRINGS(released, {"0", "c", "b", "a"});
    BOOST_TEST(group.empty());
    BOOST_TEST(!is_taken(env, locker, "b"));
}

COLOCK_CONTRACT_CASE(locker, group_holds_its_lower_keys_while_it_waits)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto blocker = run_coro(env.io(), other.acquire("b"));
    auto waiting = testing::start(env.io(), mine.acquire_all(strings{"a", "b", "c"}));
    pass_slowly_until(env, [&] { return mine.stats().waiting > 0; });
    BOOST_TEST(is_taken(env, other, "a"));
    BOOST_TEST(!is_taken(env, other, "c"));
    BOOST_TEST(!waiting.done());
    // Nothing of the group is reported before it is complete.
    BOOST_TEST(mine.held_locks().empty());
    BOOST_TEST(mine.stats().grants == 0U);
    run_coro(env.io(), blocker.release(on_failure::raise));
    auto group = waiting.get(env.io());
    BOOST_TEST(group.held());
    BOOST_TEST(group.size() == 3U);
    BOOST_TEST(mine.stats().grants == 3U);
    BOOST_TEST(mine.stats().waits == 1U);
    run_coro(env.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, group_is_renewed_until_it_is_complete)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto blocker = run_coro(env.io(), other.acquire("b"));
    const auto ttl = env.short_ttl();
    auto waiting = testing::start(env.io(), mine.acquire_all(strings{"a", "b"}, {.ttl = ttl}));
    pass_slowly(env, ttl * 5 / 2);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(is_taken(env, other, "a"));
    run_coro(env.io(), blocker.release(on_failure::raise));
    auto group = waiting.get(env.io());
    BOOST_TEST(group.held());
    for (const auto& each : group.locks())
        BOOST_TEST((each.expires_at() - lease_clock::now() > ttl / 2));
    run_coro(env.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, cancelled_group_releases_everything)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto blocker = run_coro(env.io(), other.acquire("b"));
    for (const bool without_ttl : {false, true}) {
        if (without_ttl && !env.capabilities().no_ttl)
            continue;
        asio::cancellation_signal cancel;
        std::optional<error_code> result;
        mine.async_acquire_all(strings{"a", "b"}, {.ttl = without_ttl ? 0ms : std::chrono::milliseconds(1h)},
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock_group&) { result = code; }));
        pass_slowly_until(env, [&] { return mine.stats().waiting > 0; });
        BOOST_TEST(is_taken(env, other, "a"));
        cancel.emit(asio::cancellation_type::terminal);
        pass_slowly_until(env, [&] { return result && mine.stats().settling == 0; });
        BOOST_TEST((result == asio::error::operation_aborted));
        BOOST_TEST(!is_taken(env, other, "a"));
    }
    run_coro(env.io(), blocker.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, group_that_loses_a_lease_before_completion_starts_again, &capabilities::list)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto blocker = run_coro(env.io(), other.acquire("b"));
    auto waiting = testing::start(
        env.io(), mine.acquire_all(strings{"a", "b"}, {.ttl = env.short_ttl(), .retry = retry_policy::fixed(20ms)}));
    pass_slowly_until(env, [&] { return mine.stats().waiting > 0; });
    run_coro(env.io(), other.break_lock("a"));
    auto thief = run_coro(env.io(), other.acquire("a"));
    pass_slowly(env, env.short_ttl());
    run_coro(env.io(), blocker.release(on_failure::raise));
    pass_slowly(env, env.short_ttl() / 2);
    // The group waits for its first key again, and has released its place at the second.
    BOOST_TEST(!waiting.done());
    BOOST_TEST(!is_taken(env, other, "b"));
    run_coro(env.io(), thief.release(on_failure::raise));
    auto group = waiting.get(env.io());
    BOOST_TEST(group.held());
    BOOST_TEST(mine.stats().losses[static_cast<std::size_t>(lost_reason::taken)] == 0U);
    run_coro(env.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, group_that_gives_up_releases_everything)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto blocker = run_coro(env.io(), other.acquire("c"));
    BOOST_TEST((failure_of<retry_error>(env, mine.acquire_all(strings{"a", "b", "c"},
                                                 {.retry = retry_policy::never()})) == errc::retry_exhausted));
    for (const auto* key : {"a", "b"}) {
        auto lock = run_coro(env.io(), other.acquire(key));
        run_coro(env.io(), lock.release(on_failure::raise));
    }
    run_coro(env.io(), blocker.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, with_lock_of_several_keys_holds_all_of_them_until_the_body_ends)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const auto result = run_coro(env.io(), mine.with_lock({"b", "a"}, [&](lock_group& held) -> asio::awaitable<int> {
        BOOST_TEST(held.size() == 2U);
        BOOST_TEST(!(co_await other.try_acquire("a")).has_value());
        BOOST_TEST(!(co_await other.try_acquire("b")).has_value());
        co_return 7;
    }));
    BOOST_TEST(result == 7);
    BOOST_TEST(!is_taken(env, other, "a"));
    BOOST_TEST(!is_taken(env, other, "b"));
}

COLOCK_CONTRACT_CASE(locker, group_reports_its_first_loss, &capabilities::list)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const acquire_options renewed{.ttl = env.short_ttl(), .renewal = renewal::automatic};
    auto group = run_coro(env.io(), mine.acquire_all(strings{"a", "b"}, renewed));
    auto waiting = testing::start(env.io(), group.lost());
    testing::run_ready(env.io());
    BOOST_TEST(!waiting.done());
    static_cast<void>(run_coro(env.io(), other.break_lock("b")));
    pass_slowly_until(env, [&] { return waiting.done(); });
    const auto lost = waiting.get(env.io());
    BOOST_TEST(lost.key == "b");
    BOOST_TEST((lost.reason != lost_reason::released));
    BOOST_TEST(!group.held());
    run_coro(env.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, global_lock_excludes_itself_and_no_other_key)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = run_coro(env.io(), mine.acquire_global());
    BOOST_TEST(group.held());
    BOOST_TEST(is_taken(env, other, locker::global_key));
    BOOST_TEST((
        failure_of<retry_error>(env, other.acquire_global({.retry = retry_policy::never()})) == errc::retry_exhausted));
    auto lock = run_coro(env.io(), other.try_acquire("k"));
    BOOST_TEST(lock.has_value());
    run_coro(env.io(), group.release());
}

} // namespace colock::contract
