// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The events that an observer receives, and that no mutex is held meanwhile.
#include "support/virtual_fixture.hpp"

#include <colock/observer.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(observers)

namespace {

/// Records every event, and uses the locker in each. This would deadlock if a mutex were held.
struct recorder : observer
{
    std::optional<colock::locker> subject;
    std::vector<std::string> recorded;

    void note(std::string what)
    {
        if (subject) {
            static_cast<void>(subject->stats());
            static_cast<void>(subject->held_locks());
        }
        recorded.push_back(std::move(what));
    }
    [[nodiscard]] auto count(std::string_view what) const { return std::ranges::count(recorded, what); }

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
    void lost(std::string_view key, lost_reason reason, std::chrono::nanoseconds) noexcept override
    {
        note("lost " + std::string(key) + " " + to_string(reason));
    }
    void released(std::string_view key, std::chrono::nanoseconds) noexcept override
    {
        note("released " + std::string(key));
    }
    void settled(std::string_view key, bool proven) noexcept override
    {
        note("settled " + std::string(key) + (proven ? "" : " without proof"));
    }
};

/// Counts the extensions that were sent when a loss is reported.
struct loss_watcher : observer
{
    std::shared_ptr<instrumented_adapter> script;
    std::vector<std::size_t> sent_at_loss;

    void lost(std::string_view, lost_reason, std::chrono::nanoseconds) noexcept override
    {
        sent_at_loss.push_back(script->count(operation::extend));
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(extension_of_a_group_is_sent_before_losses_are_reported)
{
    const auto watcher = std::make_shared<loss_watcher>();
    virtual_fixture env(backend_kind::scripted, {.observer = watcher});
    watcher->script = env.script;
    auto group = env.locker->group();
    env.run(group.acquire("a", {.ttl = 20s}));
    env.run(group.acquire("b", {.ttl = 2s}));
    env.clock.skip(3s);
    auto extending = env.start(group.extend(20s));
    env.ready();
    BOOST_TEST_REQUIRE(watcher->sent_at_loss.size() == 1U);
    BOOST_TEST(watcher->sent_at_loss.front() == 1U);
    const auto reports = extending.get(env.io());
    BOOST_TEST(reports.size() == 2U);
    for (const auto& each : reports)
        BOOST_TEST((each.key == "b" ? each.status == errc::not_held : !each.status), each.key);
    env.run(group.release());
    watcher->script = nullptr;
}

BOOST_AUTO_TEST_CASE(every_event_is_reported_without_a_mutex)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        const auto observed = std::make_shared<recorder>();
        virtual_fixture env(kind, {.observer = observed});
        observed->subject = *env.locker;
        auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        auto waiting = env.start(env.locker->acquire("k"));
        env.ready();
        BOOST_TEST(observed->count("granted k") == 1);
        BOOST_TEST(observed->count("waiting k") == 1);
        env.advance_by_steps(25s, 1s);
        BOOST_TEST(observed->count("renewed k") == 2);
        held = {};
        auto next = waiting.get(env.io());
        BOOST_TEST(observed->count("released k") == 1);
        BOOST_TEST(observed->count("granted k") == 2);
        env.run(env.locker->break_lock("k"));
        env.wind_down();
        BOOST_TEST(observed->count("lost k broken") == 1);
        BOOST_TEST(observed->count("settled k") == 1);
        // With an observer, the end of the lease must be detected: a local timer finds the expiry.
        auto expiring = env.acquire("e", {.ttl = 10s});
        env.advance(11s);
        BOOST_TEST(observed->count("lost e expired") == 1);
        env.wind_down();
        if (env.script) {
            env.script->contact().set_up();
            env.script->contact().set_down(errc::unavailable);
            env.script->contact().set_up();
            env.script->contact().warn("look here");
            for (const auto* event : {"ready", "suspended", "reconnected", "warning"})
                BOOST_TEST(observed->count(event) == 1);
            BOOST_TEST(env.locker->stats().reconnects == 1U);
            auto risky = env.acquire("r", {.ttl = 30s, .renewal = renewal::automatic});
            env.script->next(operation::extend, step::fail(errc::unavailable));
            env.advance_by_steps(11s, 1s);
            BOOST_TEST(observed->count("at_risk r") == 1);
            risky = {};
            env.ready();
            asio::cancellation_signal cancel;
            env.script->next(operation::create, step::hold());
            env.locker->async_acquire("s", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
            env.ready();
            cancel.emit(asio::cancellation_type::terminal);
            env.ready();
            env.script->deliver();
            env.ready();
            BOOST_TEST(observed->count("settled s") == 1);
        }
        env.check_clean();
        // The locker must not keep itself alive through its observer.
        observed->subject.reset();
    }
}

BOOST_AUTO_TEST_CASE(release_that_is_unanswered_when_its_context_ends_is_settled_without_proof)
{
    const auto observed = std::make_shared<recorder>();
    virtual_fixture env(backend_kind::scripted, {.observer = observed});
    auto held = env.acquire("k");
    env.script->next(operation::release, step::hold());
    held = {};
    env.ready();
    env.context.reset();
    BOOST_TEST(observed->count("settled k without proof") == 1);
    BOOST_TEST(observed->count("released k") == 0);
}

BOOST_AUTO_TEST_SUITE_END()
