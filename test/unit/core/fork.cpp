// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/detail/generation.hpp>

#include <boost/asio/post.hpp>

#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Makes this process behave like the child of a fork from now on.
void pretend_to_be_forked(asio::io_context& io)
{
    io.notify_fork(asio::execution_context::fork_prepare);
    ++colock::detail::generation;
    io.notify_fork(asio::execution_context::fork_child);
}

/// Number of requests that could change anything at the backend.
std::size_t sent_count(const scripted_adapter& script)
{
    return script.count(operation::create) + script.count(operation::release) + script.count(operation::abandon) +
           script.count(operation::extend) + script.count(operation::hand_over);
}

} // namespace

BOOST_AUTO_TEST_SUITE(forked)

BOOST_AUTO_TEST_CASE(held_lock_is_lost_in_the_child_and_not_released)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("held", {.ttl = 30s, .renewal = renewal::automatic});
    auto loss = env.start(held.lost());
    env.ready();
    env.script->forget_calls();
    pretend_to_be_forked(env.io());
    BOOST_TEST(!held.held());
    BOOST_TEST((loss.get(env.io()) == lost_reason::forked));
    BOOST_TEST(env.locker->stats().lost(lost_reason::forked) == 1U);
    COLOCK_THROWS(extend_error, errc::not_held, env.run(held.extend(30s)));
    COLOCK_THROWS(release_error, errc::not_held, env.run(held.release(on_failure::raise)));
    BOOST_TEST(!env.run(held.is_locked()));
    held = {};
    env.advance(60s);
    BOOST_TEST(sent_count(*env.script) == 0U);
    BOOST_TEST(env.idle());
}

BOOST_AUTO_TEST_CASE(body_is_stopped_in_the_child)
{
    virtual_fixture env(backend_kind::other_context);
    bool inside = false;
    auto guarded = env.start(env.locker->with_lock("held", [&inside]() -> asio::awaitable<void> {
        inside = true;
        lease_timer never(co_await asio::this_coro::executor, lease_clock::time_point::max());
        co_await never.async_wait(asio::use_awaitable);
    }));
    run_until(env.io(), [&] { return inside; });
    env.script->forget_calls();
    pretend_to_be_forked(env.io());
    COLOCK_THROWS(lost_error, errc::lost, (guarded.get(env.io()), 0));
    BOOST_TEST(sent_count(*env.script) == 0U);
    BOOST_TEST(env.idle());
}

BOOST_AUTO_TEST_CASE(pending_acquire_fails_in_the_child_in_every_phase)
{
    for (const auto kind : {backend_kind::memory, backend_kind::other_context}) {
        BOOST_TEST_CONTEXT(kind)
        {
            virtual_fixture env(kind);
            auto held = env.acquire("busy");
            auto head = env.start(env.locker->acquire("busy"));
            auto queued = env.start(env.locker->acquire("busy"));
            auto several = env.start(env.locker->acquire_all({"another", "busy"}));
            auto reader = env.start(env.locker->acquire("busy", {.mode = lock_mode::shared}));
            env.ready();
            auto not_begun = env.locker->acquire("other");
            if (env.script)
                env.script->forget_calls();
            pretend_to_be_forked(env.io());
            COLOCK_THROWS(create_error, errc::forked, head.get(env.io()));
            COLOCK_THROWS(create_error, errc::forked, queued.get(env.io()));
            COLOCK_THROWS(create_error, errc::forked, reader.get(env.io()));
            COLOCK_THROWS(create_error, errc::forked, several.get(env.io()));
            COLOCK_THROWS(create_error, errc::forked, env.run(std::move(not_begun)));
            BOOST_TEST(env.locker->stats().waiting == 0U);
            if (env.script)
                BOOST_TEST(sent_count(*env.script) == 0U);
            BOOST_TEST(env.idle());
        }
    }
}

BOOST_AUTO_TEST_CASE(grant_that_arrives_after_the_fork_is_ignored_in_the_child)
{
    virtual_fixture env(backend_kind::other_context);
    env.script->next(operation::create, step::hold());
    env.script->next(operation::create, step::hold());
    auto waiting = env.start(env.locker->acquire("a"));
    auto single_attempt = env.start(env.locker->try_acquire("b"));
    env.ready();
    pretend_to_be_forked(env.io());
    env.script->forget_calls();
    while (env.script->deliver())
        continue;
    COLOCK_THROWS(create_error, errc::forked, waiting.get(env.io()));
    COLOCK_THROWS(create_error, errc::forked, single_attempt.get(env.io()));
    env.advance(60s);
    BOOST_TEST(sent_count(*env.script) == 0U);
    BOOST_TEST(env.locker->stats().held == 0U);
    BOOST_TEST(env.locker->stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(release_in_flight_is_settled_by_the_parent)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("a");
    env.script->next(operation::release, step::hold());
    auto releasing = env.start(held.release(on_failure::raise));
    auto left = env.acquire("b");
    env.script->always(operation::release, step::fail(errc::unavailable));
    env.script->always(operation::abandon, step::fail(errc::unavailable));
    left = {};
    env.ready();
    BOOST_TEST(env.locker->stats().settling == 2U);
    pretend_to_be_forked(env.io());
    env.script->forget_calls();
    COLOCK_THROWS(release_error, errc::forked, (releasing.get(env.io()), 0));
    env.script->deliver();
    env.advance(10min);
    BOOST_TEST(sent_count(*env.script) == 0U);
    BOOST_TEST(env.locker->stats().settling == 0U);
    BOOST_TEST(env.run(env.locker->shutdown(1s)).clean());
    BOOST_TEST(env.idle());
}

BOOST_AUTO_TEST_CASE(extend_in_flight_ends_with_forked)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("a");
    env.script->next(operation::extend, step::hold());
    auto extended = env.start(held.extend(30s));
    env.ready();
    auto queued = env.start(held.extend(40s));
    env.ready();
    pretend_to_be_forked(env.io());
    COLOCK_THROWS(extend_error, errc::forked, (extended.get(env.io()), 0));
    COLOCK_THROWS(extend_error, errc::not_held, (queued.get(env.io()), 0));
    env.script->deliver();
    BOOST_TEST(env.idle());
}

BOOST_AUTO_TEST_CASE(waiting_shutdown_ends_in_the_child)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("a");
    env.script->next(operation::release, step::hold());
    auto ends = env.start(env.locker->shutdown(std::chrono::hours(1)));
    env.ready();
    pretend_to_be_forked(env.io());
    BOOST_TEST(ends.get(env.io()).clean());
}

BOOST_AUTO_TEST_CASE(memory_store_of_the_child_is_empty)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 0ms});
    auto waiting = env.start(env.locker->acquire("k"));
    env.ready();
    pretend_to_be_forked(env.io());
    BOOST_TEST(env.stored().empty());
    auto own = env.acquire("k");
    BOOST_TEST(own.held());
    COLOCK_THROWS(create_error, errc::forked, waiting.get(env.io()));
    env.run(held.release());
    BOOST_TEST(own.held());
    env.run(own.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
