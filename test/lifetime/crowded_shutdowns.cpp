// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t many = 1000;
/// Number of waiters or locks that a shutdown processes per handler.
constexpr std::size_t batch_size = 256;

std::string key_of(std::size_t number)
{
    return "k" + std::to_string(number);
}

/// Many waiters for keys that another locker holds.
struct many_waiters : virtual_fixture
{
    colock::locker other_locker{memory};
    std::vector<lock> held;
    std::size_t notified = 0;

    explicit many_waiters(std::size_t keys, backend_kind kind = backend_kind::scripted) : virtual_fixture(kind)
    {
        for (std::size_t n = 0; n < keys; ++n)
            held.push_back(run(other_locker.acquire(key_of(n), {.ttl = 0ms})));
        for (std::size_t n = 0; n < many; ++n) {
            locker->async_acquire(key_of(n % keys), {.retry = retry_policy::fixed(24h).jitter(0)},
                [this](error_code code, lock) { notified += code == errc::shutting_down ? 1U : 0U; });
        }
        ready();
    }
    /// Runs until a first batch has been notified, and others have not.
    void run_some()
    {
        run_until(io(), [this] { return notified > 0; });
        BOOST_TEST(notified < many);
    }
    void check_all_notified()
    {
        ready();
        BOOST_TEST(notified == many);
        held.clear();
        check_clean();
    }
};

/// Many held locks.
struct many_holders : virtual_fixture
{
    std::vector<lock> held;

    explicit many_holders(backend_kind kind) : virtual_fixture(kind)
    {
        for (std::size_t n = 0; n < many; ++n)
            held.push_back(acquire(key_of(n), {.ttl = 1h}));
    }
};

/// Returns the maximum increase of `count` between two handlers of another task on the same loop.
std::size_t max_between_handlers(asio::io_context& io, const std::function<std::size_t()>& count)
{
    std::size_t most = 0;
    std::size_t before = count();
    int idle_turns = 0;
    std::function<void()> turn = [&] {
        const auto now = count();
        most = std::max(most, now - before);
        idle_turns = now == before ? idle_turns + 1 : 0;
        before = now;
        if (idle_turns < 100)
            asio::post(io, turn);
    };
    asio::post(io, turn);
    run_ready(io);
    return most;
}

} // namespace

BOOST_AUTO_TEST_SUITE(crowded_shutdowns)

BOOST_AUTO_TEST_CASE(waiters_are_notified_in_batches)
{
    for (const std::size_t keys : {std::size_t(1), many}) {
        many_waiters env(keys);
        auto shutting = env.start(env.locker->shutdown(1min));
        BOOST_TEST(max_between_handlers(env.io(), [&] { return env.notified; }) <= batch_size);
        BOOST_TEST_REQUIRE(shutting.done());
        BOOST_TEST(shutting.get(env.io()).clean());
        env.check_all_notified();
    }
}

BOOST_AUTO_TEST_CASE(waiters_of_a_destroyed_locker_are_notified_in_batches)
{
    many_waiters env(many);
    env.locker.reset();
    BOOST_TEST(max_between_handlers(env.io(), [&] { return env.notified; }) <= batch_size);
    env.check_all_notified();
}

BOOST_AUTO_TEST_CASE(locks_are_released_in_batches)
{
    for (const auto kind : {backend_kind::scripted, backend_kind::immediate}) {
        many_holders env(kind);
        auto shutting = env.start(env.locker->shutdown(1min));
        BOOST_TEST(max_between_handlers(env.io(), [&] { return env.script->count(operation::release); }) <= batch_size);
        BOOST_TEST_REQUIRE(shutting.done());
        BOOST_TEST(shutting.get(env.io()).clean());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(shutdown_stops_each_body_once_and_ends_the_locks_behind_it)
{
    virtual_fixture env(backend_kind::scripted);
    std::vector<running<void>> bodies;
    std::vector<lock> held;
    for (std::size_t n = 0; n < many; ++n) {
        if (n % 2 == 0)
            bodies.push_back(env.start(env.locker->with_lock(key_of(n), [] { return sleep_for(24h); })));
        else
            held.push_back(env.acquire(key_of(n), {.ttl = 1h}));
    }
    env.ready();
    BOOST_TEST(env.run(env.locker->shutdown(1min)).clean());
    env.ready();
    for (auto& body : bodies)
        COLOCK_THROWS(lost_error, errc::lost, body.get(env.io()));
    BOOST_TEST(std::none_of(held.begin(), held.end(), [](const lock& each) { return each.held(); }));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(all_waiters_are_notified_if_the_deadline_has_passed)
{
    many_holders env(backend_kind::memory);
    BOOST_TEST(env.run(env.locker->shutdown(0ms)).clean());
    env.check_clean();
    many_waiters others(many, backend_kind::memory);
    static_cast<void>(others.run(others.locker->shutdown(0ms)));
    others.check_all_notified();
}

BOOST_AUTO_TEST_CASE(all_waiters_are_notified_after_the_shutdown_was_cancelled)
{
    many_waiters env(many);
    asio::cancellation_signal cancel;
    error_code result;
    env.locker->async_shutdown(
        1h, asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, shutdown_report) { result = code; }));
    env.run_some();
    cancel.emit(asio::cancellation_type::total);
    env.check_all_notified();
    BOOST_TEST((result == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(second_shutdown_waits_for_all_waiters)
{
    many_waiters env(many);
    auto first = env.start(env.locker->shutdown(1min));
    env.run_some();
    BOOST_TEST(env.run(env.locker->shutdown(1min)).clean());
    BOOST_TEST(env.notified == many);
    BOOST_TEST(first.get(env.io()).clean());
    env.check_all_notified();
}

BOOST_AUTO_TEST_CASE(no_waiter_is_granted_during_a_shutdown)
{
    many_waiters env(many);
    auto shutting = env.start(env.locker->shutdown(1min));
    env.run_some();
    // All keys are free, but no waiter of this locker may take one.
    env.held.clear();
    env.check_all_notified();
    BOOST_TEST(shutting.done());
    BOOST_TEST(env.locker->stats().grants == 0U);
}

BOOST_AUTO_TEST_CASE(context_may_be_destroyed_during_a_shutdown)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::other_context}) {
        many_waiters env(many, kind);
        auto mine = env.acquire("mine", {.ttl = 1h});
        auto shutting = env.start(env.locker->shutdown(1min));
        env.run_some();
        env.context.reset();
        BOOST_TEST(!shutting.done());
        asio::io_context living;
        BOOST_TEST((run_coro(living, mine.lost()) == lost_reason::shutting_down));
    }
}

BOOST_AUTO_TEST_SUITE_END()
