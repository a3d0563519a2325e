// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// A locker on the store of the fixture with a script of its own. It acts as another process.
struct other_process
{
    std::shared_ptr<instrumented_adapter> script;
    colock::locker locker;

    explicit other_process(virtual_fixture& env, timing answers = timing::posted)
        : script(std::make_shared<instrumented_adapter>(env.memory, env.io().get_executor(), answers)),
          locker(copy_capabilities(env))
    {
    }

private:
    [[nodiscard]] std::shared_ptr<adapter> copy_capabilities(const virtual_fixture& env) const
    {
        script->set_capabilities(env.script->traits().capabilities);
        return script;
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(stream_of_others_does_not_starve_a_group)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        bool stop = false;
        const auto stream = [&]() -> asio::awaitable<void> {
            while (!stop) {
                auto held = co_await env.locker->acquire("b");
                lease_timer timer(co_await asio::this_coro::executor, 1s);
                co_await timer.async_wait(asio::deferred);
            }
        };
        std::vector<running<void>> others;
        for (int i = 0; i < 3; ++i)
            others.push_back(env.start(stream()));
        env.ready();
        auto waiting = env.start(env.locker->acquire_all({"a", "b"}));
        env.advance_by_steps(20s, 100ms);
        BOOST_TEST(waiting.done());
        stop = true;
        if (waiting.done())
            env.run(waiting.get(env.io()).release());
        env.advance_by_steps(10s, 100ms);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(group_that_starts_again_after_a_delay_ends_at_once_when_it_has_to)
{
    enum class ending
    {
        shutdown,
        destruction,
        cancel,
    };
    for (const auto ends : {ending::shutdown, ending::destruction, ending::cancel}) {
        virtual_fixture env(backend_kind::scripted);
        disable_create_all(env);
        // A lease ends before the group is complete, and the group starts again after the policy's delay.
        env.script->always(operation::extend, step::fail(errc::unavailable));
        end_first_lease(*env.script);
        asio::cancellation_signal cancel;
        std::optional<error_code> result;
        env.locker->async_acquire_all({"a", "b"}, {.ttl = 1s, .retry = retry_policy::fixed(1h)},
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock_group&) { result = code; }));
        env.ready();
        BOOST_TEST(!result);
        BOOST_TEST(env.stored().empty());
        if (ends == ending::shutdown)
            BOOST_TEST(env.run(env.locker->shutdown()).unsettled.empty());
        else if (ends == ending::destruction)
            env.locker.reset();
        else
            cancel.emit(asio::cancellation_type::total);
        env.ready();
        BOOST_TEST_REQUIRE(result.has_value());
        BOOST_TEST(
            (ends == ending::cancel ? *result == asio::error::operation_aborted : *result == errc::shutting_down));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(many_groups_and_single_acquires_complete)
{
    for (const auto kind : {backend_kind::memory, backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        std::size_t done = 0;
        const auto key = [](int n) { return "k" + std::to_string(n % 3); };
        const auto work = [&](int self) -> asio::awaitable<void> {
            for (int n = 0; n < 20; ++n) {
                if ((self + n) % 3 != 0) {
                    const auto held = co_await env.locker->acquire(key(self * n));
                    if (n % 2)
                        co_await asio::post(asio::deferred);
                } else {
                    const auto held = co_await env.locker->acquire_all({key(0), key(1), key(2)});
                    co_await asio::post(asio::deferred);
                }
            }
            ++done;
        };
        constexpr std::size_t workers = 19;
        std::vector<running<void>> all;
        for (std::size_t n = 0; n < workers; ++n)
            all.push_back(env.start(work(static_cast<int>(n))));
        for (int n = 0; n < 50'000 && done < workers; ++n)
            env.advance(100us);
        BOOST_TEST(done == workers);
        BOOST_TEST(env.locker->stats().attempts < 20'000U);
        env.check_clean();
    }
}

/// All requests are executed one after the other, so the next one is always due.
BOOST_AUTO_TEST_CASE(many_groups_on_an_overloaded_loop_complete)
{
    struct setup
    {
        std::size_t processes;
        bool fifo;
        bool several;
        bool events;
    };
    std::vector<setup> setups;
    for (const std::size_t processes : {1U, 3U, 10U}) {
        for (const bool events : {false, true}) {
            for (const auto& [fifo, several] : {std::pair(false, false), {true, false}, {true, true}})
                setups.push_back({processes, fifo, several, events});
        }
    }
    for (const auto& each : setups) {
        for (const auto pace : {100us, 200us, 500us, 3000us}) {
            virtual_fixture env(backend_kind::immediate);
            set_capabilities(env, each.fifo, each.several);
            auto can = env.script->traits().capabilities;
            can.immediate = true;
            can.events = each.events;
            env.script->set_capabilities(can);
            std::vector<std::unique_ptr<other_process>> lockers;
            for (std::size_t n = 0; n < each.processes; ++n) {
                lockers.push_back(std::make_unique<other_process>(env, timing::immediate));
                block_loop_per_call(*lockers.back()->script, env.io(), pace);
            }
            const acquire_options quick_retry{.retry = retry_policy::fixed(1ms)};
            constexpr std::size_t rounds = 5;
            std::size_t done = 0;
            const auto work = [&](colock::locker by, bool wants_three) -> asio::awaitable<void> {
                for (std::size_t n = 0; n < rounds; ++n) {
                    auto keys =
                        wants_three ? std::vector<std::string>{"a", "b", "c"} : std::vector<std::string>{"a", "b"};
                    auto group = co_await by.acquire_all(std::move(keys), quick_retry);
                    co_await sleep_for(n * 400us);
                    co_await group.release();
                    if (n % 2 == 0) {
                        const auto one = co_await by.acquire(wants_three ? "a" : "b", quick_retry);
                        co_await sleep_for(700us);
                    }
                    ++done;
                }
            };
            constexpr std::size_t workers = 10;
            std::vector<running<void>> all;
            for (std::size_t n = 0; n < workers; ++n)
                all.push_back(env.start(work(lockers[n % lockers.size()]->locker, n % 2 == 1)));
            const auto began = lease_clock::now();
            try {
                while (done < rounds * workers && lease_clock::now() < began + 2min)
                    env.advance(100us);
            } catch (const stuck& busy) {
                BOOST_TEST_INFO(busy.what());
            }
            std::size_t attempts = 0;
            for (const auto& by : lockers)
                attempts += by->locker.stats().attempts;
            BOOST_TEST_CONTEXT("lockers: " << each.processes << ", fifo: " << each.fifo
                                           << ", in one step: " << each.several << ", events: " << each.events
                                           << ", pace: " << pace / 1us << " us")
            {
                BOOST_TEST_REQUIRE(done == rounds * workers);
                BOOST_TEST(attempts < 5000U);
            }
            env.wind_down();
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
