// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "guide.hpp"
#include "support/instrumented_adapter.hpp"

#include <colock/election.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

// Compiles and runs the code of docs/recipes.md.

namespace {

//[ once_per_period
// `period` names the period, for example "2026-11-27". Each process calls the function repeatedly during the period.
asio::awaitable<bool> run_once(colock::locker locker, std::string period, std::function<asio::awaitable<void>()> job)
{
    try {
        co_await locker.with_lock("report:" + period, {.retry = colock::retry_policy::never()},
            [&](colock::lock& held) -> asio::awaitable<void> {
                co_await job();
                // Longer than the period, so that a process whose clock is behind does not find the key free again.
                co_await held.extend(48h);
                // Not released: the backend keeps the lock until its ttl ends.
                static_cast<void>(co_await held.detach());
            });
        co_return true;
    } catch (const colock::retry_error&) {
        co_return false; // the job has run in this period, or another process runs it
    }
}
//]

struct answer
{
    int status = 0;
    std::string text{};
    std::chrono::seconds retry_after{0};
};

asio::awaitable<answer> sell(std::string seat, std::uint64_t)
{
    co_await asio::post(asio::deferred);
    co_return answer{200, std::move(seat)};
}

//[ http
// Handles one request. The caller writes `retry_after` as the header Retry-After unless it is zero.
asio::awaitable<answer> answer_reservation(colock::locker locker, std::string seat)
{
    try {
        co_return co_await locker.with_lock("seat:" + seat, {.retry = colock::within(1s)},
            [&](colock::lock& held) { return sell(seat, held.fence()); });
    } catch (const colock::retry_error& busy) {
        // A reservation takes less than 10 s, even if the ttl of its lock is longer.
        const auto wait = std::clamp<std::chrono::nanoseconds>(busy.retry_after().value_or(1s), 1s, 10s);
        co_return answer{503, "busy: somebody else is reserving " + seat, ceil<std::chrono::seconds>(wait)};
    } catch (const colock::create_error& down) {
        co_return answer{503, down.code().message(), 5s};
    }
}
//]

/// A cache that several processes share.
class cache
{
public:
    asio::awaitable<std::optional<std::string>> get(std::string key) const
    {
        co_await asio::post(asio::deferred);
        const auto found = values_.find(key);
        co_return found == values_.end() ? std::nullopt : std::optional(found->second);
    }
    asio::awaitable<void> put(std::string key, std::string value)
    {
        co_await asio::post(asio::deferred);
        values_[key] = std::move(value);
    }
    asio::awaitable<std::string> compute(std::string key)
    {
        ++computed;
        co_await asio::post(asio::deferred);
        co_return "value of " + key;
    }

    int computed = 0;

private:
    std::map<std::string, std::string> values_;
};

//[ single_flight
asio::awaitable<std::string> lookup(colock::locker locker, cache& values, std::string key)
{
    if (auto found = co_await values.get(key))
        co_return *found; // no lock is needed to read
    co_return co_await locker.with_lock("refresh:" + key, [&]() -> asio::awaitable<std::string> {
        if (auto found = co_await values.get(key))
            co_return *found; // the previous holder has computed the value while this caller waited
        std::string value = co_await values.compute(key);
        co_await values.put(key, value);
        co_return value;
    });
}
//]

struct provider
{
    asio::awaitable<int> ask(int order)
    {
        max_calls = std::max(max_calls, ++calls);
        colock::lease_timer timer(co_await asio::this_coro::executor, 100ms);
        co_await timer.async_wait(asio::deferred);
        --calls;
        co_return order;
    }

    int calls = 0;
    int max_calls = 0;
};

//[ limit
// At most three calls run at once, counted over all processes.
asio::awaitable<int> ask(colock::locker locker, provider& from, int order)
{
    co_return co_await locker.with_lock("provider",
        {.mode = colock::lock_mode::shared, .max_holders = 3, .retry = colock::within(5s)},
        [&from, order] { return from.ask(order); });
}
//]

//[ sigterm
// Runs next to the work of the program. Returns the exit code.
asio::awaitable<int> stop_on_signal(colock::locker locker)
{
    asio::signal_set signals(co_await asio::this_coro::executor, SIGTERM, SIGINT);
    co_await signals.async_wait(asio::deferred);
    const colock::shutdown_report report = co_await locker.shutdown(5s);
    for (const std::string& key : report.still_running)
        std::clog << "the work still runs, the lock is left to its ttl: " << key << '\n';
    for (const std::string& key : report.unsettled)
        std::clog << "the backend has not answered, free after its ttl: " << key << '\n';
    co_return report.clean() ? 0 : 1;
}
//]

} // namespace

BOOST_FIXTURE_TEST_SUITE(recipes, fixture)

BOOST_AUTO_TEST_CASE(job_runs_once_per_period)
{
    const auto store = colock::memory::make_adapter(io.get_executor());
    colock::locker first(store);
    int runs = 0;
    const auto job = [&]() -> asio::awaitable<void> {
        co_await asio::post(asio::deferred);
        if (++runs == 1)
            throw std::runtime_error("the first run fails");
    };
    BOOST_CHECK_THROW(run(run_once(first, "2026-11-27", job)), std::runtime_error);
    // The exception may end the event loop, so the lock is released before it leaves the function.
    BOOST_TEST(first.stats().settling == 0U);
    BOOST_TEST(run(run_once(first, "2026-11-27", job)));
    colock::testing::run_ready(io);
    BOOST_TEST(!run(run_once(first, "2026-11-27", job)));
    jump(io, 25h);
    BOOST_TEST(run(run_once(first, "2026-11-28", job)));
    BOOST_TEST(!run(run_once(first, "2026-11-27", job))); // a process whose clock is behind
    BOOST_TEST(runs == 3);

    // The locks outlive the locker of the process that ran the job, and end with their ttl.
    colock::locker next(store);
    BOOST_TEST(run(first.shutdown()).clean());
    BOOST_TEST(!run(run_once(next, "2026-11-28", job)));
    jump(io, 49h);
    BOOST_TEST(!run(next.is_locked("report:2026-11-28")));
}

BOOST_AUTO_TEST_CASE(job_is_repeated_after_a_shutdown_and_after_a_crash)
{
    const auto store = colock::memory::make_adapter(io.get_executor());
    colock::locker first(store);
    colock::locker next(store);
    int completed = 0;
    const auto job = [&]() -> asio::awaitable<void> {
        colock::lease_timer work(co_await asio::this_coro::executor, 1h);
        co_await work.async_wait(asio::deferred);
        ++completed;
    };
    auto interrupted = colock::testing::start(io, run_once(first, "2026-11-27", job));
    virtual_clock::advance(io, 1min, 5s);
    BOOST_TEST(run(first.shutdown()).clean());
    BOOST_CHECK_THROW(interrupted.get(io), colock::lost_error);
    auto repeated = colock::testing::start(io, run_once(next, "2026-11-27", job));
    virtual_clock::advance(io, 2h, 5s);
    BOOST_TEST(repeated.get(io));
    BOOST_TEST(completed == 1);

    // The lease of a process that has crashed is not renewed.
    const colock::lock crashed = run(next.acquire("report:2026-11-28"));
    BOOST_TEST(!run(run_once(next, "2026-11-28", job)));
    jump(io, 31s);
    auto after_crash = colock::testing::start(io, run_once(next, "2026-11-28", job));
    virtual_clock::advance(io, 2h, 5s);
    BOOST_TEST(after_crash.get(io));
    BOOST_TEST(completed == 2);
}

BOOST_AUTO_TEST_CASE(http_answers_distinguish_busy_and_down)
{
    const auto script =
        std::make_shared<colock::testing::instrumented_adapter>(colock::memory::make_adapter(io.get_executor()));
    colock::locker remote(script);
    BOOST_TEST(run(answer_reservation(remote, "A1")).status == 200);

    const auto answer_after = [&](colock::lease_clock::duration span) {
        auto asked = colock::testing::start(io, answer_reservation(remote, "A1"));
        colock::testing::run_ready(io);
        virtual_clock::advance(io, span, 100ms);
        BOOST_TEST_REQUIRE(asked.done());
        return asked.get(io);
    };
    colock::lock held = run(remote.acquire("seat:A1", {.ttl = 9500ms}));
    const answer busy = answer_after(1100ms);
    BOOST_TEST(busy.status == 503);
    BOOST_TEST(busy.text.starts_with("busy"));
    BOOST_TEST(busy.retry_after.count() == 9); // 8.5 s are left
    run(held.release());

    held = run(remote.acquire("seat:A1", {.ttl = 0ms}));
    BOOST_TEST(answer_after(1100ms).retry_after.count() == 1);
    run(held.release());

    held = run(remote.acquire("seat:A1", {.ttl = 60s}));
    BOOST_TEST(answer_after(1100ms).retry_after.count() == 10);
    run(held.release());

    using colock::testing::operation;
    script->always(operation::create, colock::testing::step::fail(colock::errc::unavailable, "nobody listens"));
    const answer down = answer_after(3s);
    BOOST_TEST(down.status == 503);
    BOOST_TEST(down.text.starts_with("unavailable"));
    BOOST_TEST(down.retry_after.count() == 5);
}

BOOST_AUTO_TEST_CASE(concurrent_lookups_compute_one_value)
{
    cache values;
    std::vector<colock::testing::running<std::string>> lookups;
    for (int i = 0; i < 5; ++i)
        lookups.push_back(colock::testing::start(io, lookup(locker, values, "k")));
    for (auto& each : lookups)
        BOOST_TEST(each.get(io) == "value of k");
    BOOST_TEST(run(lookup(locker, values, "k")) == "value of k");
    BOOST_TEST(values.computed == 1);
}

BOOST_AUTO_TEST_CASE(fourth_concurrent_call_waits)
{
    provider slow;
    std::vector<colock::testing::running<int>> calls;
    for (int order = 0; order < 10; ++order)
        calls.push_back(colock::testing::start(io, ask(locker, slow, order)));
    colock::testing::run_ready(io);
    virtual_clock::advance(io, 1s, 50ms);
    for (int order = 0; order < 10; ++order) {
        auto& call = calls[static_cast<std::size_t>(order)];
        BOOST_TEST_REQUIRE(call.done());
        BOOST_TEST(call.get(io) == order);
    }
    BOOST_TEST(slow.max_calls == 3);
}

BOOST_AUTO_TEST_CASE(signal_ends_the_work_and_releases_its_lock)
{
    auto stopped = colock::testing::start(io, stop_on_signal(locker));
    auto work = colock::testing::start(io, locker.with_lock("k", []() -> asio::awaitable<void> {
        colock::lease_timer timer(co_await asio::this_coro::executor, 1h);
        co_await timer.async_wait(asio::deferred);
    }));
    colock::testing::run_ready(io);
    BOOST_TEST(locked("k"));
    std::raise(SIGTERM);
    BOOST_TEST(stopped.get(io) == 0);
    BOOST_CHECK_THROW(work.get(io), colock::lost_error);
    BOOST_TEST(!locked("k"));
}

BOOST_AUTO_TEST_CASE(signal_reports_work_that_does_not_end)
{
    auto stopped = colock::testing::start(io, stop_on_signal(locker));
    colock::lease_timer end(io, 1h);
    auto work = colock::testing::start(io, locker.with_lock("k", [&]() -> asio::awaitable<void> {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await end.async_wait(asio::deferred);
    }));
    colock::testing::run_ready(io);
    std::raise(SIGINT);
    colock::testing::run_ready(io);
    jump(io, 6s);
    BOOST_TEST_REQUIRE(stopped.done());
    BOOST_TEST(stopped.get(io) == 1);
    jump(io, 1h);
    BOOST_TEST(work.done());
}

BOOST_AUTO_TEST_CASE(signal_ends_the_election_of_the_leader_and_of_a_candidate)
{
    const auto body = []() -> asio::awaitable<void> {
        colock::lease_timer work(co_await asio::this_coro::executor, 1h);
        co_await work.async_wait(asio::deferred);
    };
    const auto store = colock::memory::make_adapter(io.get_executor());
    colock::locker first(store);
    colock::locker second(store);
    auto leader_stopped = colock::testing::start(io, stop_on_signal(first));
    auto candidate_stopped = colock::testing::start(io, stop_on_signal(second));
    auto leader = colock::testing::start(io, colock::election(first, "leader").lead(body));
    colock::testing::run_ready(io);
    auto candidate = colock::testing::start(io, colock::election(second, "leader").lead(body));
    colock::testing::run_ready(io);
    BOOST_TEST(first.stats().held == 1U);
    BOOST_TEST(second.stats().waiting == 1U);
    BOOST_TEST(!leader.done());
    BOOST_TEST(!candidate.done());
    std::raise(SIGTERM);
    BOOST_TEST(leader_stopped.get(io) == 0);
    BOOST_TEST(candidate_stopped.get(io) == 0);
    colock::testing::run_ready(io);
    BOOST_TEST(leader.done());
    BOOST_TEST(candidate.done());
}

BOOST_AUTO_TEST_SUITE_END()
