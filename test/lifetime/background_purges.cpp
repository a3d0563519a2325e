// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/detail/generation.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

const locker_options purging{.purge = background_purge{.interval = 1min, .limit = 10}};

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
        store.start_listing({.action = listing_action::purge, .cursor = cursor}, [&](list_outcome step) {
            count += step.locks.size();
            cursor = std::move(step.next);
        });
    } while (!cursor.empty());
    return count;
}

bool has_purge_lock(const virtual_fixture& env)
{
    return std::ranges::any_of(env.stored(), [](const auto& each) { return each.key == locker::purge_key; });
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
            virtual_fixture env(kind, purging);
            env.ready();
            BOOST_TEST(has_purge_lock(env));
            leave_locks(*env.memory, 1000);
            env.advance(2min);
            BOOST_TEST(count_stored(*env.memory) == 0U);
            leave_locks(*env.memory, 7);
            env.advance(2min);
            BOOST_TEST(count_stored(*env.memory) == 0U);
            env.locker.reset();
            env.wind_down_and_check();
        }
    }
}

BOOST_AUTO_TEST_CASE(no_purge_runs_without_the_option)
{
    virtual_fixture env(backend_kind::scripted);
    leave_locks(*env.memory, 7);
    env.advance(4min);
    BOOST_TEST(env.idle());
    BOOST_TEST(env.script->count(operation::purge) == 0U);
    BOOST_TEST(count_stored(*env.memory) == 7U);
}

BOOST_AUTO_TEST_CASE(purge_continues_while_a_step_reports_more)
{
    virtual_fixture env(backend_kind::scripted);
    leave_locks(*env.memory, 95);
    env.advance(2s);
    env.locker.emplace(env.backend(), purging);
    env.ready();
    BOOST_TEST(env.script->count(operation::purge) >= 10U);
    BOOST_TEST(count_stored(*env.memory) == 0U);
    const auto before = env.script->count(operation::purge);
    env.advance(50s);
    BOOST_TEST(env.script->count(operation::purge) == before);
    env.advance(20s);
    BOOST_TEST(env.script->count(operation::purge) > before);
    env.locker.reset();
    env.ready();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(background_purge_ends_with_its_locker_and_releases_the_purge_lock)
{
    for (const auto kind : every_kind) {
        for (const bool has_begun : {false, true}) {
            BOOST_TEST_CONTEXT(kind << ", " << has_begun)
            {
                virtual_fixture env(kind, purging);
                if (has_begun)
                    env.advance(90s);
                BOOST_TEST(has_purge_lock(env) == has_begun);
                env.locker.reset();
                env.ready();
                env.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(context_of_a_background_purge_may_be_destroyed_at_any_time)
{
    for (const auto kind : every_kind) {
        for (const auto what : {operation::create, operation::purge, operation::extend}) {
            BOOST_TEST_CONTEXT(kind)
            {
                virtual_fixture env(kind, purging);
                // A backend that answers at once cannot be late.
                if (env.script && kind != backend_kind::immediate)
                    env.script->next(what, step::hold());
                env.advance(90s);
                env.context.reset();
                env.locker.reset();
            }
        }
        virtual_fixture env(kind, purging);
        env.context.reset();
    }
}

BOOST_AUTO_TEST_CASE(locker_may_be_destroyed_while_a_purge_is_unanswered)
{
    for (const auto what : {operation::create, operation::purge, operation::extend}) {
        virtual_fixture env(backend_kind::scripted, purging);
        env.script->next(what, step::hold());
        env.advance(90s);
        env.locker.reset();
        env.ready();
        env.script->deliver();
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(one_locker_purges_until_it_is_destroyed)
{
    for (const bool says_goodbye : {true, false}) {
        virtual_fixture env(backend_kind::scripted, purging);
        env.ready();
        auto other = std::make_shared<instrumented_adapter>(env.memory, env.io().get_executor(), timing::posted);
        locker second(other, purging);
        env.advance_by_steps(5min, 10s);
        BOOST_TEST(env.script->count(operation::purge) >= 4U);
        BOOST_TEST(env.script->count(operation::create) == 1U);
        BOOST_TEST(other->count(operation::purge) == 0U);
        if (!says_goodbye)
            env.script->always(operation::release, step::hold());
        env.locker.reset();
        env.script->forget_calls();
        env.advance_by_steps(8min, 10s);
        BOOST_TEST(env.script->count(operation::purge) == 0U);
        BOOST_TEST(other->count(operation::purge) >= 2U);
        env.script->reset();
        env.script->deliver();
        env.run(second.shutdown());
    }
}

BOOST_AUTO_TEST_CASE(error_is_reported_once_and_the_purge_is_repeated)
{
    const auto recorded = std::make_shared<listener>();
    auto options = purging;
    options.observer = recorded;
    for (const auto what : {operation::create, operation::purge}) {
        recorded->warnings.clear();
        virtual_fixture env(backend_kind::scripted);
        env.script->always(what, step::fail(errc::unavailable, "nobody is there"));
        env.locker.emplace(env.backend(), options);
        env.advance_by_steps(5min, 10s);
        BOOST_TEST_REQUIRE(recorded->warnings.size() == 1U);
        BOOST_TEST(recorded->warnings[0].find("nobody is there") != std::string::npos);
        env.script->reset();
        leave_locks(*env.memory, 5);
        env.advance_by_steps(3min, 10s);
        BOOST_TEST(count_stored(*env.memory) == 0U);
        env.locker.reset();
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(lost_purge_lock_is_acquired_again)
{
    virtual_fixture env(backend_kind::scripted, purging);
    env.ready();
    BOOST_TEST(env.run(env.locker->break_lock(locker::purge_key)).size() == 1U);
    BOOST_TEST(!has_purge_lock(env));
    env.advance_by_steps(2min, 10s);
    BOOST_TEST(has_purge_lock(env));
    env.locker.reset();
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(a_list_and_a_purge_let_others_run)
{
    virtual_fixture env;
    std::vector<lock> held;
    for (int i = 0; i < 2000; ++i)
        held.push_back(env.acquire("k" + std::to_string(i), {.ttl = i % 2 ? 1s : 1h}));
    for (const bool purges : {false, true}) {
        env.advance(purges ? 2s : 0s);
        std::size_t turns = 0;
        bool over = false;
        auto beat = env.start([](std::size_t& count, const bool& end) -> asio::awaitable<void> {
            while (!end) {
                ++count;
                co_await asio::post(asio::deferred);
            }
        }(turns, over));
        auto asked = env.start([](locker by, bool purge, bool& end) -> asio::awaitable<std::size_t> {
            const auto result = purge ? co_await by.purge() : co_await by.list();
            end = true;
            co_return result.size();
        }(*env.locker, purges, over));
        BOOST_TEST(asked.get(env.io()) == (purges ? 1000U : 2000U));
        BOOST_TEST(turns >= 4U);
        beat.get(env.io());
    }
    for (auto& each : held)
        env.run(each.release());
}

BOOST_AUTO_TEST_SUITE_END()
