// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"

#include <memory>
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
            env.wind_down_and_check();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
