// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Locks that are detached, so that another locker can adopt them.
#include "moved_locks.hpp"
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/detail/generation.hpp>
#include <colock/observer.hpp>
#include <colock/spi/awaitable_adapter.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(detachments)

namespace {

class event_log final : public observer
{
public:
    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override { events += "granted "; }
    void lost(std::string_view, lost_reason, std::chrono::nanoseconds) noexcept override { events += "lost "; }
    void released(std::string_view, std::chrono::nanoseconds) noexcept override { events += "released "; }
    void settled(std::string_view, bool) noexcept override { events += "settled "; }

    std::string events;
};

/// An adapter that grants everything, but cannot make a ticket, and runs another function meanwhile.
class ticketless final : public awaitable_adapter
{
public:
    using awaitable_adapter::awaitable_adapter;
    [[nodiscard]] adapter_traits traits() const noexcept override
    {
        return {.name = "ticketless", .capabilities = {.tickets = true}};
    }

    std::function<void()> meanwhile;
    int extended = 0;

private:
    asio::awaitable<create_outcome> do_create(claim_ptr) override { co_return create_outcome::granted(1); }
    asio::awaitable<release_outcome> do_release(claim_ptr, release_guarantee) override { co_return release_outcome{}; }
    asio::awaitable<extend_outcome> do_extend(claim_ptr, std::chrono::milliseconds) override
    {
        ++extended;
        co_return extend_outcome{};
    }
    asio::awaitable<valid_outcome> do_is_valid(claim_ptr) override { co_return valid_outcome{.valid = true}; }
    asio::awaitable<export_outcome> do_export(claim_ptr) override
    {
        meanwhile();
        throw std::bad_alloc();
        co_return export_outcome{};
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(detached_lock_is_not_touched)
{
    for (const auto kind :
        {backend_kind::memory, backend_kind::scripted, backend_kind::other_context, backend_kind::immediate})
    {
        BOOST_TEST_CONTEXT(kind)
        {
            const auto log = std::make_shared<event_log>();
            virtual_fixture env(kind, {.observer = log});
            auto held = env.acquire("k", {.ttl = 10h, .renewal = renewal::automatic});
            auto loss = env.start(held.lost());
            env.ready();
            if (env.script)
                env.script->forget_calls();
            const auto ticket = env.run(held.detach());
            BOOST_TEST(!held.held());
            BOOST_TEST((loss.get(env.io()) == lost_reason::released));
            BOOST_TEST(log->events == "granted released ");
            BOOST_TEST(env.locker->stats().held == 0U);
            BOOST_TEST(env.locker->stats().releases == 1U);
            BOOST_TEST(env.locker->stats().settling == 0U);
            BOOST_TEST(env.idle());
            env.run(held.release(on_failure::raise));
            held = {};
            env.advance(5h);
            BOOST_TEST(env.run(env.locker->shutdown()).clean());
            env.locker.reset();
            env.advance(4h);
            if (env.script) {
                BOOST_TEST(env.script->count(operation::export_ticket) + env.script->count(operation::close) ==
                           env.script->calls().size());
            }
            BOOST_TEST(env.stored().size() == 1U);
            break_stored_lock(env);
        }
    }
}

BOOST_AUTO_TEST_CASE(detach_waits_for_the_operation_in_flight)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 10h});
    env.script->next(operation::extend, step::hold());
    auto extending = env.start(held.extend(20h));
    env.ready();
    auto detaching = env.start(held.detach());
    env.ready();
    BOOST_TEST(!detaching.done());
    BOOST_TEST(held.held());
    env.script->deliver();
    extending.get(env.io());
    const auto ticket = detaching.get(env.io());
    auto adopted = env.run(env.locker->adopt(ticket));
    BOOST_TEST((adopted.ttl() == 20h));
    env.run(adopted.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(lock_in_doubt_is_not_detached)
{
    virtual_fixture env(backend_kind::other_context, {.retry = retry_policy::fixed(100ms)});
    // A create that may arrive again.
    env.script->next(operation::create, step::lose_reply());
    auto acquiring = env.start(env.locker->acquire("k", {.ttl = 10h}));
    env.advance_by_steps(1s, 50ms);
    auto held = acquiring.get(env.io());
    COLOCK_THROWS(error, errc::outcome_unknown, env.run(held.detach()));
    BOOST_TEST(held.held());
    held = {};
    env.wind_down_and_check();
    // An extension that may arrive again.
    held = env.acquire("k", {.ttl = 10h});
    env.script->next(operation::extend, step::lose_reply());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, (env.run(held.extend(20h)), 0));
    COLOCK_THROWS(error, errc::outcome_unknown, env.run(held.detach()));
    BOOST_TEST(held.held());
    env.run(held.extend(20h));
    COLOCK_THROWS(error, errc::outcome_unknown, env.run(held.detach()));
    env.run(held.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(lost_or_released_lock_is_not_detached)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 10s});
    env.run(held.release());
    COLOCK_THROWS(error, errc::not_held, env.run(held.detach()));
    held = env.acquire("k", {.ttl = 10s});
    env.advance(10s);
    COLOCK_THROWS(error, errc::not_held, env.run(held.detach()));
    BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
    lock empty;
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(empty.detach()));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(detach_without_a_ticket_does_not_block_other_operations)
{
    asio::io_context io;
    const auto backend = std::make_shared<ticketless>(io.get_executor());
    const locker locks(backend);
    auto held = run_coro(io, locks.acquire("k", {.ttl = 10h}));
    std::optional<running<void>> extending;
    backend->meanwhile = [&] {
        extending.emplace(testing::start(io, held.extend(20h)));
        io.poll();
        BOOST_TEST(backend->extended == 0);
    };
    COLOCK_THROWS(error, errc::unavailable, run_coro(io, held.detach()));
    BOOST_TEST(held.held());
    run_ready(io);
    BOOST_TEST_REQUIRE(extending->done());
    extending->get(io);
    BOOST_TEST(backend->extended == 1);
    run_coro(io, held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(detach_that_is_given_up_before_the_ticket_is_made_leaves_the_lock)
{
    for (const bool is_cancelled : {true, false}) {
        virtual_fixture env(backend_kind::other_context);
        auto held = env.acquire("k", {.ttl = 10h});
        env.script->next(operation::export_ticket, step::hold());
        error_code result;
        asio::cancellation_signal cancel;
        held.async_detach(
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const std::string&) { result = code; }));
        env.ready();
        if (is_cancelled)
            cancel.emit(asio::cancellation_type::total);
        else
            env.advance(1min);
        env.ready();
        const auto expected = is_cancelled ? error_code(asio::error::operation_aborted) : error_code(errc::unavailable);
        BOOST_TEST((result == expected), result.message());
        BOOST_TEST(held.held());
        // The backend makes the ticket, and nobody receives it.
        auto extending = env.start(held.extend(20h));
        env.ready();
        BOOST_TEST(!extending.done());
        env.script->deliver();
        extending.get(env.io());
        BOOST_TEST(held.held());
        env.run(held.release(on_failure::raise));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(lock_that_is_lost_while_the_ticket_is_made_is_not_detached)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 2s});
    env.script->next(operation::export_ticket, step::hold());
    auto detaching = env.start(held.detach());
    env.ready();
    env.advance(3s);
    env.script->deliver();
    COLOCK_THROWS(error, errc::not_held, detaching.get(env.io()));
    BOOST_TEST(!held.held());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(lock_that_is_lost_while_the_ticket_is_not_made_is_reported_as_lost)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 10h});
    auto loss = env.start(held.lost());
    env.script->next(operation::export_ticket, step::hold());
    auto detaching = env.start(held.detach());
    env.ready();
    env.advance(11h);
    COLOCK_THROWS(error, errc::not_held, detaching.get(env.io()));
    BOOST_TEST((loss.get(env.io()) == lost_reason::expired));
    env.script->deliver();
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(lock_with_the_longest_key_moves)
{
    virtual_fixture env(backend_kind::other_context);
    env.script->set_limits({.max_key = 1'000'000});
    env.locker.emplace(env.backend());
    const auto ticket = detach_new_lock(env, std::string(1'000'000, 'k'));
    auto adopted = env.run(env.locker->adopt(ticket));
    env.run(adopted.release(on_failure::raise));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(moving_is_refused_by_a_backend_without_tickets)
{
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::tickets});
    auto held = env.acquire("k");
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(held.detach()));
    BOOST_TEST(held.held());
    COLOCK_THROWS(validation_error, errc::unsupported, env.run(env.locker->adopt("ticket")));
    BOOST_TEST(env.script->count(operation::adopt) == 0U);
}

BOOST_AUTO_TEST_CASE(local_waiters_ask_the_backend_after_a_detach)
{
    for (const bool comes_back : {false, true}) {
        virtual_fixture env(backend_kind::other_context);
        disable(env, {&capabilities::fifo}, {.retry = retry_policy::fixed(1h)});
        const locker other_locker(env.memory);
        auto first = env.acquire("k", {.ttl = 10h});
        auto second = env.start(env.locker->acquire("k", {.ttl = 10h}));
        auto third = env.start(env.locker->acquire("k", {.ttl = 10h}));
        env.ready();
        env.run(first.release());
        // If the backend has no queue, the next waiter waits for the lease of the local holder.
        auto held = second.get(env.io());
        env.ready();
        const auto ticket = env.run(held.detach());
        env.ready();
        BOOST_TEST(!third.done());
        auto adopted = env.run((comes_back ? *env.locker : other_locker).adopt(ticket));
        env.ready();
        BOOST_TEST(!third.done());
        env.run(adopted.release(on_failure::raise));
        env.ready();
        BOOST_TEST_REQUIRE(third.done());
        auto last = third.get(env.io());
        env.run(last.release(on_failure::raise));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(shutdown_does_not_wait_for_a_lock_that_a_body_has_detached)
{
    virtual_fixture env;
    std::string ticket;
    auto guarded = env.start(env.locker->with_lock("k", {.ttl = 10h}, [&](lock& held) -> asio::awaitable<void> {
        co_await asio::this_coro::throw_if_cancelled(false);
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
        lease_timer never(co_await asio::this_coro::executor, lease_clock::time_point::max());
        co_await never.async_wait(asio::as_tuple(asio::deferred));
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        ticket = co_await held.detach();
    }));
    env.ready();
    auto ending = env.start(env.locker->shutdown(1h));
    env.ready();
    BOOST_TEST(ending.done());
    BOOST_TEST(ending.get(env.io()).clean());
    guarded.get(env.io());
    BOOST_TEST(env.stored().size() == 1U);
    COLOCK_THROWS(create_error, errc::shutting_down, env.run(env.locker->adopt(ticket)));
    break_stored_lock(env);
}

BOOST_AUTO_TEST_SUITE_END()
