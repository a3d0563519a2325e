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
    break_fixture on;
    // Both answers arrive before either coroutine is resumed.
    auto broken = on.start(on.locker->break_lock("k"));
    auto acquired = on.start(on.locker->acquire("k"));
    on.ready();
    BOOST_TEST(broken.get(on.io()).size() == 1U);
    lock fresh = acquired.get(on.io());
    BOOST_TEST(fresh.held());
    BOOST_TEST(on.run(fresh.is_locked()));
    on.run(fresh.release(on_failure::raise));
    on.stuck = {};
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(lock_granted_before_the_break_arrived_has_ended)
{
    virtual_fixture on(backend_kind::scripted);
    lock late;
    // The break is sent before the grant is known, and executed after the grant.
    on.script->next(operation::break_key, step::pass().before([&] { late = on.run(on.locker->acquire("k")); }));
    on.run(on.locker->break_lock("k"));
    BOOST_TEST(!late.held());
    BOOST_TEST((on.run(late.lost()) != lost_reason::released));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(break_ends_all_handles_of_the_locker_at_once)
{
    virtual_fixture on(backend_kind::scripted);
    auto first = on.acquire("k", shared);
    auto second = on.acquire("k", shared);
    auto elsewhere = on.acquire("other");
    BOOST_TEST(on.run(on.locker->break_lock("k")).size() == 2U);
    BOOST_TEST((on.run(first.lost()) == lost_reason::broken));
    BOOST_TEST((on.run(second.lost()) == lost_reason::broken));
    BOOST_TEST(elsewhere.held());
    elsewhere = {};
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(lock_that_cannot_be_verified_is_kept)
{
    break_fixture on;
    on.script->next(operation::is_valid, step::fail(errc::unavailable));
    auto broken = on.start(on.locker->break_lock("k"));
    auto acquired = on.start(on.locker->acquire("k"));
    on.ready();
    BOOST_TEST(broken.get(on.io()).size() == 1U);
    BOOST_TEST(on.script->unused() == 0U);
    lock fresh = acquired.get(on.io());
    BOOST_TEST(fresh.held());
    fresh = {};
    on.stuck = {};
    on.check_clean();
}

namespace {

/// Returns a step that grants, and then removes the holders of "k", as an administrator of another process does.
step granted_and_then_broken(virtual_fixture& on)
{
    return step::pass().after([&on] { driver(on.io(), on.memory).break_key("k"); });
}

void check_broken(virtual_fixture& on, lock& held)
{
    BOOST_TEST(!held.held());
    BOOST_TEST((on.run(held.lost()) == lost_reason::broken));
    BOOST_TEST(on.locker->stats().lost(lost_reason::broken) == 1U);
    BOOST_TEST(on.locker->held_locks().empty());
    COLOCK_THROWS(release_error, errc::not_held, on.run(held.release(on_failure::raise)));
    held = {};
    on.wind_down();
    on.check_clean();
}

} // namespace

BOOST_AUTO_TEST_CASE(break_before_the_grant_is_processed_ends_the_lock)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        {
            virtual_fixture on(kind);
            on.script->next(operation::create, granted_and_then_broken(on));
            auto held = on.acquire("k", {.ttl = 0ms});
            check_broken(on, held);
        }
        {
            virtual_fixture on(kind);
            on.script->next(operation::create, granted_and_then_broken(on));
            auto held = on.run(on.locker->try_acquire("k"));
            BOOST_TEST_REQUIRE(held.has_value());
            check_broken(on, *held);
        }
        {
            virtual_fixture on(kind);
            on.script->next(operation::create, granted_and_then_broken(on));
            bool ran = false;
            COLOCK_THROWS(lost_error, errc::lost, on.run(on.locker->with_lock("k", [&] { ran = true; })));
            BOOST_TEST(!ran);
            on.wind_down();
            on.check_clean();
        }
        {
            virtual_fixture on(kind);
            auto given_up = on.acquire("k");
            const auto ticket = on.run(given_up.detach());
            on.script->next(operation::adopt, granted_and_then_broken(on));
            auto held = on.run(on.locker->adopt(ticket));
            check_broken(on, held);
        }
        {
            virtual_fixture on(kind);
            auto first = on.acquire("k");
            auto second = on.start(on.locker->acquire("k"));
            on.ready();
            on.script->next(operation::hand_over, granted_and_then_broken(on));
            first = {};
            auto held = second.get(on.io());
            check_broken(on, held);
        }
        {
            // A lock of a group is lost before the group is complete: the group starts again, and the loss is not
            // reported.
            virtual_fixture on(kind);
            on.script->next(operation::create_all, granted_and_then_broken(on));
            auto group = on.start(on.locker->acquire_all({"a", "k"}, {.retry = retry_policy::fixed(1ms)}));
            on.ready();
            on.advance(1s);
            auto held = group.get(on.io());
            BOOST_TEST(held.held());
            BOOST_TEST(on.locker->stats().lost(lost_reason::broken) == 0U);
            static_cast<void>(on.run(held.release()));
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(grant_that_is_lost_before_its_coroutine_is_resumed_is_a_lost_lock)
{
    for (const bool tries : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        const auto acquire = [](locker by, bool single) -> asio::awaitable<lock> {
            if (!single)
                co_return co_await by.acquire("k");
            auto granted = co_await by.try_acquire("k");
            co_return std::move(granted.value());
        };
        auto granted = on.start(acquire(*on.locker, tries));
        on.io().restart();
        while (on.locker->stats().held == 0)
            BOOST_TEST_REQUIRE(on.io().poll_one() == 1U);
        BOOST_TEST_REQUIRE(!granted.done());
        on.memory->start_break("k", [](const list_outcome&) {});
        const auto held = granted.get(on.io(), std::source_location::current(), {.handlers = 1000});
        BOOST_TEST(!held.held());
        BOOST_TEST((on.run(held.lost()) == lost_reason::broken));
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(group_release_before_the_grant_is_processed_ends_the_lock)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture on(kind);
        on.script->next(
            operation::create, step::pass().after([&] { driver(on.io(), on.memory).release_group("team"); }));
        auto group = on.locker->group("team");
        on.run(group.acquire("k"));
        auto held = group.take("k");
        check_broken(on, held);
    }
}

BOOST_AUTO_TEST_CASE(grant_that_is_unanswered_when_a_break_ends_is_verified)
{
    for (const bool stays_valid : {true, false}) {
        virtual_fixture on(backend_kind::scripted);
        // The answer of the break overtakes the answer of the create.
        on.script->next(operation::create, step::pass().before([&] { on.run(on.locker->break_lock("k")); }));
        on.script->next(operation::is_valid, stays_valid ? step::pass() : step::not_held());
        auto held = on.acquire("k");
        on.ready();
        BOOST_TEST(on.script->unused() == 0U);
        BOOST_TEST(held.held() == stays_valid);
        if (stays_valid)
            on.run(held.release(on_failure::raise));
        else
            BOOST_TEST((on.run(held.lost()) == lost_reason::taken));
        held = {};
        on.wind_down();
        on.check_clean();
    }
}

namespace {

/// Sends a break whose answer is held back, and cancels the caller.
void break_and_cancel(virtual_fixture& on)
{
    asio::cancellation_signal cancel;
    error_code result;
    on.locker->async_break_lock("k", asio::bind_cancellation_slot(cancel.slot(),
                                         [&](error_code code, const std::vector<lock_status>&) { result = code; }));
    on.ready();
    cancel.emit(asio::cancellation_type::terminal);
    on.ready();
    BOOST_TEST((result == asio::error::operation_aborted));
}

} // namespace

BOOST_AUTO_TEST_CASE(handles_are_verified_after_a_break_that_may_have_been_carried_out)
{
    // The backend below would report the end of a claim at once. Therefore the break is not executed, and the answer to
    // the query shows whether the lock is still held.
    const auto check_verified = [](virtual_fixture& on, lock& held, bool stays_valid) {
        BOOST_TEST(on.script->unused() == 0U);
        BOOST_TEST(held.held() == stays_valid);
        if (!stays_valid)
            BOOST_TEST((on.run(held.lost()) == lost_reason::taken));
        held = {};
        on.wind_down();
        on.check_clean();
    };
    for (const bool stays_valid : {true, false}) {
        const auto answer = [&] { return stays_valid ? step::pass() : step::not_held(); };
        {
            virtual_fixture on(backend_kind::scripted);
            auto held = on.acquire("k", {.ttl = 0ms});
            on.script->next(operation::break_key, step::lose_request());
            on.script->next(operation::is_valid, answer());
            COLOCK_THROWS(error, errc::outcome_unknown, on.run(on.locker->break_lock("k")));
            on.ready();
            check_verified(on, held, stays_valid);
        }
        {
            // The caller of the break is cancelled before the break is answered.
            virtual_fixture on(backend_kind::scripted);
            auto held = on.acquire("k", {.ttl = 0ms});
            on.script->next(operation::break_key, step::hold());
            on.script->next(operation::is_valid, answer());
            break_and_cancel(on);
            BOOST_TEST(on.script->unused() == 1U);
            on.script->discard();
            on.ready();
            check_verified(on, held, stays_valid);
        }
        {
            // The answer arrives after the operation timeout, while an extension is unanswered.
            virtual_fixture on(backend_kind::scripted);
            auto held = on.acquire("k", {.ttl = 1h});
            on.script->next(operation::break_key, step::hold());
            on.script->next(operation::is_valid, answer());
            auto broken = on.start(on.locker->break_lock("k"));
            on.ready();
            on.advance(1min);
            COLOCK_THROWS(error, errc::outcome_unknown, broken.get(on.io()));
            on.script->next(operation::extend, step::pass().after([&] { on.script->discard(); }));
            on.run(held.extend(2h));
            on.ready();
            check_verified(on, held, stays_valid);
        }
    }
}

BOOST_AUTO_TEST_CASE(cancelled_break_ends_the_handles_when_it_is_answered)
{
    virtual_fixture on(backend_kind::scripted);
    auto held = on.acquire("k", {.ttl = 0ms});
    on.script->next(operation::break_key, step::hold());
    break_and_cancel(on);
    BOOST_TEST(held.held());
    on.script->deliver();
    on.ready();
    BOOST_TEST((on.run(held.lost()) == lost_reason::broken));
    held = {};
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(loss_of_an_earlier_grant_does_not_end_a_later_one)
{
    virtual_fixture on(backend_kind::scripted);
    // The first reply is lost, and with it the grant. The second create is sent after the break.
    on.script->next(operation::create, step::lose_reply());
    auto acquiring = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(1s)}));
    on.ready();
    BOOST_TEST(driver(on.io(), on.memory).break_key("k").size() == 1U);
    on.advance(2s);
    auto held = acquiring.get(on.io());
    BOOST_TEST(held.held());
    on.run(held.release(on_failure::raise));
    on.wind_down();
    on.check_clean();
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
    virtual_fixture on(backend_kind::scripted, {.observer = seen});
    seen->held = on.acquire("k");
    on.script->forget_calls();
    lock next = on.run(on.locker->acquire("k"));
    BOOST_TEST(next.held());
    bool waits = false;
    for (const auto& call : on.script->calls()) {
        if (call.what == operation::wait) {
            BOOST_TEST(!waits);
            waits = true;
        }
        BOOST_TEST((call.what != operation::hand_over || waits), "handed over before the wait began");
    }
    next = {};
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(expiries)

BOOST_AUTO_TEST_CASE(release_detects_that_another_holder_has_expired)
{
    virtual_fixture on(backend_kind::memory);
    colock::locker other(on.memory);
    auto brief = on.acquire("k", {.ttl = 10s, .mode = lock_mode::shared});
    auto longer = on.acquire("k", {.ttl = 1h, .mode = lock_mode::shared});
    auto writer = on.start(other.acquire("k", {.retry = retry_policy::fixed(24h)}));
    on.ready();
    // The writer's own timer is due in an hour, and nobody checks the holder that has expired.
    on.clock.skip(11s);
    on.run(longer.release());
    on.ready();
    BOOST_TEST_REQUIRE(writer.done());
    BOOST_TEST(writer.get(on.io()).held());
    brief = {};
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(waiter_notices_an_earlier_expiry)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            for (const bool waits_here : {true, false}) {
                virtual_fixture on(kind);
                colock::locker other(on.backend());
                auto held = on.acquire("k", {.ttl = 6h, .mode = mode});
                auto& by = waits_here ? *on.locker : other;
                auto waiting = on.start(by.acquire("k", {.retry = retry_policy::fixed(24h)}));
                on.ready();
                on.run(held.extend(1min));
                on.advance(61s);
                BOOST_TEST_REQUIRE(waiting.done());
                static_cast<void>(waiting.get(on.io()));
                held = {};
                on.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
