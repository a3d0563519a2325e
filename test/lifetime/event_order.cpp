// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

using events = std::vector<std::string>;

/// Records the events of locks, and calls `react` for each event.
struct event_log : observer
{
    events recorded;
    std::function<void(std::string_view)> react;

    void note(std::string what)
    {
        recorded.push_back(what);
        if (react)
            react(what);
    }
    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override { note("granted"); }
    void at_risk(std::string_view, const error_code&) noexcept override { note("at_risk"); }
    void lost(std::string_view, lost_reason, std::chrono::nanoseconds) noexcept override { note("lost"); }
    void released(std::string_view, std::chrono::nanoseconds) noexcept override { note("released"); }
    void settled(std::string_view, bool) noexcept override { note("settled"); }
};

} // namespace

BOOST_TEST_DONT_PRINT_LOG_VALUE(events)

BOOST_AUTO_TEST_SUITE(event_order)

BOOST_AUTO_TEST_CASE(loss_is_reported_before_it_is_settled)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::immediate}) {
        BOOST_TEST_CONTEXT(kind)
        {
            const auto log = std::make_shared<event_log>();
            virtual_fixture env(kind, {.observer = log});
            auto expiring = env.acquire("k", {.ttl = 10s});
            env.advance(11s);
            env.wind_down();
            BOOST_TEST((log->recorded == events{"granted", "lost", "settled"}));

            log->recorded.clear();
            auto broken = env.acquire("k", {.ttl = 10s});
            env.run(env.locker->break_lock("k"));
            env.wind_down();
            BOOST_TEST((log->recorded == events{"granted", "lost", "settled"}));
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(release_is_reported_before_the_next_grant_of_the_key)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::immediate}) {
        for (const bool fifo : {true, false}) {
            BOOST_TEST_CONTEXT(kind << ", fifo: " << fifo)
            {
                const auto log = std::make_shared<event_log>();
                virtual_fixture env(kind, {.observer = log});
                if (env.script)
                    set_capabilities(env, fifo, false, {.observer = log});
                auto held = env.acquire("k");
                std::vector<running<lock>> waiting;
                for (int n = 0; n < 3; ++n)
                    waiting.push_back(env.start(env.locker->acquire("k")));
                env.ready();
                for (auto& next : waiting) {
                    held = {};
                    held = next.get(env.io());
                }
                held = {};
                env.ready();
                BOOST_TEST((log->recorded == events{"granted", "released", "granted", "released", "granted", "released",
                                                 "granted", "released"}));
                env.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(event_caused_by_an_observer_is_reported_after_the_observer_returns)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        BOOST_TEST_CONTEXT(kind)
        {
            const auto log = std::make_shared<event_log>();
            virtual_fixture env(kind, {.observer = log});
            auto first = env.acquire("first");
            auto second = env.acquire("second");
            log->recorded.clear();
            log->react = [&](std::string_view what) {
                if (what == "released" && second) {
                    second = {};
                    log->recorded.emplace_back("returned");
                }
            };
            first = {};
            env.ready();
            BOOST_TEST((log->recorded == events{"released", "returned", "released"}));
            log->react = nullptr;
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
