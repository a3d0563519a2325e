// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Errors, events, moved locks and guarded resources of all backends.

#include "mongodb_fixture.hpp"
#include "redis_fixture.hpp"

#include "support/instrumented_adapter.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

namespace {

using colock::testing::operation;
using colock::testing::step;

/// A fixture whose backend fails as the test says.
struct faulty_fixture : memory_fixture
{
    std::shared_ptr<colock::testing::instrumented_adapter> script =
        std::make_shared<colock::testing::instrumented_adapter>(backend);
    colock::locker remote{script, {.retry = colock::retry_policy::never()}};
};

/// Observer that records its events.
class timeline : public colock::observer
{
public:
    void ready(std::string_view) noexcept override { all += "ready "; }
    void unreachable(std::string_view, const colock::error_code&, std::string_view, std::string_view) noexcept override
    {
        all += "unreachable ";
    }
    void suspended(std::string_view, const colock::error_code&) noexcept override { all += "suspended "; }
    void reconnected(std::string_view) noexcept override { all += "reconnected "; }
    void warning(std::string_view, std::string_view) noexcept override { all += "warning "; }
    void waiting(std::string_view) noexcept override { all += "waiting "; }
    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override { all += "granted "; }
    void renewed(std::string_view, std::chrono::nanoseconds) noexcept override { all += "renewed "; }
    void at_risk(std::string_view, const colock::error_code&) noexcept override { all += "at_risk "; }
    void lost(std::string_view, colock::lost_reason reason, std::chrono::nanoseconds) noexcept override
    {
        all += "lost:" + std::string(to_string(reason)) + ' ';
    }
    void released(std::string_view, std::chrono::nanoseconds) noexcept override { all += "released "; }
    void settled(std::string_view, bool) noexcept override { all += "settled "; }

    [[nodiscard]] bool contains(std::string_view part) const { return all.find(part) != all.npos; }

    std::string all;
};

} // namespace

BOOST_AUTO_TEST_SUITE(errors)

COLOCK_FIXTURE(memory_fixture, busy_is_an_answer)
{
    colock::lock busy = co_await other.acquire("k");
    std::optional<colock::lock> maybe = co_await locker.try_acquire("k");
    BOOST_TEST(!maybe);
}

COLOCK_FIXTURE(memory_fixture, retries_have_ended)
{
    colock::lock busy = co_await other.acquire("k");
    try {
        static_cast<void>(co_await locker.acquire("k", {.retry = colock::retry_policy::fixed(10ms).times(2)}));
        BOOST_ERROR("acquire did not give up");
    } catch (const colock::retry_error& failure) {
        BOOST_TEST((failure.code() == errc::retry_exhausted));
        BOOST_TEST(failure.attempts() == 3U);
    }
}

COLOCK_FIXTURE(faulty_fixture, the_backend_has_failed)
{
    script->always(operation::create, step::fail(errc::unavailable, "nobody listens"));
    try {
        static_cast<void>(co_await remote.acquire("k"));
        BOOST_ERROR("acquire did not fail");
    } catch (const colock::create_error& failure) {
        BOOST_TEST((failure.code() == errc::unavailable));
        BOOST_TEST(failure.detail() == "nobody listens");
    }
    BOOST_TEST(!!co_await code_of<colock::create_error>(remote.try_acquire("k")));
}

COLOCK_FIXTURE(faulty_fixture, the_drivers_own_code_is_kept)
{
    const auto refused = make_error_code(boost::system::errc::connection_refused);
    script->always(operation::create, step::fail(errc::unavailable, "nobody listens", refused));
    try {
        static_cast<void>(co_await remote.acquire("k"));
        BOOST_ERROR("acquire did not fail");
    } catch (const colock::error& failure) {
        BOOST_TEST((failure.cause() == refused));
    }
}

COLOCK_FIXTURE(faulty_fixture, no_answer_is_not_busy)
{
    script->next(operation::create, step::lose_reply());
    BOOST_TEST((co_await code_of<colock::create_error>(remote.acquire("k")) == errc::outcome_unknown));
    co_await pass(1min);
    // The lock was granted after all, and was released in the background.
    BOOST_TEST(!co_await other.is_locked("k"));
    BOOST_TEST(remote.stats().settled == 1U);
}

COLOCK_FIXTURE(memory_fixture, not_held_any_more)
{
    colock::lock lock = co_await locker.acquire("k", {.ttl = 1s});
    co_await pass(2s);
    BOOST_TEST((co_await code_of<colock::release_error>(lock.release(colock::on_failure::raise)) == errc::not_held));
    BOOST_TEST((co_await code_of<colock::extend_error>(lock.extend(1s)) == errc::not_held));
}

COLOCK_FIXTURE(faulty_fixture, a_release_without_an_answer)
{
    colock::lock lock = co_await remote.acquire("k");
    script->next(operation::release, step::lose_reply());
    BOOST_TEST(
        (co_await code_of<colock::release_error>(lock.release(colock::on_failure::raise)) == errc::outcome_unknown));
    co_await pass(1min);
    BOOST_TEST(!co_await other.is_locked("k"));
}

COLOCK_FIXTURE(memory_fixture, a_second_release_is_none)
{
    colock::lock lock = co_await locker.acquire("k");
    co_await lock.release();
    colock::lock next = co_await other.acquire("k");
    co_await lock.release(colock::on_failure::raise);
    BOOST_TEST(co_await next.is_locked());
}

COLOCK_FIXTURE(memory_fixture, a_released_lock_is_not_extended)
{
    colock::lock lock = co_await locker.acquire("k");
    co_await lock.release();
    BOOST_TEST((co_await code_of<colock::extend_error>(lock.extend(1s)) == errc::not_held));
}

COLOCK_FIXTURE(memory_fixture, an_empty_handle)
{
    colock::lock lock;
    BOOST_TEST(!lock);
    BOOST_TEST((co_await code_of<colock::validation_error>(lock.extend(1s)) == errc::invalid_options));
}

COLOCK_FIXTURE(memory_fixture, bad_input)
{
    BOOST_TEST((co_await code_of<colock::validation_error>(locker.acquire("")) == errc::invalid_key));
    BOOST_TEST((co_await code_of<colock::validation_error>(locker.acquire("k", {.ttl = -1ms})) == errc::invalid_ttl));
    const auto negative = colock::retry_policy::fixed(-1ms);
    BOOST_TEST(
        (co_await code_of<colock::validation_error>(locker.acquire("k", {.retry = negative})) == errc::invalid_retry));
    BOOST_TEST(
        (co_await code_of<colock::validation_error>(locker.acquire("k", {.max_holders = 2})) == errc::invalid_options));
}

COLOCK_FIXTURE(memory_fixture, all_have_one_base)
{
    colock::lock busy = co_await other.acquire("k");
    try {
        static_cast<void>(co_await locker.acquire("k", {.retry = colock::retry_policy::never()}));
        BOOST_ERROR("acquire did not give up");
    } catch (const colock::error& failure) {
        BOOST_TEST(failure.key() == "k");
        BOOST_TEST(failure.backend() == "memory");
    }
}

COLOCK_FIXTURE(memory_fixture, a_cancelled_call)
{
    colock::lock busy = co_await other.acquire("k");
    asio::cancellation_signal cancel;
    colock::error_code ended;
    locker.async_acquire(
        "k", asio::bind_cancellation_slot(cancel.slot(), [&](colock::error_code failed, auto) { ended = failed; }));
    co_await pass(1s);
    cancel.emit(asio::cancellation_type::terminal);
    co_await pass(1s);
    BOOST_TEST((ended == asio::error::operation_aborted));
    co_await busy.release();
    BOOST_TEST(!co_await other.is_locked("k"));
}

COLOCK_FIXTURE(memory_fixture, lost_in_the_middle_of_the_work)
{
    const auto body = [&]() -> asio::awaitable<void> {
        co_await other.break_lock("k");
        co_await pass(1h);
    };
    BOOST_TEST((co_await code_of<colock::lost_error>(locker.with_lock("k", body)) == errc::lost));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(events)

COLOCK_FIXTURE(memory_fixture, of_a_lock_that_is_waited_for_and_released)
{
    const auto events = std::make_shared<timeline>();
    colock::locker locks(backend, {.observer = events});
    colock::lock first = co_await locks.acquire("k");
    std::optional<colock::lock> second;
    locks.async_acquire("k", [&](colock::error_code, colock::lock granted) { second = std::move(granted); });
    co_await pass(1ms);
    co_await first.release();
    co_await pass(1ms);
    BOOST_TEST(events->contains("ready granted waiting"));
    BOOST_TEST(events->contains("released"));
    BOOST_TEST(second->held());
}

COLOCK_FIXTURE(memory_fixture, of_a_lock_that_is_renewed)
{
    const auto events = std::make_shared<timeline>();
    colock::locker locks(backend, {.observer = events});
    colock::lock lock = co_await locks.acquire("k", {.ttl = 3s, .renewal = colock::renewal::automatic});
    co_await pass(1500ms);
    BOOST_TEST(events->all == "ready granted renewed ");
}

COLOCK_FIXTURE(memory_fixture, of_a_lock_that_expires)
{
    const auto events = std::make_shared<timeline>();
    colock::locker locks(backend, {.observer = events});
    colock::lock lock = co_await locks.acquire("k", {.ttl = 1s});
    co_await pass(2s);
    // The cleanup of the expired lock may add "settled" to the events.
    BOOST_TEST(events->contains("lost:expired"));
}

COLOCK_FIXTURE(memory_fixture, of_a_lock_that_is_broken)
{
    const auto events = std::make_shared<timeline>();
    colock::locker locks(backend, {.observer = events});
    colock::lock lock = co_await locks.acquire("k");
    co_await other.break_lock("k");
    co_await pass(1ms);
    BOOST_TEST(events->contains("lost:broken"));
    BOOST_TEST((co_await lock.lost() == colock::lost_reason::broken));
}

COLOCK_FIXTURE(faulty_fixture, of_a_connection)
{
    const auto events = std::make_shared<timeline>();
    colock::locker locks(script, {.observer = events});
    const auto reset = make_error_code(boost::system::errc::connection_reset);
    script->contact().set_down(colock::make_failure(errc::unavailable, "nobody listens", reset), "here:1");
    script->contact().set_up();
    script->contact().set_down(reset);
    script->contact().set_up();
    script->contact().warn("it evicts keys");
    BOOST_TEST(events->all == "unreachable ready suspended reconnected warning ");
    co_return;
}

COLOCK_FIXTURE(faulty_fixture, of_a_session_that_ends)
{
    const auto events = std::make_shared<timeline>();
    script->open_session(colock::lease_clock::now() + 10s);
    colock::locker locks(script, {.observer = events});
    colock::lock lock = co_await locks.acquire("k", {.ttl = 0ms});
    script->contact().set_up();
    script->contact().set_down(errc::unavailable);
    script->end_session();
    co_await pass(1s);
    BOOST_TEST(events->contains("at_risk lost:session"));
    BOOST_TEST(!lock.held());
}

COLOCK_FIXTURE(faulty_fixture, of_an_acquire_without_an_answer)
{
    const auto events = std::make_shared<timeline>();
    colock::locker locks(script, {.retry = colock::retry_policy::never(), .observer = events});
    script->next(operation::create, step::lose_reply());
    BOOST_TEST((co_await code_of(locks.acquire("k")) == errc::outcome_unknown));
    co_await pass(1s);
    BOOST_TEST(events->all == "settled ");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(moving)

COLOCK_FIXTURE(memory_fixture, detach_and_adopt)
{
    colock::lock lock = co_await locker.acquire("k", {.ttl = 10s});
    std::string ticket = co_await lock.detach();
    BOOST_TEST(!lock.held());
    BOOST_TEST(co_await other.is_locked("k"));
    // In another process, which has received the ticket.
    colock::lock moved = co_await other.adopt(ticket);
    BOOST_TEST(moved.key() == "k");
    BOOST_TEST(moved.fence() > lock.fence());
    BOOST_TEST((moved.ttl() == 10s));
}

COLOCK_FIXTURE(memory_fixture, a_ticket_works_once)
{
    colock::lock lock = co_await locker.acquire("k");
    std::string ticket = co_await lock.detach();
    colock::lock moved = co_await other.adopt(ticket);
    BOOST_TEST((co_await code_of<colock::create_error>(other.adopt(ticket)) == errc::not_held));
    BOOST_TEST(co_await moved.is_locked());
}

COLOCK_FIXTURE(memory_fixture, the_ttl_runs_in_between)
{
    colock::lock lock = co_await locker.acquire("k", {.ttl = 10s, .renewal = colock::renewal::automatic});
    std::string ticket = co_await lock.detach();
    co_await pass(11s);
    BOOST_TEST((co_await code_of<colock::create_error>(other.adopt(ticket)) == errc::not_held));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_redis)

COLOCK_FIXTURE(redis_fixture, a_lock_moves)
{
    colock::lock lock = co_await locker.acquire("k", {.ttl = 10s});
    std::string ticket = co_await lock.detach();
    colock::lock moved = co_await other.adopt(ticket);
    BOOST_TEST(moved.fence() > lock.fence());
    BOOST_TEST((co_await code_of<colock::create_error>(other.adopt(ticket)) == errc::not_held));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_mongodb)

COLOCK_FIXTURE(mongodb_fixture, a_lock_moves)
{
    colock::lock lock = co_await locker.acquire("k", {.ttl = 10s});
    std::string ticket = co_await lock.detach();
    colock::lock moved = co_await other.adopt(ticket);
    BOOST_TEST(moved.fence() > lock.fence());
    BOOST_TEST((co_await code_of<colock::create_error>(other.adopt(ticket)) == errc::not_held));
}

BOOST_AUTO_TEST_SUITE_END()
