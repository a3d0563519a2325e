// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// A lock that is broken while another caller holds it.
struct break_fixture : virtual_fixture
{
    colock::locker other{script};
    lock stuck = run(other.acquire("k"));

    break_fixture() : virtual_fixture(backend_kind::scripted) {}
};

} // namespace

BOOST_AUTO_TEST_SUITE(breaks)

BOOST_AUTO_TEST_CASE(lock_granted_after_the_break_is_kept)
{
    for (const bool is_verified : {true, false}) {
        break_fixture env;
        if (!is_verified)
            env.script->next(operation::is_valid, step::fail(errc::unavailable));
        // Both answers arrive before either coroutine is resumed.
        auto broken = env.start(env.locker->break_lock("k"));
        auto acquired = env.start(env.locker->acquire("k"));
        env.ready();
        BOOST_TEST(broken.get(env.io()).size() == 1U);
        BOOST_TEST(env.script->unused_count() == 0U);
        lock fresh = acquired.get(env.io());
        BOOST_TEST(fresh.held());
        BOOST_TEST(env.run(fresh.is_locked()));
        env.run(fresh.release(on_failure::raise));
        env.stuck = {};
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(lock_granted_before_the_break_arrived_has_ended)
{
    virtual_fixture env(backend_kind::scripted);
    lock late;
    // The break is sent before the grant is known, and executed after the grant.
    env.script->next(operation::break_key, step::pass().before([&] { late = env.run(env.locker->acquire("k")); }));
    env.run(env.locker->break_lock("k"));
    BOOST_TEST(!late.held());
    BOOST_TEST((env.run(late.lost()) != lost_reason::released));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(break_ends_all_handles_of_the_locker_at_once)
{
    virtual_fixture env(backend_kind::scripted);
    auto first = env.acquire("k", shared);
    auto second = env.acquire("k", shared);
    auto elsewhere = env.acquire("other");
    BOOST_TEST(env.run(env.locker->break_lock("k")).size() == 2U);
    BOOST_TEST((env.run(first.lost()) == lost_reason::broken));
    BOOST_TEST((env.run(second.lost()) == lost_reason::broken));
    BOOST_TEST(elsewhere.held());
    elsewhere = {};
    env.check_clean();
}

namespace {

/// Returns a step that grants, and then removes the holders of "k", as an administrator of another process does.
step granted_and_then_broken(virtual_fixture& env)
{
    return step::pass().after([&env] { driver(env.io(), env.memory).break_key("k"); });
}

void check_broken(virtual_fixture& env, lock& held)
{
    // A lock without ttl whose loss was forgotten would never end.
    BOOST_TEST_REQUIRE(!held.held());
    BOOST_TEST((env.run(held.lost()) == lost_reason::broken));
    BOOST_TEST(env.locker->stats().lost(lost_reason::broken) == 1U);
    BOOST_TEST(env.locker->held_locks().empty());
    COLOCK_THROWS(release_error, errc::not_held, env.run(held.release(on_failure::raise)));
    held = {};
    env.wind_down_and_check();
}

} // namespace

BOOST_AUTO_TEST_CASE(break_before_the_grant_is_processed_ends_the_lock)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        {
            virtual_fixture env(kind);
            env.script->next(operation::create, granted_and_then_broken(env));
            auto held = env.acquire("k", {.ttl = 0ms});
            check_broken(env, held);
        }
        {
            virtual_fixture env(kind);
            env.script->next(operation::create, granted_and_then_broken(env));
            auto held = env.run(env.locker->try_acquire("k"));
            BOOST_TEST_REQUIRE(held.has_value());
            check_broken(env, *held);
        }
        {
            virtual_fixture env(kind);
            env.script->next(operation::create, granted_and_then_broken(env));
            bool ran = false;
            COLOCK_THROWS(lost_error, errc::lost, env.run(env.locker->with_lock("k", [&] { ran = true; })));
            BOOST_TEST(!ran);
            env.wind_down_and_check();
        }
        {
            virtual_fixture env(kind);
            auto given_up = env.acquire("k");
            const auto ticket = env.run(given_up.detach());
            env.script->next(operation::adopt, granted_and_then_broken(env));
            auto held = env.run(env.locker->adopt(ticket));
            check_broken(env, held);
        }
        {
            virtual_fixture env(kind);
            auto first = env.acquire("k");
            auto second = env.start(env.locker->acquire("k"));
            env.ready();
            env.script->next(operation::hand_over, granted_and_then_broken(env));
            first = {};
            auto held = second.get(env.io());
            check_broken(env, held);
        }
        {
            // A lock of a group is lost before the group is complete: the group starts again, and the loss is not
            // reported.
            virtual_fixture env(kind);
            env.script->next(operation::create_all, granted_and_then_broken(env));
            auto group = env.start(env.locker->acquire_all({"a", "k"}, {.retry = retry_policy::fixed(1ms)}));
            env.ready();
            env.advance(1s);
            auto held = group.get(env.io());
            BOOST_TEST(held.held());
            BOOST_TEST(env.locker->stats().lost(lost_reason::broken) == 0U);
            static_cast<void>(env.run(held.release()));
            env.wind_down_and_check();
        }
    }
}

BOOST_AUTO_TEST_CASE(grant_that_is_lost_before_its_coroutine_is_resumed_is_a_lost_lock)
{
    for (const bool tries : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        const auto acquire = [](locker by, bool single) -> asio::awaitable<lock> {
            if (!single)
                co_return co_await by.acquire("k");
            auto granted = co_await by.try_acquire("k");
            co_return std::move(granted.value());
        };
        auto granted = env.start(acquire(*env.locker, tries));
        env.io().restart();
        while (env.locker->stats().held == 0)
            BOOST_TEST_REQUIRE(env.io().poll_one() == 1U);
        BOOST_TEST_REQUIRE(!granted.done());
        env.memory->start_listing(
            {.action = listing_action::break_key, .filter = {.key = "k"}}, [](const list_outcome&) {});
        const auto held = granted.get(env.io(), std::source_location::current(), {.handlers = 1000});
        BOOST_TEST(!held.held());
        BOOST_TEST((env.run(held.lost()) == lost_reason::broken));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(group_release_before_the_grant_is_processed_ends_the_lock)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        env.script->next(
            operation::create, step::pass().after([&] { driver(env.io(), env.memory).release_group("team"); }));
        auto group = env.locker->group("team");
        env.run(group.acquire("k"));
        auto held = group.take("k");
        check_broken(env, held);
    }
}

BOOST_AUTO_TEST_CASE(grant_that_is_unanswered_when_a_break_ends_is_verified)
{
    for (const bool stays_valid : {true, false}) {
        virtual_fixture env(backend_kind::scripted);
        // The answer of the break overtakes the answer of the create.
        env.script->next(operation::create, step::pass().before([&] { env.run(env.locker->break_lock("k")); }));
        env.script->next(operation::is_valid, stays_valid ? step::pass() : step::not_held());
        auto held = env.acquire("k");
        env.ready();
        BOOST_TEST(env.script->unused_count() == 0U);
        BOOST_TEST(held.held() == stays_valid);
        if (stays_valid)
            env.run(held.release(on_failure::raise));
        else
            BOOST_TEST((env.run(held.lost()) == lost_reason::taken));
        held = {};
        env.wind_down_and_check();
    }
}

namespace {

/// Sends a break whose answer is held back, and cancels the caller.
void break_and_cancel(virtual_fixture& env)
{
    asio::cancellation_signal cancel;
    error_code result;
    env.locker->async_break_lock("k", asio::bind_cancellation_slot(cancel.slot(),
                                          [&](error_code code, const std::vector<lock_status>&) { result = code; }));
    env.ready();
    cancel.emit(asio::cancellation_type::terminal);
    env.ready();
    BOOST_TEST((result == asio::error::operation_aborted));
}

} // namespace

BOOST_AUTO_TEST_CASE(handles_are_verified_after_a_break_that_may_have_been_carried_out)
{
    // The backend below would report the end of a claim at once. Therefore the break is not executed, and the answer to
    // the query shows whether the lock is still held.
    const auto check_verified = [](virtual_fixture& env, lock& held, bool stays_valid) {
        BOOST_TEST(env.script->unused_count() == 0U);
        BOOST_TEST(held.held() == stays_valid);
        if (!stays_valid)
            BOOST_TEST((env.run(held.lost()) == lost_reason::taken));
        held = {};
        env.wind_down_and_check();
    };
    for (const bool stays_valid : {true, false}) {
        const auto answer = [&] { return stays_valid ? step::pass() : step::not_held(); };
        {
            virtual_fixture env(backend_kind::scripted);
            auto held = env.acquire("k", {.ttl = 0ms});
            env.script->next(operation::break_key, step::lose_request());
            env.script->next(operation::is_valid, answer());
            COLOCK_THROWS(error, errc::outcome_unknown, env.run(env.locker->break_lock("k")));
            env.ready();
            check_verified(env, held, stays_valid);
        }
        {
            // The caller of the break is cancelled before the break is answered.
            virtual_fixture env(backend_kind::scripted);
            auto held = env.acquire("k", {.ttl = 0ms});
            env.script->next(operation::break_key, step::hold());
            env.script->next(operation::is_valid, answer());
            break_and_cancel(env);
            BOOST_TEST(env.script->unused_count() == 1U);
            env.script->discard();
            env.ready();
            check_verified(env, held, stays_valid);
        }
        {
            // The answer arrives after the operation timeout, while an extension is unanswered.
            virtual_fixture env(backend_kind::scripted);
            auto held = env.acquire("k", {.ttl = 1h});
            env.script->next(operation::break_key, step::hold());
            env.script->next(operation::is_valid, answer());
            auto broken = env.start(env.locker->break_lock("k"));
            env.ready();
            env.advance(1min);
            COLOCK_THROWS(error, errc::outcome_unknown, broken.get(env.io()));
            env.script->next(operation::extend, step::pass().after([&] { env.script->discard(); }));
            env.run(held.extend(2h));
            env.ready();
            check_verified(env, held, stays_valid);
        }
    }
}

BOOST_AUTO_TEST_CASE(cancelled_break_ends_the_handles_when_it_is_answered)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 0ms});
    env.script->next(operation::break_key, step::hold());
    break_and_cancel(env);
    BOOST_TEST(held.held());
    env.script->deliver();
    env.ready();
    BOOST_TEST((env.run(held.lost()) == lost_reason::broken));
    held = {};
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(loss_of_an_earlier_grant_does_not_end_a_later_one)
{
    virtual_fixture env(backend_kind::scripted);
    // The first reply is lost, and with it the grant. The second create is sent after the break.
    env.script->next(operation::create, step::lose_reply());
    auto acquiring = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1s)}));
    env.ready();
    BOOST_TEST(driver(env.io(), env.memory).break_key("k").size() == 1U);
    env.advance(2s);
    auto held = acquiring.get(env.io());
    BOOST_TEST(held.held());
    env.run(held.release(on_failure::raise));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(waits)

namespace {

/// Releases a lock as soon as another caller waits.
struct release_on_wait : observer
{
    lock held;
    void waiting(std::string_view) noexcept override { held = {}; }
};

} // namespace

BOOST_AUTO_TEST_CASE(no_operation_begins_for_a_claim_before_its_wait_begins)
{
    auto seen = std::make_shared<release_on_wait>();
    virtual_fixture env(backend_kind::scripted, {.observer = seen});
    seen->held = env.acquire("k");
    env.script->forget_calls();
    lock next = env.run(env.locker->acquire("k"));
    BOOST_TEST(next.held());
    bool waits = false;
    for (const auto& call : env.script->calls()) {
        if (call.what == operation::wait) {
            BOOST_TEST(!waits);
            waits = true;
        }
        BOOST_TEST((call.what != operation::hand_over || waits), "handed over before the wait began");
    }
    next = {};
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(expiries)

BOOST_AUTO_TEST_CASE(release_detects_that_another_holder_has_expired)
{
    virtual_fixture env(backend_kind::memory);
    colock::locker other(env.memory);
    auto brief = env.acquire("k", {.ttl = 10s, .mode = lock_mode::shared});
    auto longer = env.acquire("k", {.ttl = 1h, .mode = lock_mode::shared});
    auto writer = env.start(other.acquire("k", {.retry = retry_policy::fixed(24h)}));
    env.ready();
    // The writer's own timer is due in an hour, and nobody checks the holder that has expired.
    env.clock.skip(11s);
    env.run(longer.release());
    env.ready();
    BOOST_TEST_REQUIRE(writer.done());
    BOOST_TEST(writer.get(env.io()).held());
    brief = {};
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
