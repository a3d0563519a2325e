// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

const acquire_options shared_without_ttl{.ttl = 0ms, .mode = lock_mode::shared};

} // namespace

BOOST_AUTO_TEST_SUITE(single_attempts)

BOOST_AUTO_TEST_CASE(shared_try_acquire_runs_in_parallel_with_a_shared_acquire)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create, step::hold());
    auto first = env.start(env.locker->acquire("k", shared_without_ttl));
    env.ready();
    auto second = env.run(env.locker->try_acquire("k", shared_without_ttl));
    BOOST_TEST(second.has_value());
    env.script->deliver();
    auto held = first.get(env.io());
    BOOST_TEST(held.held());
    held = {};
    second.reset();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(shared_try_acquire_does_not_overtake_waiters_or_writers)
{
    virtual_fixture env(backend_kind::scripted);
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", {.ttl = 0ms}));
    auto waiting = env.start(env.locker->acquire("k", shared_without_ttl));
    env.ready();
    BOOST_TEST(!env.run(env.locker->try_acquire("k", shared_without_ttl)).has_value());
    BOOST_TEST(env.script->count(operation::create) == 1U);
    env.script->next(operation::create, step::hold());
    auto writing = env.start(env.locker->acquire("w"));
    env.ready();
    BOOST_TEST(!env.run(env.locker->try_acquire("w", shared_without_ttl)).has_value());
    env.script->deliver();
    env.ready();
    held = {};
    env.ready();
    static_cast<void>(waiting.get(env.io()));
    static_cast<void>(writing.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(cancellation_before_the_call_is_detected_before_a_request_is_sent)
{
    for (const bool single_attempt : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        asio::cancellation_signal cancel;
        error_code result;
        const auto caller = [&]() -> asio::awaitable<void> {
            co_await asio::this_coro::throw_if_cancelled(false);
            cancel.emit(asio::cancellation_type::terminal);
            try {
                if (single_attempt)
                    static_cast<void>(co_await env.locker->try_acquire("k"));
                else
                    static_cast<void>(co_await env.locker->acquire("k"));
            } catch (const boost::system::system_error& stopped) {
                result = stopped.code();
            }
        };
        asio::co_spawn(env.io(), caller(), asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr) {}));
        env.ready();
        BOOST_TEST((result == asio::error::operation_aborted));
        BOOST_TEST(env.script->count(operation::create) == 0U);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
