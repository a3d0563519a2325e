// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

const acquire_options shared{.mode = lock_mode::shared};
const acquire_options endless{.ttl = 0ms};

/// Writes down in which order waiters get the lock.
struct line
{
    rig& on;
    std::vector<int> order;
    std::map<int, lock> held;

    void join(int number, acquire_options options = {})
    {
        on.locker->async_acquire("k", std::move(options), [this, number](error_code code, lock granted) {
            BOOST_TEST(!code, code.message());
            order.push_back(number);
            held[number] = std::move(granted);
        });
        on.ready();
    }
    void leave(int number)
    {
        held.erase(number);
        on.ready();
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(queues)

BOOST_AUTO_TEST_CASE(local_waiters_are_served_in_arrival_order)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        line waiters{on, {}, {}};
        auto held = on.acquire("k");
        for (int n = 0; n < 5; ++n)
            waiters.join(n);
        BOOST_TEST(waiters.order.empty());
        held = {};
        on.ready();
        for (int n = 0; n < 5; ++n) {
            BOOST_TEST_REQUIRE(waiters.order.size() == static_cast<std::size_t>(n) + 1);
            BOOST_TEST(waiters.order.back() == n);
            waiters.leave(n);
        }
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(only_heads_speak_to_the_backend)
{
    rig on(behind::scripted);
    line waiters{on, {}, {}};
    colock::locker rival(on.memory);
    auto held = on.run(rival.acquire("k", endless));
    for (int n = 0; n < 10; ++n)
        waiters.join(n);
    BOOST_TEST(on.script->count(operation::create) == 1U);
    BOOST_TEST(on.script->count(operation::wait) == 1U);
    BOOST_TEST(on.locker->stats().waiting == 10U);
    held = {};
    for (int n = 0; n < 10; ++n) {
        on.ready();
        waiters.leave(n);
    }
    BOOST_TEST(waiters.order.size() == 10U);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(the_run_of_shared_claims_in_front_are_heads_together)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        line waiters{on, {}, {}};
        colock::locker rival(on.memory);
        auto held = on.run(rival.acquire("k", endless));
        waiters.join(1, shared);
        waiters.join(2, shared);
        waiters.join(3);
        waiters.join(4, shared);
        if (on.script)
            BOOST_TEST(on.script->count(operation::create) == 2U);
        held = {};
        on.ready();
        BOOST_TEST((waiters.order == std::vector{1, 2}));
        waiters.leave(1);
        BOOST_TEST((waiters.order == std::vector{1, 2}));
        waiters.leave(2);
        BOOST_TEST((waiters.order == std::vector{1, 2, 3}));
        waiters.leave(3);
        BOOST_TEST((waiters.order == std::vector{1, 2, 3, 4}));
        waiters.leave(4);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_run_grows_when_the_exclusive_claim_behind_it_leaves)
{
    rig on(behind::scripted);
    line waiters{on, {}, {}};
    colock::locker rival(on.memory);
    auto held = on.run(rival.acquire("k", endless));
    waiters.join(1, shared);
    asio::cancellation_signal cancel;
    on.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
    on.ready();
    waiters.join(3, shared);
    BOOST_TEST(on.script->count(operation::create) == 1U);
    cancel.emit(asio::cancellation_type::terminal);
    on.ready();
    BOOST_TEST(on.script->count(operation::create) == 2U);
    held = {};
    on.ready();
    BOOST_TEST((waiters.order == std::vector{1, 3}));
    waiters.held.clear();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(try_acquire_never_overtakes_a_local_waiter)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        line waiters{on, {}, {}};
        colock::locker rival(on.memory);
        auto held = on.run(rival.acquire("k", endless));
        if (on.script)
            on.script->always(operation::wait, step::hold());
        waiters.join(1);
        const auto asked = on.script ? on.script->count(operation::create) : 0;
        if (on.script) {
            // The lock is free, but its waiter has not heard of it yet.
            held = {};
            on.ready();
        }
        BOOST_TEST(!on.run(on.locker->try_acquire("k")).has_value());
        if (on.script)
            BOOST_TEST(on.script->count(operation::create) == asked);
        held = {};
        on.advance(3s);
        BOOST_TEST((waiters.order == std::vector{1}));
        waiters.leave(1);
        BOOST_TEST(on.run(on.locker->try_acquire("k")).has_value());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(hand_overs_are_capped_where_the_backend_keeps_no_queue)
{
    constexpr int count = 40;
    for (const bool fifo : {false, true}) {
        rig on(behind::scripted);
        auto can = on.script->capabilities();
        can.fifo = fifo;
        on.script->set_capabilities(can);
        on.locker.emplace(on.backend());
        line waiters{on, {}, {}};
        auto held = on.acquire("k");
        for (int n = 0; n < count; ++n)
            waiters.join(n);
        on.script->forget_calls();
        held = {};
        for (int n = 0; n < count; ++n) {
            on.ready();
            BOOST_TEST_REQUIRE(waiters.order.size() == static_cast<std::size_t>(n) + 1);
            waiters.leave(n);
        }
        std::size_t in_a_row = 0;
        std::size_t longest = 0;
        for (const auto& made : on.script->calls()) {
            if (made.what == operation::hand_over)
                longest = std::max(longest, ++in_a_row);
            else if (made.what == operation::release || made.what == operation::abandon)
                in_a_row = 0;
        }
        BOOST_TEST(longest == (fifo ? 40U : 16U));
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_release_wakes_the_next_without_a_timer)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        line waiters{on, {}, {}};
        colock::locker rival(on.memory);
        auto held = on.run(rival.acquire("k", endless));
        waiters.join(1);
        on.run(held.release());
        on.ready();
        BOOST_TEST(waiters.order.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_local_release_wakes_a_head_whose_attempt_was_under_way)
{
    rig on(behind::scripted);
    auto can = on.script->capabilities();
    can.events = false;
    on.script->set_capabilities(can);
    on.locker.emplace(on.backend());
    auto held = on.acquire("k");
    on.script->next(operation::create, step::busy());
    on.script->next(operation::create, step::hold());
    auto waiting = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0)}));
    on.advance(11s);
    BOOST_TEST_REQUIRE(on.script->held() == 1U);
    // Its second attempt finds the holder, who leaves before the answer is there.
    on.script->next(operation::create, step::pass());
    on.script->deliver();
    held = {};
    on.ready();
    on.advance(100ms);
    BOOST_TEST(waiting.done());
    if (waiting.done())
        static_cast<void>(waiting.get(on.io()));
}

BOOST_AUTO_TEST_CASE(an_expiry_that_wakes_nobody_bounds_the_wait)
{
    rig on(behind::scripted);
    line waiters{on, {}, {}};
    colock::locker rival(on.memory);
    auto held = on.run(rival.acquire("k", {.ttl = 10s}));
    on.script->always(operation::wait, step::hold());
    on.locker->async_acquire("k", {.retry = retry_policy::fixed(1h)}, [&](error_code code, lock granted) {
        BOOST_TEST(!code);
        waiters.order.push_back(1);
        waiters.held[1] = std::move(granted);
    });
    on.advance(9s);
    BOOST_TEST(waiters.order.empty());
    on.advance_by_steps(2s, 500ms);
    BOOST_TEST(waiters.order.size() == 1U);
}

BOOST_AUTO_TEST_CASE(total_time_is_absolute_and_wake_ups_are_no_attempts)
{
    rig on(behind::scripted);
    on.script->always(operation::create, step::busy());
    on.script->always(operation::wait, step::hold());
    auto waiting =
        on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(1h).jitter(0).times(1).total_time(1min)}));
    for (int second = 0; second < 59; ++second) {
        on.advance(1s);
        BOOST_TEST_REQUIRE(!waiting.done());
        // Wakes the waiter.
        BOOST_TEST(on.script->deliver());
        on.ready();
    }
    BOOST_TEST(on.locker->stats().attempts == 60U);
    BOOST_TEST(on.locker->stats().retries == 0U);
    on.advance(2s);
    const auto thrown = thrown_by<retry_error>([&] { static_cast<void>(waiting.get(on.io())); });
    BOOST_TEST_REQUIRE(thrown.has_value());
    BOOST_TEST((thrown->elapsed() >= 1min));
    BOOST_TEST((thrown->elapsed() < 62s));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(without_events_the_core_polls_by_the_policy_alone)
{
    rig on(behind::scripted);
    auto can = on.script->capabilities();
    can.events = false;
    can.fifo = false;
    on.script->set_capabilities(can);
    on.locker.emplace(on.backend());
    on.script->always(operation::create, step::busy());
    auto waiting = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0).times(3)}));
    on.advance_by_steps(29s, 500ms);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(on.script->count(operation::create) == 3U);
    on.advance_by_steps(2s, 500ms);
    COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(on.io()));
    BOOST_TEST(on.script->count(operation::create) == 4U);
    BOOST_TEST(on.script->count(operation::wait) == 0U);
    BOOST_TEST(on.locker->stats().retries == 3U);
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_waiter_behind_the_head_counts_by_its_own_delays_without_a_word)
{
    rig on(behind::scripted);
    colock::locker rival(on.memory);
    auto held = on.run(rival.acquire("k", endless));
    auto head = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(24h)}));
    on.ready();
    auto behind_it = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0).times(3)}));
    on.ready();
    const auto asked = on.script->count(operation::create);
    on.advance_by_steps(45s, 1s);
    BOOST_TEST_REQUIRE(behind_it.done());
    COLOCK_THROWS(retry_error, errc::retry_exhausted, behind_it.get(on.io()));
    BOOST_TEST(on.script->count(operation::create) == asked);
    held = {};
    on.ready();
    BOOST_TEST(head.get(on.io()).held());
}

BOOST_AUTO_TEST_CASE(an_immediate_retry_does_not_starve_the_loop)
{
    for (const auto& policy :
        {retry_policy::fixed(0s).jitter(0), retry_policy::custom([](const retry_attempt&) { return 0s; })})
    {
        rig on;
        colock::locker rival(on.memory);
        auto held = on.run(rival.acquire("k", endless));
        on.locker->async_acquire("k", {.retry = policy}, [](error_code, lock) {});
        int others = 0;
        std::function<void()> again = [&] {
            if (++others < 50)
                asio::post(on.io(), again);
            else
                held = {};
        };
        asio::post(on.io(), again);
        on.io().restart();
        for (int handlers = 0; handlers < 2000 && others < 50; ++handlers)
            static_cast<void>(on.io().poll_one());
        BOOST_TEST(others == 50);
        on.ready();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ends)

BOOST_AUTO_TEST_CASE(a_locker_that_goes_ends_its_waiters)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        colock::locker rival(on.memory);
        auto held = on.run(rival.acquire("k", endless));
        auto first = on.start(on.locker->acquire("k"));
        auto second = on.start(on.locker->acquire("k", shared));
        auto with = on.start(on.locker->with_lock("k", [] {}));
        auto all = on.start(on.locker->acquire_all({"a", "k"}));
        error_code front;
        on.locker->async_acquire("k", [&](error_code code, lock) { front = code; });
        on.ready();
        colock::locker copy = *on.locker;
        on.locker.reset();
        on.ready();
        BOOST_TEST(!first.done());
        {
            const auto last = std::move(copy);
        }
        on.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, first.get(on.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, second.get(on.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, with.get(on.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, all.get(on.io()));
        BOOST_TEST((front == errc::shutting_down));
        BOOST_TEST(on.stored().size() == 1U);
        held = {};
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(locks_outlive_their_locker)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        auto held = on.acquire("k");
        auto renewed = on.acquire("r", {.ttl = 30s, .renewal = renewal::automatic});
        auto dropped = on.acquire("d");
        auto lost = on.start(renewed.lost());
        on.locker.reset();
        on.script.reset();
        on.advance_by_steps(20s, 1s);
        BOOST_TEST(held.held());
        on.run(held.extend(1h));
        BOOST_TEST(on.run(held.is_locked()));
        on.advance_by_steps(1min, 1s);
        BOOST_TEST(renewed.held());
        BOOST_TEST(!lost.done());
        dropped = {};
        on.run(held.release(on_failure::raise));
        renewed = {};
        on.ready();
        BOOST_TEST((lost.get(on.io()) == lost_reason::released));
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(the_settler_outlives_locker_and_handle)
{
    rig on(behind::scripted);
    auto held = on.acquire("k");
    on.script->next(operation::release, step::fail(errc::unavailable));
    on.script->next(operation::release, step::fail(errc::unavailable));
    held = {};
    on.locker.reset();
    on.ready();
    BOOST_TEST(on.stored().size() == 1U);
    on.wind_down();
    BOOST_TEST(on.script->unused() == 0U);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_grant_that_is_lost_before_its_coroutine_goes_on_is_a_lost_lock)
{
    for (const bool tries : {false, true}) {
        rig on(behind::scripted);
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

BOOST_AUTO_TEST_CASE(nothing_stays_armed)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        // A held lock that nobody watches.
        auto held = on.acquire("k");
        BOOST_TEST(on.idle());
        // One that somebody has watched.
        asio::cancellation_signal cancel;
        held.async_lost(asio::bind_cancellation_slot(cancel.slot(), [](error_code, lost_reason) {}));
        BOOST_TEST(!on.idle());
        cancel.emit(asio::cancellation_type::terminal);
        BOOST_TEST(on.idle());
        on.run(held.extend(20s));
        BOOST_TEST(on.idle());
        BOOST_TEST(on.run(held.is_locked()));
        BOOST_TEST(on.idle());
        // An acquire that has ended by its policy, by cancellation, and by a grant.
        auto timed = on.start(on.locker->acquire("k", {.retry = retry_policy::forever().total_time(1s)}));
        on.advance_by_steps(3s, 500ms);
        BOOST_TEST(timed.done());
        BOOST_TEST(on.idle());
        on.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
        BOOST_TEST(!on.idle());
        cancel.emit(asio::cancellation_type::terminal);
        BOOST_TEST(on.idle());
        on.run(on.locker->with_lock("other", [] {}));
        BOOST_TEST(on.idle());
        on.run(held.release());
        BOOST_TEST(on.idle());
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(executors)

namespace {

/// Runs both contexts until `reached`.
template <class Reached>
void run_both(asio::io_context& one, asio::io_context& two, Reached reached)
{
    for (int rounds = 0; rounds < 100'000 && !reached(); ++rounds) {
        one.restart();
        two.restart();
        static_cast<void>(one.poll_one());
        static_cast<void>(two.poll_one());
    }
    BOOST_TEST(reached());
}

} // namespace

BOOST_AUTO_TEST_CASE(a_verb_resumes_on_its_callers_executor)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        asio::io_context mine;
        bool done = false;
        const auto body = [&]() -> asio::awaitable<void> {
            const auto here = [&] { return mine.get_executor().running_in_this_thread(); };
            auto first = co_await on.locker->acquire("k");
            BOOST_TEST(here());
            asio::post(on.io(), [&first] { first = {}; });
            auto held = co_await on.locker->acquire("k");
            BOOST_TEST(here());
            co_await held.extend(10s);
            BOOST_TEST(here());
            BOOST_TEST(co_await held.is_locked());
            BOOST_TEST(here());
            BOOST_TEST(co_await on.locker->is_locked("k"));
            BOOST_TEST(here());
            asio::post(on.io(), [&held] { held = {}; });
            static_cast<void>(co_await held.lost());
            BOOST_TEST(here());
            co_await on.locker->with_lock("k", [&]() -> asio::awaitable<void> {
                BOOST_TEST(here());
                co_await asio::post(asio::deferred);
                BOOST_TEST(here());
            });
            BOOST_TEST(here());
            auto group = co_await on.locker->acquire_all({"a", "b"});
            BOOST_TEST(here());
            static_cast<void>(co_await group.release());
            BOOST_TEST(here());
            static_cast<void>(co_await on.locker->shutdown());
            BOOST_TEST(here());
        };
        asio::co_spawn(mine, body(), [&](std::exception_ptr failure) {
            BOOST_TEST(!failure);
            done = true;
        });
        run_both(on.io(), mine, [&] { return done; });
    }
}

BOOST_AUTO_TEST_CASE(a_handler_runs_on_its_associated_executor)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        asio::io_context mine;
        int called = 0;
        const auto bound = [&](auto check) {
            return asio::bind_executor(mine.get_executor(), [&, check](auto, auto... results) {
                BOOST_TEST(mine.get_executor().running_in_this_thread());
                check(std::move(results)...);
                ++called;
            });
        };
        on.locker->async_acquire("k", bound([](const lock& held) { BOOST_TEST(held.held()); }));
        run_both(on.io(), mine, [&] { return called == 1; });
        on.locker->async_with_lock(
            "k", [&] { return on.io().get_executor().running_in_this_thread(); },
            bound([](bool inside) { BOOST_TEST(inside); }));
        run_both(on.io(), mine, [&] { return called == 2; });
        on.locker->async_is_locked("k", bound([](bool locked) { BOOST_TEST(!locked); }));
        run_both(on.io(), mine, [&] { return called == 3; });
        on.locker->async_shutdown(1s, bound([](const shutdown_report& report) { BOOST_TEST(report.clean()); }));
        run_both(on.io(), mine, [&] { return called == 4; });
    }
}

BOOST_AUTO_TEST_CASE(a_handler_is_never_called_inside_the_call_that_starts_it)
{
    rig on;
    // From inside the context, where a careless dispatch would run it at once.
    asio::post(on.io(), [&] {
        bool returned = false;
        on.locker->async_acquire("k", [&returned](error_code, lock) { BOOST_TEST(returned); });
        on.locker->async_with_lock("w", [] {}, [&returned](std::exception_ptr) { BOOST_TEST(returned); });
        on.locker->async_acquire("", [&returned](error_code code, lock) {
            BOOST_TEST(returned);
            BOOST_TEST((code == errc::invalid_key));
        });
        returned = true;
        on.ready();
    });
    on.ready();
}

namespace {

struct tally
{
    std::size_t allocated = 0;
    std::size_t live = 0;
};

template <class T>
struct counting_allocator
{
    using value_type = T;
    tally* counts;

    explicit counting_allocator(tally& where) : counts(&where) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) : counts(other.counts)
    {
    }
    T* allocate(std::size_t n)
    {
        ++counts->allocated;
        ++counts->live;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* memory, std::size_t n)
    {
        --counts->live;
        std::allocator<T>().deallocate(memory, n);
    }
    template <class U>
    bool operator==(const counting_allocator<U>& other) const
    {
        return counts == other.counts;
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(the_handlers_allocator_is_used)
{
    tally counts;
    {
        rig on(behind::scripted);
        bool called = false;
        on.locker->async_acquire(
            "k", asio::bind_allocator(counting_allocator<char>(counts), [&](error_code, lock) { called = true; }));
        on.ready();
        BOOST_TEST(called);
        BOOST_TEST(counts.allocated > 0U);
        BOOST_TEST(counts.live == 0U);
        const auto before = counts.allocated;
        on.locker->async_with_lock(
            "k", [] { return 1; },
            asio::bind_allocator(counting_allocator<char>(counts), [](std::exception_ptr, int) {}));
        on.ready();
        BOOST_TEST(counts.allocated > before);
        on.script->always(operation::create, step::hold());
        on.locker->async_acquire("k", asio::bind_allocator(counting_allocator<char>(counts), [](error_code, lock) {}));
        on.ready();
    }
    BOOST_TEST(counts.live == 0U);
}

BOOST_AUTO_TEST_CASE(immediate_grants_let_others_run)
{
    const auto starve = [](auto operation) {
        rig on;
        int in_a_row = 0;
        int longest = 0;
        bool done = false;
        std::function<void()> others = [&] {
            longest = std::max(longest, std::exchange(in_a_row, 0));
            if (!done)
                asio::post(on.io(), others);
        };
        asio::post(on.io(), others);
        asio::co_spawn(
            on.io(),
            [&]() -> asio::awaitable<void> {
                for (int n = 0; n < 1000; ++n) {
                    ++in_a_row;
                    co_await operation(*on.locker);
                }
                done = true;
            },
            asio::detached);
        on.ready();
        BOOST_TEST(done);
        BOOST_TEST(longest <= 64);
        on.check_clean();
    };
    starve([](locker by) -> asio::awaitable<void> {
        auto held = co_await by.acquire("k");
        co_await held.release();
    });
    starve([](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.acquire("k")); });
    starve([](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.try_acquire("k")); });
    starve([](locker by) -> asio::awaitable<void> { static_cast<void>(co_await by.acquire_all({"a", "b"})); });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bodies)

BOOST_AUTO_TEST_CASE(a_loss_is_told_before_what_is_given_back_has_been_answered)
{
    rig on(behind::scripted);
    on.script->always(operation::release, step::hold());
    on.script->always(operation::abandon, step::hold());
    auto working =
        on.start(on.locker->with_lock("k", {.ttl = 1s, .renewal = renewal::manual}, []() -> asio::awaitable<void> {
            lease_timer timer(co_await asio::this_coro::executor, 1h);
            co_await timer.async_wait(asio::use_awaitable);
        }));
    on.ready();
    on.advance(1s);
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    on.script->reset();
    while (on.script->deliver())
        on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_body_stops_before_its_lease_can_end)
{
    for (const auto mode : {renewal::automatic, renewal::manual}) {
        rig on(behind::scripted);
        on.script->always(operation::extend, step::fail(errc::unavailable));
        const auto start = lease_clock::now();
        lease_clock::time_point stopped;
        bool was_held = false;
        auto working =
            on.start(on.locker->with_lock("k", {.ttl = 30s, .renewal = mode}, [&](lock& held) -> asio::awaitable<void> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                    stopped = lease_clock::now();
                    was_held = held.held();
                    throw;
                }
            }));
        on.advance_by_steps(40s, 100ms);
        BOOST_TEST_REQUIRE(working.done());
        // The lease ends a hundredth and 2 ms before the ttl, and the body a second before that.
        BOOST_TEST((stopped - start >= 28698ms));
        BOOST_TEST((stopped - start < 29698ms));
        BOOST_TEST(was_held);
        const auto thrown = thrown_by<lost_error>([&] { working.get(on.io()); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST((thrown->code() == errc::lost));
        BOOST_TEST(thrown->key() == "k");
        on.script->reset();
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(no_body_begins_under_a_lease_that_has_ended)
{
    rig on(behind::scripted);
    bool began = false;
    auto working = on.start(on.locker->with_lock("k", {.ttl = 1s}, [&] { began = true; }));
    // Granted, and its coroutine not resumed yet.
    while (on.locker->stats().grants == 0)
        BOOST_TEST_REQUIRE(on.io().poll_one() == 1U);
    on.memory->start_break("k", [](const list_outcome&) {});
    on.ready();
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    BOOST_TEST(!began);
    BOOST_TEST(on.locker->stats().lost(lost_reason::broken) == 1U);
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(the_bodys_exception_is_nested_in_the_loss)
{
    rig on;
    auto working = on.start(on.locker->with_lock("k", [&]() -> asio::awaitable<int> {
        try {
            co_await sleep_for(1h);
        } catch (const boost::system::system_error&) {
        }
        throw std::runtime_error("half done");
    }));
    on.ready();
    on.run(on.locker->break_lock("k"));
    on.ready();
    bool nested = false;
    try {
        working.get(on.io());
    } catch (const lost_error& lost) {
        try {
            std::rethrow_if_nested(lost);
        } catch (const std::runtime_error& inner) {
            nested = inner.what() == std::string("half done");
        }
    }
    BOOST_TEST(nested);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_value_after_the_loss_does_not_stand)
{
    rig on;
    auto working = on.start(on.locker->with_lock("k", [&]() -> asio::awaitable<int> {
        try {
            co_await sleep_for(1h);
        } catch (const boost::system::system_error&) {
        }
        co_return 5;
    }));
    on.ready();
    on.run(on.locker->break_lock("k"));
    on.ready();
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_late_timer_does_not_make_a_late_value_stand)
{
    rig on;
    // The body keeps its thread busy until its lease is over.
    COLOCK_THROWS(lost_error, errc::lost,
        on.run(on.locker->with_lock("k", {.ttl = 10s, .renewal = renewal::manual}, [&] { on.clock.skip(20s); })));
    BOOST_CHECK_NO_THROW(
        on.run(on.locker->with_lock("k", {.ttl = 10s, .renewal = renewal::manual}, [&] { on.clock.skip(5s); })));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(the_callers_cancellation_is_forwarded_and_a_value_still_stands)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        for (const bool returns : {true, false}) {
            for (const auto type :
                {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total})
            {
                rig on(kind);
                asio::cancellation_signal cancel;
                bool forwarded = false;
                int completions = 0;
                std::exception_ptr failure;
                int value = 0;
                on.locker->async_with_lock(
                    "k",
                    [&]() -> asio::awaitable<int> {
                        try {
                            co_await sleep_for(1h);
                        } catch (const boost::system::system_error&) {
                            forwarded = true;
                            if (!returns)
                                throw;
                        }
                        co_return 7;
                    },
                    asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr out, int result) {
                        ++completions;
                        failure = out;
                        value = result;
                    }));
                on.ready();
                cancel.emit(type);
                on.ready();
                BOOST_TEST(forwarded);
                BOOST_TEST(completions == 1);
                if (returns) {
                    BOOST_TEST(!failure);
                    BOOST_TEST(value == 7);
                } else {
                    BOOST_TEST_REQUIRE((failure != nullptr));
                    COLOCK_THROWS(
                        boost::system::system_error, asio::error::operation_aborted, std::rethrow_exception(failure));
                }
                on.wind_down();
                on.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cancelled_parent_keeps_the_value_of_its_with_lock)
{
    rig on;
    asio::cancellation_signal cancel;
    int value = 0;
    asio::co_spawn(
        on.io(),
        [&]() -> asio::awaitable<void> {
            value = co_await on.locker->with_lock("k", [&]() -> asio::awaitable<int> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                }
                co_return 9;
            });
        },
        asio::bind_cancellation_slot(cancel.slot(), asio::detached));
    on.ready();
    cancel.emit(asio::cancellation_type::terminal);
    on.ready();
    BOOST_TEST(value == 9);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_handle_that_the_body_moves_away_is_released_all_the_same)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        lock away;
        on.run(on.locker->with_lock("k", [&](lock& held) { away = std::move(held); }));
        BOOST_TEST(static_cast<bool>(away));
        BOOST_TEST(!away.held());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_body_may_release_or_extend)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        const int value = on.run(on.locker->with_lock("k", [&](lock& held) -> asio::awaitable<int> {
            co_await held.extend(40s);
            BOOST_TEST(held.ttl() == 40s);
            co_await held.release();
            BOOST_TEST(!held.held());
            co_await asio::post(asio::deferred);
            co_return 3;
        }));
        BOOST_TEST(value == 3);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_lease_is_renewed_while_the_body_runs_up_to_max_hold)
{
    rig on;
    auto working = on.start(on.locker->with_lock("k", {.ttl = 30s}, []() -> asio::awaitable<int> {
        co_await sleep_for(5min);
        co_return 1;
    }));
    on.advance_by_steps(301s, 1s);
    BOOST_TEST(working.get(on.io()) == 1);

    const auto start = lease_clock::now();
    auto capped = on.start(on.locker->with_lock("k", {.ttl = 30s, .max_hold = 1min}, [] { return sleep_for(5min); }));
    on.advance_by_steps(2min, 500ms);
    BOOST_TEST_REQUIRE(capped.done());
    BOOST_TEST((lease_clock::now() - start >= 1min));
    COLOCK_THROWS(lost_error, errc::lost, capped.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(the_body_runs_on_a_strand)
{
    rig on;
    on.run(on.locker->with_lock("k", []() -> asio::awaitable<void> {
        const asio::any_io_executor executor = co_await asio::this_coro::executor;
        const auto* strand = executor.target<asio::strand<asio::io_context::executor_type>>();
        BOOST_TEST_REQUIRE((strand != nullptr));
        BOOST_TEST(strand->running_in_this_thread());
    }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(observers)

namespace {

/// Writes down every event, and asks the locker in each: it would dead-lock if a mutex were held.
struct recorder : observer
{
    std::optional<colock::locker> subject;
    std::vector<std::string> heard;

    void note(std::string what)
    {
        if (subject) {
            static_cast<void>(subject->stats());
            static_cast<void>(subject->held_locks());
        }
        heard.push_back(std::move(what));
    }
    [[nodiscard]] auto times(std::string_view what) const { return std::ranges::count(heard, what); }

    void ready(std::string_view) noexcept override { note("ready"); }
    void suspended(std::string_view, const error_code&) noexcept override { note("suspended"); }
    void reconnected(std::string_view) noexcept override { note("reconnected"); }
    void warning(std::string_view, std::string_view) noexcept override { note("warning"); }
    void waiting(std::string_view key) noexcept override { note("waiting " + std::string(key)); }
    void granted(std::string_view key, std::uint64_t fence, std::chrono::nanoseconds waited) noexcept override
    {
        BOOST_TEST(fence > 0U);
        BOOST_TEST(waited.count() >= 0);
        note("granted " + std::string(key));
    }
    void renewed(std::string_view key, std::chrono::nanoseconds valid_for) noexcept override
    {
        BOOST_TEST((valid_for > 0s));
        note("renewed " + std::string(key));
    }
    void at_risk(std::string_view key, const error_code& why) noexcept override
    {
        BOOST_TEST(!!why);
        note("at_risk " + std::string(key));
    }
    void lost(std::string_view key, lost_reason reason) noexcept override
    {
        note("lost " + std::string(key) + " " + to_string(reason));
    }
    void released(std::string_view key) noexcept override { note("released " + std::string(key)); }
    void settled(std::string_view key, bool proven) noexcept override
    {
        note("settled " + std::string(key) + (proven ? "" : " without proof"));
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(every_event_is_told_outside_of_every_mutex)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        const auto ears = std::make_shared<recorder>();
        rig on(kind, {.observer = ears});
        ears->subject = *on.locker;
        auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        auto waiting = on.start(on.locker->acquire("k"));
        on.ready();
        BOOST_TEST(ears->times("granted k") == 1);
        BOOST_TEST(ears->times("waiting k") == 1);
        on.advance_by_steps(25s, 1s);
        BOOST_TEST(ears->times("renewed k") == 2);
        held = {};
        auto next = waiting.get(on.io());
        BOOST_TEST(ears->times("released k") == 1);
        BOOST_TEST(ears->times("granted k") == 2);
        on.run(on.locker->break_lock("k"));
        on.wind_down();
        BOOST_TEST(ears->times("lost k broken") == 1);
        BOOST_TEST(ears->times("settled k") == 1);
        // With an observer, somebody listens: a local timer finds the expiry.
        auto expiring = on.acquire("e", {.ttl = 10s});
        on.advance(11s);
        BOOST_TEST(ears->times("lost e expired") == 1);
        on.wind_down();
        if (on.script) {
            on.script->notify_ready();
            on.script->notify_suspended(errc::unavailable);
            on.script->notify_reconnected();
            on.script->notify_warning("look here");
            for (const auto* event : {"ready", "suspended", "reconnected", "warning"})
                BOOST_TEST(ears->times(event) == 1);
            BOOST_TEST(on.locker->stats().reconnects == 1U);
            auto risky = on.acquire("r", {.ttl = 30s, .renewal = renewal::automatic});
            on.script->next(operation::extend, step::fail(errc::unavailable));
            on.advance_by_steps(11s, 1s);
            BOOST_TEST(ears->times("at_risk r") == 1);
            risky = {};
            on.ready();
            asio::cancellation_signal cancel;
            on.script->next(operation::create, step::hold());
            on.locker->async_acquire("s", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
            on.ready();
            cancel.emit(asio::cancellation_type::terminal);
            on.ready();
            on.script->deliver();
            on.ready();
            BOOST_TEST(ears->times("settled s") == 1);
        }
        on.check_clean();
        // Not kept by the locker that it keeps.
        ears->subject.reset();
    }
}

BOOST_AUTO_TEST_SUITE_END()
