// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"

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
/// Of those that are told of a shutdown, so many at a time.
constexpr std::size_t part = 256;

std::string key_of(std::size_t number)
{
    return "k" + std::to_string(number);
}

/// Many that wait for keys that another locker holds.
struct waiting_crowd : rig
{
    colock::locker rival{memory};
    std::vector<lock> held;
    std::size_t told = 0;

    explicit waiting_crowd(std::size_t keys, behind kind = behind::scripted) : rig(kind)
    {
        for (std::size_t n = 0; n < keys; ++n)
            held.push_back(run(rival.acquire(key_of(n), {.ttl = 0ms})));
        for (std::size_t n = 0; n < many; ++n) {
            locker->async_acquire(key_of(n % keys), {.retry = retry_policy::fixed(24h).jitter(0)},
                [this](error_code code, lock) { told += code == errc::shutting_down ? 1U : 0U; });
        }
        ready();
    }
    /// Until a first part has been told, and others have not.
    void run_some()
    {
        run_until(io(), [this] { return told > 0; });
        BOOST_TEST(told < many);
    }
    void check_all_told()
    {
        ready();
        BOOST_TEST(told == many);
        held.clear();
        check_clean();
    }
};

/// Many locks.
struct holding_crowd : rig
{
    std::vector<lock> held;

    explicit holding_crowd(behind kind) : rig(kind)
    {
        for (std::size_t n = 0; n < many; ++n)
            held.push_back(acquire(key_of(n), {.ttl = 1h}));
    }
};

/// The most that `count` grows by from one turn of somebody else on the same loop to the next.
std::size_t most_between_turns(asio::io_context& io, const std::function<std::size_t()>& count)
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

BOOST_AUTO_TEST_CASE(waiters_are_told_in_parts)
{
    for (const std::size_t keys : {std::size_t(1), many}) {
        waiting_crowd on(keys);
        auto shutting = on.start(on.locker->shutdown(1min));
        BOOST_TEST(most_between_turns(on.io(), [&] { return on.told; }) <= part);
        BOOST_TEST_REQUIRE(shutting.done());
        BOOST_TEST(shutting.get(on.io()).clean());
        on.check_all_told();
    }
}

BOOST_AUTO_TEST_CASE(so_are_those_of_a_locker_that_nobody_has_any_more)
{
    waiting_crowd on(many);
    on.locker.reset();
    BOOST_TEST(most_between_turns(on.io(), [&] { return on.told; }) <= part);
    on.check_all_told();
}

BOOST_AUTO_TEST_CASE(so_are_locks_given_back)
{
    for (const auto kind : {behind::scripted, behind::immediate}) {
        holding_crowd on(kind);
        auto shutting = on.start(on.locker->shutdown(1min));
        BOOST_TEST(most_between_turns(on.io(), [&] { return on.script->count(operation::release); }) <= part);
        BOOST_TEST_REQUIRE(shutting.done());
        BOOST_TEST(shutting.get(on.io()).clean());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(bodies_are_told_each_once_and_what_is_behind_them_too)
{
    rig on(behind::scripted);
    std::vector<running<void>> bodies;
    std::vector<lock> held;
    for (std::size_t n = 0; n < many; ++n) {
        if (n % 2 == 0)
            bodies.push_back(on.start(on.locker->with_lock(key_of(n), [] { return sleep_for(24h); })));
        else
            held.push_back(on.acquire(key_of(n), {.ttl = 1h}));
    }
    on.ready();
    BOOST_TEST(on.run(on.locker->shutdown(1min)).clean());
    on.ready();
    for (auto& body : bodies)
        COLOCK_THROWS(lost_error, errc::lost, body.get(on.io()));
    BOOST_TEST(std::none_of(held.begin(), held.end(), [](const lock& each) { return each.held(); }));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(all_are_told_within_a_deadline_that_has_passed)
{
    holding_crowd on(behind::memory);
    BOOST_TEST(on.run(on.locker->shutdown(0ms)).clean());
    on.check_clean();
    waiting_crowd others(many, behind::memory);
    static_cast<void>(others.run(others.locker->shutdown(0ms)));
    others.check_all_told();
}

BOOST_AUTO_TEST_CASE(all_are_told_if_the_one_who_asked_has_left)
{
    waiting_crowd on(many);
    asio::cancellation_signal cancel;
    error_code result;
    on.locker->async_shutdown(
        1h, asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, shutdown_report) { result = code; }));
    on.run_some();
    cancel.emit(asio::cancellation_type::total);
    on.check_all_told();
    BOOST_TEST((result == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(a_second_one_waits_for_all_as_well)
{
    waiting_crowd on(many);
    auto first = on.start(on.locker->shutdown(1min));
    on.run_some();
    BOOST_TEST(on.run(on.locker->shutdown(1min)).clean());
    BOOST_TEST(on.told == many);
    BOOST_TEST(first.get(on.io()).clean());
    on.check_all_told();
}

BOOST_AUTO_TEST_CASE(nobody_is_granted_before_being_told)
{
    waiting_crowd on(many);
    auto shutting = on.start(on.locker->shutdown(1min));
    on.run_some();
    // All keys are free, and nobody here may take one.
    on.held.clear();
    on.check_all_told();
    BOOST_TEST(shutting.done());
    BOOST_TEST(on.locker->stats().grants == 0U);
}

BOOST_AUTO_TEST_CASE(the_context_may_end_meanwhile)
{
    for (const auto kind : {behind::memory, behind::scripted, behind::elsewhere}) {
        waiting_crowd on(many, kind);
        auto mine = on.acquire("mine", {.ttl = 1h});
        auto shutting = on.start(on.locker->shutdown(1min));
        on.run_some();
        on.context.reset();
        BOOST_TEST(!shutting.done());
        asio::io_context living;
        BOOST_TEST((run_coro(living, mine.lost()) == lost_reason::shutting_down));
    }
}

BOOST_AUTO_TEST_CASE(a_fork_meanwhile_leaves_nobody_to_tell)
{
    waiting_crowd on(many);
    auto mine = on.acquire("mine", {.ttl = 1h});
    auto shutting = on.start(on.locker->shutdown(1min));
    on.run_some();
    on.io().notify_fork(asio::execution_context::fork_child);
    on.ready();
    BOOST_TEST_REQUIRE(shutting.done());
    BOOST_TEST(shutting.get(on.io()).clean());
    BOOST_TEST((on.run(mine.lost()) == lost_reason::forked));
    on.held.clear();
}

BOOST_AUTO_TEST_SUITE_END()
