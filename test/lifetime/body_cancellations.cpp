// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include <stdexcept>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(body_cancellations)

namespace {

/// The two forms of `with_lock`.
enum class form : unsigned char
{
    plain,
    front,
};

std::ostream& operator<<(std::ostream& out, form kind)
{
    return out << (kind == form::plain ? "with_lock" : "async_with_lock");
}

constexpr form forms[] = {form::plain, form::front};

/// The result of a `with_lock` that returns an int and that its caller may cancel.
struct cancellable_call
{
    asio::cancellation_signal cancel;
    int completions = 0;
    std::exception_ptr failure;
    int value = 0;

    template <class Body>
    void start(virtual_fixture& env, form kind, acquire_options options, Body body)
    {
        auto handler = asio::bind_cancellation_slot(cancel.slot(), [this](std::exception_ptr why, int result) {
            ++completions;
            failure = std::move(why);
            value = result;
        });
        if (kind == form::plain)
            asio::co_spawn(
                env.io(), env.locker->with_lock("k", std::move(options), std::move(body)), std::move(handler));
        else
            env.locker->async_with_lock("k", std::move(options), std::move(body), std::move(handler));
    }
    [[nodiscard]] bool done() const noexcept { return completions == 1; }
    int get()
    {
        BOOST_TEST_REQUIRE(done());
        if (failure)
            std::rethrow_exception(std::exchange(failure, nullptr));
        return value;
    }
};

/// How a body continues after a cancellation.
enum class survival : unsigned char
{
    resets_its_state,
    does_not_throw,
};

/// Ends after it has been cancelled `expected` times.
asio::awaitable<int> survive(survival how, std::size_t expected, std::size_t& cancellations)
{
    co_await asio::this_coro::throw_if_cancelled(how == survival::resets_its_state);
    lease_timer timer(co_await asio::this_coro::executor);
    while (cancellations < expected) {
        timer.expires_after(24h);
        const auto [ended] = co_await timer.async_wait(asio::as_tuple(asio::deferred));
        BOOST_TEST((ended == asio::error::operation_aborted));
        ++cancellations;
        if (how == survival::resets_its_state)
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    }
    co_return 7;
}

enum class reason : unsigned char
{
    caller,
    stop_margin,
    broken,
    expired,
    shutdown,
};

std::ostream& operator<<(std::ostream& out, reason why)
{
    constexpr const char* names[] = {"caller", "stop margin", "broken", "expired", "shutdown"};
    return out << names[static_cast<unsigned>(why)];
}

using reasons = std::vector<reason>;

std::ostream& operator<<(std::ostream& out, const reasons& all)
{
    for (const auto each : all)
        out << each << ", ";
    return out;
}

/// A call whose body continues after each cancellation, and functions that cause the cancellations.
struct survivor
{
    std::size_t cancellations = 0;
    cancellable_call call;
    virtual_fixture env;
    std::optional<running<shutdown_report>> shutting_down;
    lease_clock::time_point start = lease_clock::now();

    survivor(backend_kind kind, form called, survival how, std::size_t expected) : env(kind)
    {
        call.start(env, called, {.ttl = 10s, .renewal = renewal::manual},
            [this, how, expected] { return survive(how, expected, cancellations); });
        env.ready();
    }

    void advance_to(lease_clock::duration since_start)
    {
        env.advance_by_steps(start + since_start - lease_clock::now(), 100ms);
    }

    void happens(reason why)
    {
        switch (why) {
        case reason::caller:
            call.cancel.emit(asio::cancellation_type::terminal);
            break;
        case reason::stop_margin:
            advance_to(9s);
            break;
        case reason::broken:
            env.memory->start_listing(
                {.action = listing_action::break_key, .filter = {.key = "k"}}, [](const list_outcome&) {});
            break;
        case reason::expired:
            advance_to(10s);
            break;
        case reason::shutdown:
            shutting_down.emplace(env.start(env.locker->shutdown(1h)));
            break;
        }
        env.ready();
    }
};

void check_each_cancels(const reasons& order)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto called : forms) {
            for (const auto how : {survival::resets_its_state, survival::does_not_throw}) {
                BOOST_TEST_CONTEXT(kind << " " << called << ": " << order)
                {
                    survivor body(kind, called, how, order.size());
                    std::size_t expected = 0;
                    for (const auto why : order) {
                        BOOST_TEST(body.call.completions == 0);
                        body.happens(why);
                        BOOST_TEST_REQUIRE(body.cancellations == ++expected);
                    }
                    if (std::ranges::count(order, reason::caller) == std::ssize(order))
                        BOOST_TEST(body.call.get() == 7);
                    else
                        COLOCK_THROWS(lost_error, errc::lost, body.call.get());
                    if (body.shutting_down)
                        BOOST_TEST(body.shutting_down->get(body.env.io()).clean());
                    body.env.wind_down();
                    body.env.check_clean();
                }
            }
        }
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(each_of_two_reasons_cancels_the_body)
{
    using enum reason;
    for (const auto& order : {reasons{caller, caller}, {caller, stop_margin}, {caller, broken}, {caller, shutdown},
             {stop_margin, caller}, {stop_margin, broken}, {stop_margin, expired}, {stop_margin, shutdown},
             {broken, caller}, {broken, shutdown}, {shutdown, caller}, {shutdown, stop_margin}, {shutdown, broken}})
        check_each_cancels(order);
}

BOOST_AUTO_TEST_CASE(each_of_many_reasons_cancels_the_body)
{
    using enum reason;
    for (const auto& order : {reasons{caller, caller, stop_margin, caller, shutdown, caller, expired, caller},
             {shutdown, caller, stop_margin, broken, caller}, {stop_margin, expired, caller, shutdown, caller}})
        check_each_cancels(order);
}

BOOST_AUTO_TEST_CASE(a_body_that_has_released_its_lock_is_cancelled_by_a_shutdown)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto called : forms) {
            std::size_t cancellations = 0;
            cancellable_call call;
            virtual_fixture env(kind);
            call.start(env, called, {}, [&](lock& held) -> asio::awaitable<int> {
                co_await held.release();
                co_return co_await survive(survival::resets_its_state, 2, cancellations);
            });
            env.ready();
            call.cancel.emit(asio::cancellation_type::terminal);
            env.ready();
            BOOST_TEST(cancellations == 1U);
            BOOST_TEST(env.run(env.locker->shutdown()).clean());
            env.ready();
            BOOST_TEST(cancellations == 2U);
            BOOST_TEST(call.get() == 7);
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(destroyed_locker_does_not_cancel_a_body_but_a_later_loss_does)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto called : forms) {
            survivor body(kind, called, survival::resets_its_state, 3);
            body.happens(reason::caller);
            BOOST_TEST(body.cancellations == 1U);
            body.env.locker.reset();
            body.env.ready();
            BOOST_TEST(body.cancellations == 1U);
            body.happens(reason::broken);
            BOOST_TEST(body.cancellations == 2U);
            body.happens(reason::caller);
            COLOCK_THROWS(lost_error, errc::lost, body.call.get());
            body.env.wind_down();
            body.env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(cancelled_body_is_destroyed_with_its_context)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto called : forms) {
            for (const auto last : {reason::caller, reason::broken, reason::shutdown}) {
                survivor body(kind, called, survival::resets_its_state, 9);
                body.happens(reason::caller);
                body.happens(last);
                BOOST_TEST(body.cancellations == 2U);
                body.shutting_down.reset();
                body.env.context.reset();
                body.call.cancel.emit(asio::cancellation_type::terminal);
                BOOST_TEST(body.cancellations == 2U);
                BOOST_TEST(body.call.completions == 0);
            }
        }
    }
}

namespace {

/// When the caller cancels.
enum class moment : unsigned char
{
    while_the_body_runs,
    while_it_is_released,
};

/// A backend that does not answer releases.
struct silent_releases
{
    cancellable_call call;
    virtual_fixture env{backend_kind::scripted};

    silent_releases()
    {
        env.script->always(operation::release, step::hold());
        env.script->always(operation::hand_over, step::hold());
    }

    /// Runs a call, and cancels it. `body` is called when the cancellation may have arrived.
    template <class Body>
    void run(form called, moment when, Body body)
    {
        call.start(env, called, {.ttl = 1h}, [when, body]() -> asio::awaitable<int> {
            std::size_t cancellations = 0;
            if (when == moment::while_the_body_runs)
                co_await survive(survival::resets_its_state, 1, cancellations);
            co_return body();
        });
        env.ready();
        BOOST_TEST(call.completions == 0);
        BOOST_TEST(env.script->count(operation::release) == (when == moment::while_it_is_released ? 1U : 0U));
        call.cancel.emit(asio::cancellation_type::terminal);
        env.ready();
        BOOST_TEST(env.script->count(operation::release) == 1U);
    }

    /// Answers the release that continued in the background, and checks the result.
    void check_released()
    {
        BOOST_TEST(env.stored().size() == 1U);
        BOOST_TEST(env.locker->stats().settling == 1U);
        env.script->reset();
        BOOST_TEST(env.script->deliver());
        env.ready();
        env.check_clean();
        BOOST_TEST(env.locker->stats().releases == 1U);
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(result_of_the_body_is_reported_at_once_and_the_release_continues)
{
    for (const auto called : forms) {
        for (const auto when : {moment::while_the_body_runs, moment::while_it_is_released}) {
            BOOST_TEST_CONTEXT(called << " " << static_cast<int>(when))
            {
                silent_releases value;
                value.run(called, when, [] { return 7; });
                BOOST_TEST(value.call.get() == 7);
                value.check_released();
                silent_releases exception;
                exception.run(called, when, []() -> int { throw std::runtime_error("half done"); });
                BOOST_CHECK_THROW(exception.call.get(), std::runtime_error);
                exception.check_released();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_release_that_is_not_cancelled_is_waited_for_until_the_operation_timeout)
{
    for (const auto called : forms) {
        silent_releases backend;
        backend.call.start(backend.env, called, {.ttl = 1h}, [] { return 7; });
        backend.env.advance_by_steps(4s, 500ms);
        BOOST_TEST(backend.call.completions == 0);
        backend.env.advance_by_steps(2s, 500ms);
        BOOST_TEST(backend.call.get() == 7);
        backend.check_released();
    }
}

BOOST_AUTO_TEST_CASE(other_releases_keep_a_deadline_and_continue)
{
    for (const bool of_group : {false, true}) {
        silent_releases backend;
        virtual_fixture& env = backend.env;
        asio::cancellation_signal cancel;
        int completions = 0;
        const auto release = [&]() -> asio::awaitable<void> {
            if (of_group) {
                auto held = co_await env.locker->acquire_all({"k"}, {.ttl = 1h});
                static_cast<void>(co_await held.release());
            } else {
                auto held = co_await env.locker->acquire("k", {.ttl = 1h});
                co_await held.release();
            }
        };
        asio::co_spawn(env.io(), release(), asio::bind_cancellation_slot(cancel.slot(), [&](std::exception_ptr why) {
            ++completions;
            COLOCK_THROWS(boost::system::system_error, asio::error::operation_aborted, std::rethrow_exception(why));
        }));
        env.ready();
        BOOST_TEST(completions == 0);
        cancel.emit(asio::cancellation_type::terminal);
        env.ready();
        BOOST_TEST(completions == 1);
        backend.check_released();
    }
}

BOOST_AUTO_TEST_SUITE_END()
