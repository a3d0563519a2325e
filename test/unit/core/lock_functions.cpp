// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>

#include <optional>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(handles)

BOOST_AUTO_TEST_CASE(an_empty_lock_is_defined)
{
    virtual_fixture env;
    lock held = env.acquire("k");
    lock taken = std::move(held);
    lock none;
    for (lock* empty : {&held, &none}) {
        BOOST_TEST(!*empty);
        BOOST_TEST(empty->key().empty());
        BOOST_TEST(empty->token().empty());
        BOOST_TEST(empty->fence() == 0U);
        BOOST_TEST(empty->ttl() == 0ms);
        BOOST_TEST(!empty->held());
        BOOST_TEST((empty->valid_for() == 0ns));
        BOOST_CHECK_NO_THROW(env.run(empty->release()));
        COLOCK_THROWS(validation_error, errc::invalid_options, env.run(empty->release(on_failure::raise)));
        COLOCK_THROWS(validation_error, errc::invalid_options, env.run(empty->extend(1s)));
        COLOCK_THROWS(validation_error, errc::invalid_options, env.run(empty->is_locked()));
        COLOCK_THROWS(validation_error, errc::invalid_options, env.run(empty->lost()));
        COLOCK_THROWS(validation_error, errc::invalid_options, empty->async_extend(1s, [](error_code) {}));
        COLOCK_THROWS(validation_error, errc::invalid_options, empty->async_is_locked([](error_code, bool) {}));
        COLOCK_THROWS(validation_error, errc::invalid_options, empty->async_lost([](error_code, lost_reason) {}));
    }
    BOOST_TEST(taken.held());
    lock& same = taken;
    taken = std::move(same);
    BOOST_TEST(taken.held());
    lock other = env.acquire("other");
    taken = std::move(other);
    env.ready();
    BOOST_TEST(taken.key() == "other");
    const auto stored = env.stored();
    BOOST_TEST_REQUIRE(stored.size() == 1U);
    BOOST_TEST(stored.front().key == "other");
}

BOOST_AUTO_TEST_CASE(async_release_of_an_empty_lock_completes_like_release)
{
    asio::io_context io;
    lock none;
    for (const auto report : {on_failure::quiet, on_failure::raise}) {
        const error_code expected = report == on_failure::raise ? make_error_code(errc::invalid_options) : error_code();
        std::optional<error_code> code;
        const auto note = [&](error_code ended) { code = ended; };
        none.async_release(report, asio::bind_executor(io.get_executor(), note));
        BOOST_TEST(!code.has_value());
        run_until(io, [&] { return code.has_value(); });
        BOOST_TEST((*code == expected));

        code.reset();
        none.async_release(report, asio::deferred)(asio::bind_executor(io.get_executor(), note));
        run_until(io, [&] { return code.has_value(); });
        BOOST_TEST((*code == expected));

        const auto awaited = [](lock& subject, on_failure how) -> asio::awaitable<error_code> {
            auto [ended] = co_await subject.async_release(how, asio::as_tuple(asio::deferred));
            co_return ended;
        };
        BOOST_TEST((run_coro(io, awaited(none, report)) == expected));

        // Without an associated executor the handler is called before the function returns.
        code.reset();
        none.async_release(report, note);
        BOOST_TEST_REQUIRE(code.has_value());
        BOOST_TEST((*code == expected));
    }
}

BOOST_AUTO_TEST_CASE(held_is_false_from_the_start_of_a_release)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    env.script->next(operation::release, step::hold());
    auto releasing = env.start(held.release());
    BOOST_TEST(held.held());
    env.ready();
    BOOST_TEST(!held.held());
    BOOST_TEST(!releasing.done());
    env.script->deliver();
    releasing.get(env.io());
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(accessors_return_the_granted_values)
{
    virtual_fixture env;
    const auto before = lease_clock::now();
    auto held = env.acquire("k", {.ttl = 10s, .mode = lock_mode::shared, .owner = "me", .comment = "why"});
    const auto after = lease_clock::now();
    BOOST_TEST(held.key() == "k");
    BOOST_TEST(!held.token().empty());
    BOOST_TEST(held.fence() > 0U);
    BOOST_TEST(held.mode() == lock_mode::shared);
    BOOST_TEST(held.ttl() == 10s);
    BOOST_TEST((held.expires_at() >= before + 10s - 102ms));
    BOOST_TEST((held.expires_at() <= after + 10s - 102ms));
    const auto status = env.stored().at(0);
    BOOST_TEST(status.owner == "me");
    BOOST_TEST(status.comment == "why");
    BOOST_TEST(!status.host.empty());
    BOOST_TEST(status.fence == held.fence());
    const auto mine = env.locker->held_locks();
    BOOST_TEST_REQUIRE(mine.size() == 1U);
    BOOST_TEST(mine[0].key == "k");
    BOOST_TEST(mine[0].fence == held.fence());
    BOOST_TEST_REQUIRE(mine[0].valid_for.has_value());
    BOOST_TEST((*mine[0].valid_for > 8s));
}

BOOST_AUTO_TEST_CASE(held_compares_clocks_without_a_timer)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 10s});
    // Nobody waits for the end of the lease, so no timer keeps the context running.
    BOOST_TEST(env.idle());
    env.clock.skip(9s);
    BOOST_TEST(held.held());
    env.clock.skip(899ms);
    BOOST_TEST(!held.held());
    BOOST_TEST(env.locker->held_locks().empty());
    // The backend keeps the lock a little longer than the local deadline.
    BOOST_TEST(env.stored().size() == 1U);
}

BOOST_AUTO_TEST_CASE(valid_for_counts_down_to_the_local_expiry)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 10s});
    const auto check_remaining = [](const lock& subject) {
        const auto before = lease_clock::now();
        const auto remaining = subject.valid_for();
        BOOST_TEST((remaining <= subject.expires_at() - before));
        BOOST_TEST((remaining >= subject.expires_at() - lease_clock::now()));
        BOOST_TEST((remaining > 0ns));
    };
    check_remaining(held);
    env.clock.skip(4s);
    check_remaining(held);
    env.run(held.extend(20s));
    check_remaining(held);
    BOOST_TEST((held.valid_for() > 19s));
    lock moved = std::move(held);
    BOOST_TEST((held.valid_for() == 0ns)); // NOLINT(bugprone-use-after-move): documented
    check_remaining(moved);
    env.clock.skip(moved.valid_for());
    BOOST_TEST((moved.valid_for() == 0ns));
    BOOST_TEST(!moved.held());
    env.clock.skip(1h);
    BOOST_TEST((moved.valid_for() == 0ns));
}

BOOST_AUTO_TEST_CASE(valid_for_is_zero_after_a_release_and_a_loss)
{
    virtual_fixture env;
    auto released = env.acquire("released");
    env.run(released.release());
    BOOST_TEST((released.valid_for() == 0ns));
    auto broken = env.acquire("broken");
    env.run(env.locker->break_lock("broken"));
    BOOST_TEST((env.run(broken.lost()) == lost_reason::broken));
    BOOST_TEST((broken.valid_for() == 0ns));
    auto endless = env.acquire("endless", {.ttl = 0ms});
    env.run(endless.release());
    BOOST_TEST((endless.valid_for() == 0ns));
}

BOOST_AUTO_TEST_CASE(an_extend_that_shortens_lowers_the_deadline_before_it_is_sent)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 100s});
    env.script->next(operation::extend, step::hold());
    auto extending = env.start(held.extend(1s));
    env.ready();
    BOOST_TEST((held.expires_at() <= lease_clock::now() + 1s));
    env.script->deliver();
    extending.get(env.io());
}

BOOST_AUTO_TEST_CASE(extend_after_expiry_fails_without_a_request)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 1s});
    env.clock.skip(2s);
    const auto refused = required_error<extend_error>([&] { env.run(held.extend(10s)); });
    BOOST_TEST((refused.code() == errc::not_held));
    const std::string message = refused.what();
    BOOST_TEST(message.find("the lock is not held by this handle any more") != std::string::npos, message);
    BOOST_TEST(env.script->count(operation::extend) == 0U);
    BOOST_TEST((env.run(held.lost()) == lost_reason::expired));
    COLOCK_THROWS(extend_error, errc::not_held, env.run(held.extend(10s)));
    COLOCK_THROWS(release_error, errc::not_held, env.run(held.release(on_failure::raise)));
    BOOST_CHECK_NO_THROW(env.run(held.release(on_failure::raise)));
    BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(extend_refuses_bad_ttls)
{
    using std::chrono::milliseconds;
    constexpr milliseconds ten_years = std::chrono::hours(24 * 3650);
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    auto endless = env.acquire("endless", {.ttl = 0ms});
    for (const milliseconds ttl : {0ms, -1ms, 99ms, ten_years + 1ms, milliseconds::max()})
        COLOCK_THROWS(validation_error, errc::invalid_ttl, env.run(held.extend(ttl)));
    for (const milliseconds ttl : {0ms, 10000ms})
        COLOCK_THROWS(validation_error, errc::invalid_ttl, env.run(endless.extend(ttl)));
    BOOST_TEST(env.script->count(operation::extend) == 0U);
    BOOST_TEST(held.held());
    BOOST_TEST(endless.held());
}

BOOST_AUTO_TEST_CASE(a_lock_without_ttl_is_never_stale)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 0ms, .renewal = renewal::automatic});
    BOOST_TEST((held.expires_at() == lease_clock::time_point::max()));
    BOOST_TEST(env.idle());
    env.clock.skip(std::chrono::hours(24 * 3650));
    BOOST_TEST(held.held());
    BOOST_TEST((held.valid_for() == std::chrono::nanoseconds::max()));
    BOOST_TEST(env.run(env.locker->purge()).empty());
    BOOST_TEST(env.run(held.is_locked()));
    BOOST_TEST(!env.locker->held_locks().at(0).valid_for.has_value());
    env.run(held.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(lock_functions)

BOOST_AUTO_TEST_CASE(a_bodys_exception_comes_out_unchanged_and_the_lock_is_free)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        struct odd
        {
            int value;
        };
        const auto thrown = required_error<odd>([&] {
            env.run(env.locker->with_lock("k", [](lock& held) -> asio::awaitable<void> {
                BOOST_TEST(held.held());
                throw odd{42};
                co_return;
            }));
        });
        BOOST_TEST(thrown.value == 42);
        COLOCK_THROWS(boost::system::system_error, asio::error::operation_aborted,
            env.run(
                env.locker->with_lock("k", [] { throw boost::system::system_error(asio::error::operation_aborted); })));
        env.check_clean();

        std::exception_ptr failure;
        env.locker->async_with_lock("k", [](lock&) { throw odd{7}; }, [&](std::exception_ptr out) { failure = out; });
        env.ready();
        BOOST_TEST_REQUIRE((failure != nullptr));
        BOOST_TEST(thrown_by<odd>([&] { std::rethrow_exception(failure); })->value == 7);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(bodies_may_return_any_type)
{
    virtual_fixture env;
    BOOST_TEST(env.run(env.locker->with_lock("k", [] { return 1; })) == 1);
    BOOST_TEST(env.run(env.locker->with_lock("k", [](lock& held) { return held.key(); })) == "k");
    BOOST_TEST(env.run(env.locker->with_lock("k", []() -> asio::awaitable<int> { co_return 2; })) == 2);
    auto moved = env.run(env.locker->with_lock(
        "k", {.ttl = 1s}, [](lock&) -> asio::awaitable<std::unique_ptr<int>> { co_return std::make_unique<int>(3); }));
    BOOST_TEST(*moved == 3);
    int seen = 0;
    env.locker->async_with_lock("k", [] { return 5; }, [&](std::exception_ptr, int value) { seen = value; });
    BOOST_TEST(seen == 0);
    env.ready();
    BOOST_TEST(seen == 5);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_custom_retry_that_throws_leaves_nothing)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k");
        const auto policy =
            retry_policy::custom([](const retry_attempt&) -> retry_decision { throw std::domain_error("no"); });
        const auto thrown = required_error<std::domain_error>(
            [&] { static_cast<void>(env.run(env.locker->acquire("k", {.retry = policy}))); });
        BOOST_TEST(std::string(thrown.what()) == "no");
        error_code code;
        env.locker->async_acquire("k", {.retry = policy}, [&](error_code failed, lock) { code = failed; });
        env.ready();
        BOOST_TEST((code == errc::invalid_retry));
        env.run(held.release());
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(a_delay_that_overflows_is_a_very_long_one)
{
    virtual_fixture env(backend_kind::scripted);
    for (const auto& policy : {retry_policy::fixed(lease_clock::duration::max()),
             retry_policy::exponential(1000h, 1e300, lease_clock::duration::max()),
             retry_policy::custom([](const retry_attempt&) { return std::chrono::hours::max(); })})
    {
        env.script->next(operation::create, step::fail(errc::unavailable));
        env.script->always(operation::wait, step::hold());
        asio::cancellation_signal cancel;
        error_code code;
        env.locker->async_acquire("k", {.retry = policy},
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code failed, lock) { code = failed; }));
        env.ready();
        env.script->reset();
        env.advance(1h);
        BOOST_TEST(!code);
        cancel.emit(asio::cancellation_type::terminal);
        env.ready();
        BOOST_TEST((code == asio::error::operation_aborted));
    }
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_policy_that_ends_while_busy_throws_retry_exhausted)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k", {.ttl = 0ms});
        const auto never = required_error<retry_error>(
            [&] { static_cast<void>(env.run(env.locker->acquire("k", {.retry = retry_policy::never()}))); });
        BOOST_TEST((never.code() == errc::retry_exhausted));
        const std::string message = never.what();
        BOOST_TEST(message.find("the lock stayed busy until the retry policy ended") != std::string::npos, message);
        BOOST_TEST(never.attempts() == 1U);
        BOOST_TEST(never.key() == "k");

        auto thrice = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1min).jitter(0).times(2)}));
        env.advance_by_steps(119s, 1s);
        BOOST_TEST(!thrice.done());
        env.advance_by_steps(3s, 1s);
        const auto thrown = required_error<retry_error>([&] { static_cast<void>(thrice.get(env.io())); });
        BOOST_TEST(thrown.attempts() == 3U);
        BOOST_TEST((thrown.elapsed() >= 2min));

        auto timed = env.start(env.locker->acquire("k", {.retry = within(1min)}));
        env.advance_by_steps(59s, 1s);
        BOOST_TEST(!timed.done());
        env.advance_by_steps(2s, 1s);
        COLOCK_THROWS(retry_error, errc::retry_exhausted, timed.get(env.io()));
        env.run(held.release());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
