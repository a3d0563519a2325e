// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_helpers.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace colock::contract {

namespace {

/// The result of a body. It has no default, so only an optional of it can be empty.
struct receipt
{
    explicit receipt(int n) noexcept : number(n) {}
    int number;
};

acquire_options often()
{
    return {.retry = retry_policy::fixed(20ms)};
}

/// Runs a call that ends without a lock. Returns how long it took.
template <class Result>
lease_clock::duration time_of_empty(
    fixture& env, asio::awaitable<Result> call, std::source_location where = std::source_location::current())
{
    const auto begin = lease_clock::now();
    auto waiting = testing::start(env.io(), std::move(call));
    pass_slowly_until(env, [&] { return waiting.done(); });
    BOOST_TEST_CONTEXT("called from " << where.file_name() << ":" << where.line())
    {
        BOOST_TEST(!waiting.get(env.io()));
    }
    return lease_clock::now() - begin;
}

} // namespace

// Waits with a limit, whose result is empty if the lock is busy.

COLOCK_CONTRACT_CASE(locker, limited_wait_is_granted_the_lock)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.try_acquire("k", 1h));
    BOOST_TEST_REQUIRE(held.has_value());
    auto waiting = testing::start(env.io(), other.try_acquire("k", 1h, often()));
    testing::run_until(env.io(), [&] { return other.stats().waiting == 1; });
    run_coro(env.io(), held->release(on_failure::raise));
    auto next = waiting.get(env.io());
    BOOST_TEST_REQUIRE(next.has_value());
    BOOST_TEST(next->held());
    run_coro(env.io(), next->release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, limited_wait_for_a_busy_lock_is_empty)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    const auto limit = env.short_ttl() / 4;
    BOOST_TEST((time_of_empty(env, other.try_acquire("k", limit)) >= limit));
    BOOST_TEST((time_of_empty(env, other.try_acquire_all({"a", "k"}, limit)) >= limit));
    BOOST_TEST((time_of_empty(env, other.try_with_lock("k", limit, [] { BOOST_ERROR("body was run"); })) >= limit));
    BOOST_TEST(
        (time_of_empty(env, other.try_with_lock({"a", "k"}, limit, [] { BOOST_ERROR("body was run"); })) >= limit));
    // A waiter of the same locker.
    BOOST_TEST((time_of_empty(env, mine.try_acquire("k", limit)) >= limit));
    // The groups count once for each key.
    BOOST_TEST(other.stats().exhausted == 6U);
    BOOST_TEST(other.stats().failed == 0U);
    BOOST_TEST(!is_taken(env, mine, "a"));
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, limited_wait_behind_other_callers_is_empty)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    auto first = testing::start(env.io(), other.acquire("k", often()));
    testing::run_until(env.io(), [&] { return other.stats().waiting == 1; });
    const auto limit = env.short_ttl() / 4;
    BOOST_TEST((time_of_empty(env, other.try_acquire("k", limit)) >= limit));
    BOOST_TEST((time_of_empty(env, other.try_acquire_all({"k"}, limit)) >= limit));
    run_coro(env.io(), held.release(on_failure::raise));
    run_coro(env.io(), first.get(env.io()).release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, limits_of_the_policy_end_a_limited_wait)
{
    const auto mine = env.make_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    const acquire_options once{.retry = retry_policy::never()};
    const auto brief = env.make_other_locker({.retry = within(env.short_ttl() / 4)});
    BOOST_TEST(!run_coro(env.io(), brief.try_acquire("k", 1h, once)).has_value());
    BOOST_TEST(!run_coro(env.io(), brief.try_acquire_all({"k", "z"}, 1h, once)).has_value());
    BOOST_TEST(!run_coro(env.io(), brief.try_with_lock("k", 1h, once, [] {})));
    BOOST_TEST((time_of_empty(env, brief.try_acquire("k", 1h)) >= env.short_ttl() / 4));
    const acquire_options stops{.retry = retry_policy::custom([](const retry_attempt&) { return retry_stop; })};
    BOOST_TEST(!run_coro(env.io(), brief.try_acquire("k", 1h, stops)).has_value());
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, retry_error_of_a_custom_function_does_not_mean_busy)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    const acquire_options throws{.retry = retry_policy::custom([](const retry_attempt&) -> retry_decision {
        throw retry_error(errc::retry_exhausted, {.key = "own"});
    })};
    const auto check = [&](auto call) {
        BOOST_CHECK_EXCEPTION(static_cast<void>(run_coro(env.io(), std::move(call))), retry_error,
            [](const retry_error& thrown) { return thrown.key() == "own"; });
    };
    check(other.try_acquire("k", 1h, throws));
    check(other.try_acquire_all({"k", "z"}, 1h, throws));
    check(other.try_with_lock("k", 1h, throws, [] {}));
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, limited_wait_of_no_time_is_a_single_attempt)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    for (const std::chrono::milliseconds limit : {0ms, -5ms}) {
        BOOST_TEST(!run_coro(env.io(), other.try_acquire("k", limit)).has_value());
        BOOST_TEST(!run_coro(env.io(), other.try_acquire_all({"a", "k"}, limit)).has_value());
        BOOST_TEST(!run_coro(env.io(), other.try_with_lock("k", limit, [] {})));
        auto free = run_coro(env.io(), other.try_acquire_all({"a", "z"}, limit));
        BOOST_TEST_REQUIRE(free.has_value());
        BOOST_TEST(free->held());
        run_coro(env.io(), free->release());
    }
    BOOST_TEST(!run_coro(env.io(), other.try_acquire_all({"a", "k"})).has_value());
    BOOST_TEST(other.stats().waits == 0U);
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, limited_wait_for_several_locks_gets_all_of_them)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("b"));
    auto waiting = testing::start(env.io(), other.try_acquire_all({"b", "a"}, 1h, often()));
    testing::run_until(env.io(), [&] { return other.stats().waiting == 1; });
    run_coro(env.io(), held.release(on_failure::raise));
    auto group = waiting.get(env.io());
    BOOST_TEST_REQUIRE(group.has_value());
    BOOST_TEST(group->size() == 2U);
    BOOST_TEST(group->held());
    run_coro(env.io(), group->release());
}

COLOCK_CONTRACT_CASE(locker, bad_input_of_a_limited_wait_is_refused)
{
    const auto locker = env.make_locker();
    const acquire_options bad{.retry = retry_policy::fixed(-1s)};
    for (const auto limit : {0s, 1s}) {
        BOOST_TEST((failure_of<validation_error>(env, locker.try_acquire("", limit)) == errc::invalid_key));
        BOOST_TEST((failure_of<validation_error>(env, locker.try_acquire("k", limit, bad)) == errc::invalid_retry));
        BOOST_TEST(
            (failure_of<validation_error>(env, locker.try_acquire_all({"k"}, limit, bad)) == errc::invalid_retry));
        BOOST_TEST((failure_of<validation_error>(env, locker.try_acquire_all({}, limit)) == errc::invalid_options));
        BOOST_TEST(
            (failure_of<validation_error>(env, locker.try_with_lock("k", limit, bad, [] {})) == errc::invalid_retry));
    }
    BOOST_TEST(locker.stats().attempts == 0U);
}

COLOCK_CONTRACT_CASE(locker, try_with_lock_returns_the_result_of_the_body)
{
    const auto locker = env.make_locker();
    BOOST_TEST(run_coro(env.io(), locker.try_with_lock("k", 1h, [] {})));
    BOOST_TEST((run_coro(env.io(), locker.try_with_lock("k", 1h, {.ttl = 10min}, [](lock& held) {
        BOOST_TEST((held.ttl() == 10min));
        return 7;
    })) == std::optional(7)));
    const auto number =
        run_coro(env.io(), locker.try_with_lock({"b", "a"}, 1h, [](lock_group& held) -> asio::awaitable<receipt> {
            BOOST_TEST(held.size() == 2U);
            co_return receipt(8);
        }));
    BOOST_TEST((number && number->number == 8));
    BOOST_TEST(run_coro(env.io(), locker.try_with_lock({"b", "a"}, 0s, {.ttl = 10min}, [] {})));
    BOOST_TEST(!is_taken(env, locker, "a"));
}

COLOCK_CONTRACT_CASE(locker, async_try_with_lock_returns_the_result_of_the_body)
{
    const auto locker = env.make_locker();
    int completions = 0;
    const auto await_completion = [&](int number) {
        testing::run_until(env.io(), [&] { return completions == number; });
    };
    locker.async_try_with_lock(
        "k", 1h, [] {},
        [&](const std::exception_ptr& failure, bool has_run) {
            BOOST_TEST(!failure);
            BOOST_TEST(has_run);
            ++completions;
        });
    await_completion(1);
    locker.async_try_with_lock(
        {"a", "k"}, 1h, {.ttl = 10min}, [] { return receipt(9); },
        [&](const std::exception_ptr& failure, const std::optional<receipt>& number) {
            BOOST_TEST(!failure);
            BOOST_TEST((number && number->number == 9));
            ++completions;
        });
    await_completion(2);
    auto held = run_coro(env.io(), locker.acquire("k"));
    locker.async_try_with_lock(
        "k", 0s, {.ttl = 10min}, [] {},
        [&](const std::exception_ptr& failure, bool has_run) {
            BOOST_TEST(!failure);
            BOOST_TEST(!has_run);
            ++completions;
        });
    await_completion(3);
    locker.async_try_with_lock(
        {"k"}, 0s, [] { return receipt(9); },
        [&](const std::exception_ptr& failure, const std::optional<receipt>& number) {
            BOOST_TEST(!failure);
            BOOST_TEST(!number.has_value());
            ++completions;
        });
    await_completion(4);
    locker.async_try_acquire_all(strings{"a", "k"}, [&](error_code code, const std::optional<lock_group>& group) {
        BOOST_TEST(!code);
        BOOST_TEST(!group.has_value());
        ++completions;
    });
    await_completion(5);
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, body_of_try_with_lock_may_report_a_busy_lock)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), other.acquire("z"));
    const auto body = [&]() -> asio::awaitable<void> {
        co_await mine.with_lock("z", {.retry = retry_policy::never()}, [] {});
    };
    for (const std::chrono::seconds limit : {0s, 3600s})
        BOOST_TEST((failure_of<retry_error>(env, mine.try_with_lock("k", limit, body)) == errc::retry_exhausted));
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, cancelled_limited_wait_leaves_nothing)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    for (const auto type :
        {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
    {
        asio::cancellation_signal signals[3];
        int cancelled = 0;
        const auto count = [&](error_code code) { cancelled += code == asio::error::operation_aborted ? 1 : 0; };
        other.async_try_acquire("k", 1h,
            asio::bind_cancellation_slot(
                signals[0].slot(), [&](error_code code, const std::optional<lock>&) { count(code); }));
        other.async_try_acquire_all(strings{"a", "k"}, 1h,
            asio::bind_cancellation_slot(
                signals[1].slot(), [&](error_code code, const std::optional<lock_group>&) { count(code); }));
        other.async_try_with_lock(
            "k", 1h, [] { BOOST_ERROR("body was run"); },
            asio::bind_cancellation_slot(
                signals[2].slot(), [&](const std::exception_ptr& failure, bool) { count(detail::code_of(failure)); }));
        pass_slowly_until(env, [&] { return other.stats().waiting == 3; });
        BOOST_TEST(cancelled == 0);
        for (auto& each : signals)
            each.emit(type);
        pass_slowly_until(env, [&] { return cancelled == 3 && other.stats().settling == 0; });
    }
    BOOST_TEST(!is_taken(env, mine, "a"));
    run_coro(env.io(), held.release(on_failure::raise));
    BOOST_TEST(run_coro(env.io(), other.shutdown()).clean());
}

COLOCK_CONTRACT_CASE(locker, limited_wait_ends_with_its_locker)
{
    const auto mine = env.make_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    for (const bool shuts_down : {false, true}) {
        auto other = std::make_optional(env.make_other_locker());
        auto single = testing::start(env.io(), other->try_acquire("k", 1h));
        auto several = testing::start(env.io(), other->try_acquire_all({"a", "k"}, 1h));
        auto with_body = testing::start(env.io(), other->try_with_lock("k", 1h, [] { BOOST_ERROR("body was run"); }));
        pass_slowly_until(env, [&] { return other->stats().waiting == 3; });
        if (shuts_down)
            BOOST_TEST(run_coro(env.io(), other->shutdown()).clean());
        other.reset();
        const auto check = [&](auto& waiting) {
            BOOST_CHECK_EXCEPTION(static_cast<void>(waiting.get(env.io())), create_error,
                [](const create_error& ended) { return ended.code() == errc::shutting_down; });
        };
        check(single);
        check(several);
        check(with_body);
        pass_slowly_until(env, [&] { return !is_taken(env, mine, "a"); });
    }
    run_coro(env.io(), held.release(on_failure::raise));
}

} // namespace colock::contract
