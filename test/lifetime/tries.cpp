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

BOOST_AUTO_TEST_SUITE(tries)

BOOST_AUTO_TEST_CASE(try_of_a_reader_runs_in_parallel_with_an_acquire_of_another_reader)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->next(operation::create, step::hold());
    auto first = on.start(on.locker->acquire("k", shared_without_ttl));
    on.ready();
    auto second = on.run(on.locker->try_acquire("k", shared_without_ttl));
    BOOST_TEST(second.has_value());
    on.script->deliver();
    auto held = first.get(on.io());
    BOOST_TEST(held.held());
    held = {};
    second.reset();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(try_of_a_reader_does_not_overtake_waiters_or_writers)
{
    virtual_fixture on(backend_kind::scripted);
    colock::locker other_locker(on.memory);
    auto held = on.run(other_locker.acquire("k", {.ttl = 0ms}));
    auto waiting = on.start(on.locker->acquire("k", shared_without_ttl));
    on.ready();
    BOOST_TEST(!on.run(on.locker->try_acquire("k", shared_without_ttl)).has_value());
    BOOST_TEST(on.script->count(operation::create) == 1U);
    on.script->next(operation::create, step::hold());
    auto writing = on.start(on.locker->acquire("w"));
    on.ready();
    BOOST_TEST(!on.run(on.locker->try_acquire("w", shared_without_ttl)).has_value());
    on.script->deliver();
    on.ready();
    held = {};
    on.ready();
    static_cast<void>(waiting.get(on.io()));
    static_cast<void>(writing.get(on.io()));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(recorded_cancellation_is_detected_before_a_request_is_sent)
{
    for (const bool only_tries : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        asio::cancellation_signal cancel;
        error_code result;
        const auto caller = [&]() -> asio::awaitable<void> {
            co_await asio::this_coro::throw_if_cancelled(false);
            cancel.emit(asio::cancellation_type::terminal);
            try {
                if (only_tries)
                    static_cast<void>(co_await on.locker->try_acquire("k"));
                else
                    static_cast<void>(co_await on.locker->acquire("k"));
            } catch (const boost::system::system_error& stopped) {
                result = stopped.code();
            }
        };
        asio::co_spawn(on.io(), caller(), asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr) {}));
        on.ready();
        BOOST_TEST((result == asio::error::operation_aborted));
        BOOST_TEST(on.script->count(operation::create) == 0U);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
