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
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("held", {.ttl = 30s, .renewal = renewal::automatic});
    auto loss = on.start(held.lost());
    on.ready();
    on.script->forget_calls();
    pretend_to_be_forked(on.io());
    BOOST_TEST(!held.held());
    BOOST_TEST((loss.get(on.io()) == lost_reason::forked));
    BOOST_TEST(on.locker->stats().lost(lost_reason::forked) == 1U);
    COLOCK_THROWS(extend_error, errc::not_held, on.run(held.extend(30s)));
    COLOCK_THROWS(release_error, errc::not_held, on.run(held.release(on_failure::raise)));
    BOOST_TEST(!on.run(held.is_locked()));
    held = {};
    on.advance(60s);
    BOOST_TEST(sent_count(*on.script) == 0U);
    BOOST_TEST(on.idle());
}

BOOST_AUTO_TEST_CASE(body_is_stopped_in_the_child)
{
    virtual_fixture on(backend_kind::other_context);
    bool inside = false;
    auto guarded = on.start(on.locker->with_lock("held", [&inside]() -> asio::awaitable<void> {
        inside = true;
        lease_timer never(co_await asio::this_coro::executor, lease_clock::time_point::max());
        co_await never.async_wait(asio::use_awaitable);
    }));
    run_until(on.io(), [&] { return inside; });
    on.script->forget_calls();
    pretend_to_be_forked(on.io());
    COLOCK_THROWS(lost_error, errc::lost, (guarded.get(on.io()), 0));
    BOOST_TEST(sent_count(*on.script) == 0U);
    BOOST_TEST(on.idle());
}

BOOST_AUTO_TEST_CASE(pending_acquire_fails_in_the_child_in_every_phase)
{
    for (const auto kind : {backend_kind::memory, backend_kind::other_context}) {
        BOOST_TEST_CONTEXT(kind)
        {
            virtual_fixture on(kind);
            auto held = on.acquire("busy");
            auto head = on.start(on.locker->acquire("busy"));
            auto queued = on.start(on.locker->acquire("busy"));
            auto several = on.start(on.locker->acquire_all({"another", "busy"}));
            auto reader = on.start(on.locker->acquire("busy", {.mode = lock_mode::shared}));
            on.ready();
            auto not_begun = on.locker->acquire("other");
            if (on.script)
                on.script->forget_calls();
            pretend_to_be_forked(on.io());
            COLOCK_THROWS(create_error, errc::forked, head.get(on.io()));
            COLOCK_THROWS(create_error, errc::forked, queued.get(on.io()));
            COLOCK_THROWS(create_error, errc::forked, reader.get(on.io()));
            COLOCK_THROWS(create_error, errc::forked, several.get(on.io()));
            COLOCK_THROWS(create_error, errc::forked, on.run(std::move(not_begun)));
            BOOST_TEST(on.locker->stats().waiting == 0U);
            if (on.script)
                BOOST_TEST(sent_count(*on.script) == 0U);
            BOOST_TEST(on.idle());
        }
    }
}

BOOST_AUTO_TEST_CASE(grant_that_arrives_after_the_fork_is_ignored_in_the_child)
{
    virtual_fixture on(backend_kind::other_context);
    on.script->next(operation::create, step::hold());
    on.script->next(operation::create, step::hold());
    auto waits = on.start(on.locker->acquire("a"));
    auto tries = on.start(on.locker->try_acquire("b"));
    on.ready();
    pretend_to_be_forked(on.io());
    on.script->forget_calls();
    while (on.script->deliver())
        continue;
    COLOCK_THROWS(create_error, errc::forked, waits.get(on.io()));
    COLOCK_THROWS(create_error, errc::forked, tries.get(on.io()));
    on.advance(60s);
    BOOST_TEST(sent_count(*on.script) == 0U);
    BOOST_TEST(on.locker->stats().held == 0U);
    BOOST_TEST(on.locker->stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(release_in_flight_is_settled_by_the_parent)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("a");
    on.script->next(operation::release, step::hold());
    auto releasing = on.start(held.release(on_failure::raise));
    auto left = on.acquire("b");
    on.script->always(operation::release, step::fail(errc::unavailable));
    on.script->always(operation::abandon, step::fail(errc::unavailable));
    left = {};
    on.ready();
    BOOST_TEST(on.locker->stats().settling == 2U);
    pretend_to_be_forked(on.io());
    on.script->forget_calls();
    COLOCK_THROWS(release_error, errc::forked, (releasing.get(on.io()), 0));
    on.script->deliver();
    on.advance(10min);
    BOOST_TEST(sent_count(*on.script) == 0U);
    BOOST_TEST(on.locker->stats().settling == 0U);
    BOOST_TEST(on.run(on.locker->shutdown(1s)).clean());
    BOOST_TEST(on.idle());
}

BOOST_AUTO_TEST_CASE(extend_in_flight_ends_with_forked)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("a");
    on.script->next(operation::extend, step::hold());
    auto extended = on.start(held.extend(30s));
    on.ready();
    auto queued = on.start(held.extend(40s));
    on.ready();
    pretend_to_be_forked(on.io());
    COLOCK_THROWS(extend_error, errc::forked, (extended.get(on.io()), 0));
    COLOCK_THROWS(extend_error, errc::not_held, (queued.get(on.io()), 0));
    on.script->deliver();
    BOOST_TEST(on.idle());
}

BOOST_AUTO_TEST_CASE(waiting_shutdown_ends_in_the_child)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("a");
    on.script->next(operation::release, step::hold());
    auto ends = on.start(on.locker->shutdown(std::chrono::hours(1)));
    on.ready();
    pretend_to_be_forked(on.io());
    BOOST_TEST(ends.get(on.io()).clean());
}

BOOST_AUTO_TEST_CASE(memory_store_of_the_child_is_empty)
{
    virtual_fixture on;
    auto held = on.acquire("k", {.ttl = 0ms});
    auto waits = on.start(on.locker->acquire("k"));
    on.ready();
    pretend_to_be_forked(on.io());
    BOOST_TEST(on.stored().empty());
    auto own = on.acquire("k");
    BOOST_TEST(own.held());
    COLOCK_THROWS(create_error, errc::forked, waits.get(on.io()));
    on.run(held.release());
    BOOST_TEST(own.held());
    on.run(own.release(on_failure::raise));
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
