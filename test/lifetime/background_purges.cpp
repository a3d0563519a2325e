// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/detail/generation.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

const locker_options sweeping{.purge = background_purge{.interval = 1min, .limit = 10}};

struct listener : observer
{
    std::vector<std::string> warnings;
    void warning(std::string_view, std::string_view message) noexcept override { warnings.emplace_back(message); }
};

/// Takes `count` locks that are never released.
void leave_locks(adapter& store, int count)
{
    for (int i = 0; i < count; ++i) {
        store.start_create(sent_now(driver::exclusive("left:" + std::to_string(i), 1s)),
            [](const create_outcome& outcome) { BOOST_TEST((outcome.status == create_status::granted)); });
    }
}

std::size_t count_stored(adapter& store)
{
    std::size_t count = 0;
    std::string cursor;
    do {
        store.start_purge(0, cursor, [&](list_outcome step) {
            count += step.locks.size();
            cursor = std::move(step.next);
        });
    } while (!cursor.empty());
    return count;
}

bool has_purge_lock(const virtual_fixture& on)
{
    return std::ranges::any_of(on.stored(), [](const auto& each) { return each.key == locker::purge_key; });
}

constexpr auto every_kind = {
    backend_kind::memory, backend_kind::scripted, backend_kind::other_context, backend_kind::immediate};

} // namespace

BOOST_AUTO_TEST_SUITE(background_purges)

BOOST_AUTO_TEST_CASE(expired_locks_are_removed_in_the_background)
{
    for (const auto kind : every_kind) {
        BOOST_TEST_CONTEXT(kind)
        {
            virtual_fixture on(kind, sweeping);
            on.ready();
            BOOST_TEST(has_purge_lock(on));
            leave_locks(*on.memory, 1000);
            on.advance(2min);
            BOOST_TEST(count_stored(*on.memory) == 0U);
            leave_locks(*on.memory, 7);
            on.advance(2min);
            BOOST_TEST(count_stored(*on.memory) == 0U);
            on.locker.reset();
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(no_purge_runs_without_the_option)
{
    virtual_fixture on(backend_kind::scripted);
    leave_locks(*on.memory, 7);
    on.advance(4min);
    BOOST_TEST(on.idle());
    BOOST_TEST(on.script->count(operation::purge) == 0U);
    BOOST_TEST(count_stored(*on.memory) == 7U);
}

BOOST_AUTO_TEST_CASE(purge_continues_while_a_step_reports_more)
{
    virtual_fixture on(backend_kind::scripted);
    leave_locks(*on.memory, 95);
    on.advance(2s);
    on.locker.emplace(on.backend(), sweeping);
    on.ready();
    BOOST_TEST(on.script->count(operation::purge) >= 10U);
    BOOST_TEST(count_stored(*on.memory) == 0U);
    const auto before = on.script->count(operation::purge);
    on.advance(50s);
    BOOST_TEST(on.script->count(operation::purge) == before);
    on.advance(20s);
    BOOST_TEST(on.script->count(operation::purge) > before);
    on.locker.reset();
    on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(background_purge_ends_with_its_locker_and_releases_the_purge_lock)
{
    for (const auto kind : every_kind) {
        for (const bool has_begun : {false, true}) {
            BOOST_TEST_CONTEXT(kind << ", " << has_begun)
            {
                virtual_fixture on(kind, sweeping);
                if (has_begun)
                    on.advance(90s);
                BOOST_TEST(has_purge_lock(on) == has_begun);
                on.locker.reset();
                on.ready();
                on.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(shutdown_ends_the_background_purge)
{
    for (const auto kind : every_kind) {
        BOOST_TEST_CONTEXT(kind)
        {
            virtual_fixture on(kind, sweeping);
            on.advance(90s);
            const auto report = on.run(on.locker->shutdown());
            BOOST_TEST(report.clean());
            on.ready();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(context_of_a_background_purge_may_be_destroyed_at_any_time)
{
    for (const auto kind : every_kind) {
        for (const auto what : {operation::create, operation::purge, operation::extend}) {
            BOOST_TEST_CONTEXT(kind)
            {
                virtual_fixture on(kind, sweeping);
                // A backend that answers at once cannot be late.
                if (on.script && kind != backend_kind::immediate)
                    on.script->next(what, step::hold());
                on.advance(90s);
                on.context.reset();
                on.locker.reset();
            }
        }
        virtual_fixture on(kind, sweeping);
        on.context.reset();
    }
}

BOOST_AUTO_TEST_CASE(locker_may_be_destroyed_while_a_purge_is_unanswered)
{
    for (const auto what : {operation::create, operation::purge, operation::extend}) {
        virtual_fixture on(backend_kind::scripted, sweeping);
        on.script->next(what, step::hold());
        on.advance(90s);
        on.locker.reset();
        on.ready();
        on.script->deliver();
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(one_locker_purges_until_it_is_destroyed)
{
    for (const bool says_goodbye : {true, false}) {
        virtual_fixture on(backend_kind::scripted, sweeping);
        on.ready();
        auto other = std::make_shared<scripted_adapter>(on.memory, on.io().get_executor(), timing::posted);
        locker second(other, sweeping);
        on.advance_by_steps(5min, 10s);
        BOOST_TEST(on.script->count(operation::purge) >= 4U);
        BOOST_TEST(on.script->count(operation::create) == 1U);
        BOOST_TEST(other->count(operation::purge) == 0U);
        if (!says_goodbye)
            on.script->always(operation::release, step::hold());
        on.locker.reset();
        on.script->forget_calls();
        on.advance_by_steps(8min, 10s);
        BOOST_TEST(on.script->count(operation::purge) == 0U);
        BOOST_TEST(other->count(operation::purge) >= 2U);
        on.script->reset();
        on.script->deliver();
        on.run(second.shutdown());
    }
}

BOOST_AUTO_TEST_CASE(error_is_reported_once_and_the_purge_is_repeated)
{
    const auto recorded = std::make_shared<listener>();
    auto options = sweeping;
    options.observer = recorded;
    for (const auto what : {operation::create, operation::purge}) {
        recorded->warnings.clear();
        virtual_fixture on(backend_kind::scripted);
        on.script->always(what, step::fail(errc::unavailable, "nobody is there"));
        on.locker.emplace(on.backend(), options);
        on.advance_by_steps(5min, 10s);
        BOOST_TEST_REQUIRE(recorded->warnings.size() == 1U);
        BOOST_TEST(recorded->warnings[0].find("nobody is there") != std::string::npos);
        on.script->reset();
        leave_locks(*on.memory, 5);
        on.advance_by_steps(3min, 10s);
        BOOST_TEST(count_stored(*on.memory) == 0U);
        on.locker.reset();
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(lost_purge_lock_is_acquired_again)
{
    virtual_fixture on(backend_kind::scripted, sweeping);
    on.ready();
    BOOST_TEST(on.run(on.locker->break_lock(locker::purge_key)).size() == 1U);
    BOOST_TEST(!has_purge_lock(on));
    on.advance_by_steps(2min, 10s);
    BOOST_TEST(has_purge_lock(on));
    on.locker.reset();
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(child_of_a_fork_drops_the_purge_lock_and_acquires_its_own)
{
    virtual_fixture on(backend_kind::other_context, sweeping);
    on.ready();
    BOOST_TEST(has_purge_lock(on));
    on.io().notify_fork(asio::execution_context::fork_prepare);
    ++colock::detail::generation;
    on.io().notify_fork(asio::execution_context::fork_child);
    on.script->forget_calls();
    on.advance_by_steps(100s, 10s);
    // For the backend, the parent process still holds the purge lock.
    BOOST_TEST(on.script->count(operation::extend) == 0U);
    BOOST_TEST(on.script->count(operation::release) == 0U);
    BOOST_TEST(on.script->count(operation::purge) == 0U);
    on.advance_by_steps(5min, 10s);
    BOOST_TEST(on.script->count(operation::purge) > 0U);
    on.locker.reset();
    on.wind_down();
    BOOST_TEST(on.idle());
}

BOOST_AUTO_TEST_CASE(purge_that_fails_reports_the_removed_locks)
{
    virtual_fixture on(backend_kind::scripted);
    leave_locks(*on.memory, 600);
    on.advance(2s);
    on.script->next(operation::purge, step::pass());
    on.script->next(operation::purge, step::fail(errc::unavailable, "gone"));
    const auto removed = on.run(on.locker->purge());
    BOOST_TEST((removed.size() > 0U && removed.size() < 600U));
    on.script->next(operation::purge, step::fail(errc::unavailable, "gone"));
    COLOCK_THROWS(error, errc::unavailable, on.run(on.locker->purge()));
    BOOST_TEST(on.run(on.locker->purge()).size() == 600 - removed.size());
}

BOOST_AUTO_TEST_CASE(a_list_and_a_purge_let_others_run)
{
    virtual_fixture on;
    std::vector<lock> held;
    for (int i = 0; i < 2000; ++i)
        held.push_back(on.acquire("k" + std::to_string(i), {.ttl = i % 2 ? 1s : 1h}));
    for (const bool purges : {false, true}) {
        on.advance(purges ? 2s : 0s);
        std::size_t turns = 0;
        bool over = false;
        auto beat = on.start([](std::size_t& count, const bool& end) -> asio::awaitable<void> {
            while (!end) {
                ++count;
                co_await asio::post(asio::deferred);
            }
        }(turns, over));
        auto asked = on.start([](locker by, bool purge, bool& end) -> asio::awaitable<std::size_t> {
            const auto result = purge ? co_await by.purge() : co_await by.list();
            end = true;
            co_return result.size();
        }(*on.locker, purges, over));
        BOOST_TEST(asked.get(on.io()) == (purges ? 1000U : 2000U));
        BOOST_TEST(turns >= 4U);
        beat.get(on.io());
    }
    for (auto& each : held)
        on.run(each.release());
}

BOOST_AUTO_TEST_SUITE_END()
