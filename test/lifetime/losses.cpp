// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "backend_failures.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/this_coro.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(losses_of_bodies)

namespace {

/// Records losses.
struct loss_recorder : observer
{
    std::vector<lost_reason> losses;
    void lost(std::string_view, lost_reason reason, std::chrono::nanoseconds) noexcept override
    {
        losses.push_back(reason);
    }
};

using reasons = std::vector<lost_reason>;

asio::awaitable<void> works_forever()
{
    lease_timer timer(co_await asio::this_coro::executor, 24h);
    co_await timer.async_wait(asio::use_awaitable);
}

} // namespace

BOOST_AUTO_TEST_CASE(each_loss_is_counted_and_reported_to_the_observer)
{
    struct
    {
        const char* name;
        acquire_options options;
        lost_reason reason;
        void (*happens)(virtual_fixture&);
    } const cases[] = {
        {"without renewal", {.ttl = 2s, .renewal = renewal::manual}, lost_reason::expired, [](virtual_fixture&) {}},
        {"max_hold", {.ttl = 2s, .max_hold = 5s}, lost_reason::expired, [](virtual_fixture&) {}},
        {"the backend is gone", {.ttl = 2s}, lost_reason::expired,
            [](virtual_fixture& env) {
                for (const auto each : {operation::extend, operation::release, operation::abandon})
                    env.script->always(each, fails());
            }},
        {"the backend is silent", {.ttl = 2s}, lost_reason::expired,
            [](virtual_fixture& env) {
                for (const auto each : {operation::extend, operation::release, operation::abandon})
                    env.script->always(each, step::hold());
            }},
        {"broken", {.ttl = 2s}, lost_reason::broken,
            [](virtual_fixture& env) { env.run(env.locker->break_lock("k")); }},
        {"taken", {.ttl = 2s}, lost_reason::taken,
            [](virtual_fixture& env) {
                if (env.script)
                    env.script->always(operation::extend, step::not_held());
            }},
        {"shut down", {.ttl = 2s}, lost_reason::shutting_down,
            [](virtual_fixture& env) { env.run(env.locker->shutdown(1s)); }},
    };
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto& each : cases) {
            const bool of_backend = each.reason == lost_reason::taken || std::string_view(each.name).starts_with("the");
            if (kind == backend_kind::memory && of_backend)
                continue;
            for (const bool observed : {false, true}) {
                BOOST_TEST_CONTEXT(each.name << " " << kind << ", observed: " << observed)
                {
                    const auto listener = std::make_shared<loss_recorder>();
                    virtual_fixture env(kind, {.observer = observed ? listener : nullptr});
                    auto working = env.start(env.locker->with_lock("k", each.options, works_forever));
                    env.ready();
                    each.happens(env);
                    env.advance_by_steps(10s, 50ms);
                    BOOST_TEST_REQUIRE(working.done());
                    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
                    finish_cleanup(env);
                    const auto counted = env.locker->stats();
                    for (std::size_t reason = 0; reason < counted.losses.size(); ++reason)
                        BOOST_TEST(
                            counted.losses[reason] == (reason == static_cast<std::size_t>(each.reason) ? 1U : 0U));
                    BOOST_TEST(counted.grants == counted.releases + 1);
                    if (observed)
                        BOOST_TEST((listener->losses == reasons{each.reason}));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(late_value_is_a_loss_and_value_in_time_is_none)
{
    for (const bool late : {false, true}) {
        const auto listener = std::make_shared<loss_recorder>();
        virtual_fixture env(backend_kind::memory, {.observer = listener});
        const auto work = [&] { env.clock.skip(late ? 20s : 5s); };
        auto working = env.start(env.locker->with_lock("k", {.ttl = 10s, .renewal = renewal::manual}, work));
        env.ready();
        BOOST_TEST_REQUIRE(working.done());
        if (late)
            COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
        else
            working.get(env.io());
        env.check_clean();
        BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == (late ? 1U : 0U));
        BOOST_TEST((listener->losses == (late ? reasons{lost_reason::expired} : reasons{})));
    }
}

BOOST_AUTO_TEST_CASE(no_body_begins_under_a_lease_that_has_ended)
{
    virtual_fixture env(backend_kind::scripted);
    // The answer arrives in time, but its coroutine is resumed only after the lease has ended.
    env.script->next(operation::create, step::pass().after([&] { env.clock.skip(1s); }));
    bool begun = false;
    auto working = env.start(env.locker->with_lock("k", {.ttl = 10s}, [&] { begun = true; }));
    while (env.locker->stats().grants == 0)
        env.io().poll_one();
    env.clock.skip(10s);
    env.ready();
    BOOST_TEST(!begun);
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
    BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
    finish_cleanup(env);
}

BOOST_AUTO_TEST_CASE(lock_of_a_running_body_expires_by_its_ttl_after_a_shutdown)
{
    virtual_fixture env(backend_kind::scripted);
    auto working = env.start(env.locker->with_lock("k", {.ttl = 3s}, []() -> asio::awaitable<void> {
        // The body ignores its cancellation.
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        lease_timer timer(co_await asio::this_coro::executor, 1min);
        co_await timer.async_wait(asio::use_awaitable);
    }));
    env.advance_by_steps(5s, 100ms);
    BOOST_TEST(env.locker->stats().renewals > 2U);
    auto stopping = env.start(env.locker->shutdown(1s));
    env.advance_by_steps(1500ms, 100ms);
    BOOST_TEST_REQUIRE(stopping.done());
    BOOST_TEST((stopping.get(env.io()).still_running == std::vector<std::string>{"k"}));
    BOOST_TEST(env.stored().size() == 1U);
    const auto extended = env.script->count(operation::extend);
    env.advance_by_steps(4s, 100ms);
    BOOST_TEST(env.script->count(operation::extend) == extended);
    BOOST_TEST(env.stored().empty());
    env.advance(1min);
    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
    finish_cleanup(env);
}

BOOST_AUTO_TEST_SUITE_END()
