// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Elections: what begins and ends a term, and what each caller receives.
#include "support/virtual_fixture.hpp"

#include <colock/election.hpp>
#include <colock/observer.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(elections)

namespace {

/// Records the events of a leader, and the warnings.
struct event_log : observer
{
    std::vector<std::string> events;
    std::vector<std::string> warnings;

    void granted(std::string_view key, std::uint64_t, std::chrono::nanoseconds) noexcept override
    {
        add("granted", key);
    }
    void released(std::string_view key, std::chrono::nanoseconds) noexcept override { add("released", key); }
    void lost(std::string_view key, lost_reason, std::chrono::nanoseconds) noexcept override { add("lost", key); }
    void elected(std::string_view key, std::uint64_t term) noexcept override
    {
        last_term = term;
        add("elected", key);
    }
    void resigned(std::string_view key, std::uint64_t term) noexcept override
    {
        BOOST_TEST(term == last_term);
        add("resigned", key);
    }
    void deposed(std::string_view key, std::uint64_t term, lost_reason reason) noexcept override
    {
        BOOST_TEST(term == last_term);
        add(std::string("deposed ") + to_string(reason), key);
    }
    void warning(std::string_view, std::string_view message) noexcept override { warnings.emplace_back(message); }

    std::uint64_t last_term = 0;

private:
    void add(std::string what, std::string_view key) { events.push_back(std::move(what.append(" ").append(key))); }
};

using strings = std::vector<std::string>;

/// A body that works until it is cancelled, and counts its terms.
struct worker
{
    int begun = 0;
    int running = 0;
    std::uint64_t term = 0;

    [[nodiscard]] auto body()
    {
        return [this](leadership& held) -> asio::awaitable<void> {
            ++begun;
            term = held.term();
            BOOST_TEST(held.held());
            ++running;
            const struct end
            {
                int& running;
                ~end() { --running; }
            } on_exit{running};
            co_await sleep_for(1h);
        };
    }
};

const auto all_types = {
    asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total};

/// The end of an `async_lead`.
struct lead_end
{
    int completions = 0;
    error_code result;
    asio::cancellation_signal cancel;

    [[nodiscard]] auto handler()
    {
        return asio::bind_cancellation_slot(cancel.slot(), [this](error_code code) {
            ++completions;
            result = code;
        });
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(each_term_runs_the_body_until_the_shutdown)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::immediate}) {
        const auto log = std::make_shared<event_log>();
        virtual_fixture env(kind, {.observer = log});
        std::vector<std::uint64_t> terms;
        auto leading = env.start(election(*env.locker, "k").lead([&](const leadership& held) -> asio::awaitable<void> {
            terms.push_back(held.term());
            if (terms.size() == 3)
                co_await sleep_for(1h);
        }));
        env.ready();
        BOOST_TEST_REQUIRE(terms.size() == 3U);
        BOOST_TEST((terms[0] < terms[1] && terms[1] < terms[2]));
        BOOST_TEST(env.stored().size() == 1U);
        BOOST_TEST(env.run(env.locker->shutdown()).clean());
        BOOST_TEST_REQUIRE(leading.done());
        BOOST_CHECK_NO_THROW(leading.get(env.io()));
        env.check_clean();
        BOOST_TEST((log->warnings.empty()));
    }
}

BOOST_AUTO_TEST_CASE(a_body_that_returns_at_once_lets_other_handlers_run)
{
    virtual_fixture env;
    int terms = 0;
    bool others_ran = false;
    auto leading = env.start(election(*env.locker, "k").lead([&]() -> asio::awaitable<void> {
        BOOST_TEST_REQUIRE(++terms < 100);
        co_return;
    }));
    asio::post(env.io(), [&] { others_ran = true; });
    while (!others_ran)
        env.io().run_one();
    while (terms < 5)
        env.io().run_one();
    auto shutting = env.start(env.locker->shutdown());
    BOOST_CHECK_NO_THROW(leading.get(env.io()));
    BOOST_TEST(shutting.get(env.io()).clean());
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(events_of_a_leader_frame_each_term)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        const auto log = std::make_shared<event_log>();
        virtual_fixture env(kind, {.observer = log});
        const election candidate(*env.locker, "k");
        auto held = env.run(candidate.campaign());
        BOOST_TEST(held.term() == held.fence());
        BOOST_TEST(log->last_term == held.term());
        env.run(held.resign());
        BOOST_TEST((log->events == strings{"granted k", "elected k", "resigned k", "released k"}));
        log->events.clear();
        held = env.run(candidate.campaign());
        held = {};
        env.ready();
        BOOST_TEST((log->events == strings{"granted k", "elected k", "resigned k", "released k"}));
        log->events.clear();
        held = env.run(candidate.campaign());
        env.run(env.locker->break_lock("k"));
        env.ready();
        BOOST_TEST(!held.held());
        BOOST_TEST((log->events == strings{"granted k", "elected k", "lost k", "deposed broken k"}));
        held = {};
        log->events.clear();
        held = env.run(candidate.campaign());
        static_cast<void>(env.run(held.detach()));
        BOOST_TEST((log->events == strings{"granted k", "elected k", "resigned k", "released k"}));
        env.run(env.locker->break_lock("k"));
        log->events.clear();
        held = env.run(candidate.campaign());
        env.run(env.locker->shutdown());
        BOOST_TEST((log->events == strings{"granted k", "elected k", "lost k", "resigned k"}));
        env.check_clean();
    }
    // A lock of the same key that is not part of an election has no such events.
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::memory, {.observer = log});
    env.run(env.acquire("k").release());
    BOOST_TEST((log->events == strings{"granted k", "released k"}));
}

BOOST_AUTO_TEST_CASE(a_release_without_an_answer_is_still_a_resignation)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::scripted, {.observer = log});
    auto held = env.run(election(*env.locker, "k").campaign());
    env.script->next(operation::release, step::lose_reply());
    env.run(held.resign());
    env.wind_down();
    BOOST_TEST((log->events == strings{"granted k", "elected k", "resigned k"}));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_claim_that_replaces_another_is_elected_too)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::scripted, {.observer = log});
    // The release of a late grant is not answered, so the acquire continues with a second claim.
    env.script->next(operation::create, step::pass().delay(29s));
    env.script->next(operation::release, step::lose_reply());
    auto campaigning = env.start(election(*env.locker, "k", {.ttl = 30s}).campaign());
    env.advance_by_steps(40s, 500ms);
    BOOST_TEST_REQUIRE(campaigning.done());
    BOOST_TEST(env.script->unused_count() == 0U);
    BOOST_TEST(campaigning.get(env.io()).held());
    BOOST_TEST((log->events[1] == "elected k"));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(the_delay_after_a_body_that_throws_is_doubled)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        const auto log = std::make_shared<event_log>();
        virtual_fixture env(kind, {.observer = log});
        std::vector<lease_clock::time_point> begun;
        bool is_long = false;
        bool returns = false;
        auto leading = env.start(election(*env.locker, "k").lead([&]() -> asio::awaitable<void> {
            begun.push_back(lease_clock::now());
            if (is_long)
                co_await sleep_for(31s);
            if (!std::exchange(returns, false))
                throw std::runtime_error("the disk is full");
        }));
        env.ready();
        for (const auto delay : {1s, 2s, 4s, 8s, 16s, 30s, 30s}) {
            const auto terms = begun.size();
            BOOST_TEST(env.stored().empty());
            env.advance(delay - 100ms);
            BOOST_TEST(begun.size() == terms);
            env.advance(200ms);
            BOOST_TEST_REQUIRE(begun.size() == terms + 1);
            BOOST_TEST(log->warnings.back().find("the disk is full") != std::string::npos);
        }
        BOOST_TEST(log->warnings.size() == 8U);
        BOOST_TEST(log->warnings[1].find("begins in 2 s") != std::string::npos, log->warnings[1]);
        // After a long term, the delay begins with 1 s again.
        is_long = true;
        env.advance_by_steps(30s, 100ms);
        is_long = false;
        const auto before = begun.size();
        env.advance_by_steps(31s, 100ms);
        BOOST_TEST_REQUIRE(begun.size() == before);
        BOOST_TEST(env.stored().empty());
        env.advance(1100ms);
        BOOST_TEST_REQUIRE(begun.size() == before + 1);
        // And after a body that has returned: the next body begins at once, and the delay after it is 1 s.
        returns = true;
        env.advance(2100ms);
        BOOST_TEST_REQUIRE(begun.size() == before + 3);
        env.advance(900ms);
        BOOST_TEST(begun.size() == before + 3);
        env.advance(200ms);
        BOOST_TEST(begun.size() == before + 4);
        env.run(env.locker->shutdown());
        env.ready();
        BOOST_CHECK_NO_THROW(leading.get(env.io()));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(the_loss_of_another_lock_is_an_exception_of_the_body)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::memory, {.observer = log});
    const colock::locker other(env.memory);
    auto leading = env.start(election(*env.locker, "k").lead([&]() -> asio::awaitable<void> {
        co_await other.with_lock("inner", []() -> asio::awaitable<void> { co_await sleep_for(1h); });
    }));
    env.ready();
    env.run(other.break_lock("inner"));
    env.ready();
    BOOST_TEST_REQUIRE(log->warnings.size() == 1U);
    BOOST_TEST(log->warnings[0].find("lost") != std::string::npos, log->warnings[0]);
    BOOST_TEST((log->events == strings{"granted k", "elected k", "resigned k", "released k"}));
    env.run(env.locker->shutdown());
    env.ready();
    BOOST_CHECK_NO_THROW(leading.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_leader_that_is_deposed_campaigns_again_after_its_body_has_ended)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::scripted, {.observer = log});
    int terms = 0;
    int cancelled = 0;
    auto leading = env.start(election(*env.locker, "k").lead([&](leadership& held) -> asio::awaitable<void> {
        ++terms;
        try {
            co_await sleep_for(1h);
        } catch (const boost::system::system_error&) {
            ++cancelled;
            BOOST_TEST(held.held() == (terms == 2)); // the second term ends by the shutdown
        }
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await sleep_for(5s);
    }));
    env.ready();
    env.run(env.locker->break_lock("k"));
    env.ready();
    BOOST_TEST(cancelled == 1);
    env.advance_by_steps(4s, 100ms);
    BOOST_TEST(terms == 1);
    BOOST_TEST(env.stored().empty());
    BOOST_TEST((log->events == strings{"granted k", "elected k", "lost k", "deposed broken k"}));
    env.advance_by_steps(1900ms, 100ms);
    BOOST_TEST(terms == 1);
    env.advance_by_steps(300ms, 100ms);
    BOOST_TEST(terms == 2);
    BOOST_TEST(log->warnings.empty());
    auto shutting = env.start(env.locker->shutdown(1min));
    env.advance_by_steps(6s, 100ms);
    BOOST_CHECK_NO_THROW(leading.get(env.io()));
    BOOST_TEST(shutting.get(env.io()).clean());
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_body_is_cancelled_before_its_lease_can_end)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::scripted, {.observer = log});
    env.script->always(operation::extend, step::fail(errc::unavailable));
    const auto start = lease_clock::now();
    lease_clock::time_point stopped;
    bool was_held = false;
    auto leading =
        env.start(election(*env.locker, "k", {.ttl = 30s}).lead([&](leadership& held) -> asio::awaitable<void> {
            try {
                co_await sleep_for(1h);
            } catch (const boost::system::system_error&) {
                stopped = lease_clock::now();
                was_held = held.held();
                throw;
            }
        }));
    env.advance_by_steps(30s, 100ms);
    BOOST_TEST((stopped - start >= 28698ms));
    BOOST_TEST((stopped - start < 29698ms));
    BOOST_TEST(was_held);
    BOOST_TEST((log->events[3] == "deposed expired k"));
    env.script->reset();
    env.run(env.locker->shutdown());
    env.ready();
    BOOST_CHECK_NO_THROW(leading.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_body_that_resigns_does_not_campaign_before_it_has_ended)
{
    const auto log = std::make_shared<event_log>();
    virtual_fixture env(backend_kind::scripted, {.observer = log});
    int terms = 0;
    auto leading = env.start(election(*env.locker, "k").lead([&](leadership& held) -> asio::awaitable<void> {
        ++terms;
        co_await held.resign();
        BOOST_TEST(!held.held());
        co_await sleep_for(10s);
    }));
    env.ready();
    BOOST_TEST(terms == 1);
    BOOST_TEST((log->events == strings{"granted k", "elected k", "resigned k", "released k"}));
    {
        const auto other = env.acquire("k");
        env.advance(9s);
        BOOST_TEST(terms == 1);
    }
    env.advance(2s);
    BOOST_TEST(terms == 2);
    auto shutting = env.start(env.locker->shutdown(1min));
    env.advance(10s);
    BOOST_CHECK_NO_THROW(leading.get(env.io()));
    BOOST_TEST(shutting.get(env.io()).clean());
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(two_candidates_of_one_locker_take_turns)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        std::string order;
        int leaders = 0;
        const auto body = [&](char name) {
            return [&, name](leadership&) -> asio::awaitable<void> {
                BOOST_TEST(++leaders == 1);
                order += name;
                co_await sleep_for(1s);
                --leaders;
            };
        };
        auto first = env.start(election(*env.locker, "k").lead(body('a')));
        auto second = env.start(election(*env.locker, "k").lead(body('b')));
        env.ready();
        env.advance_by_steps(4500ms, 100ms);
        BOOST_TEST((order == "ababa" || order == "babab"), order);
        --leaders; // the shutdown cancels the body
        env.run(env.locker->shutdown());
        env.ready();
        BOOST_CHECK_NO_THROW(first.get(env.io()));
        BOOST_CHECK_NO_THROW(second.get(env.io()));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_cancellation_during_a_body_waits_for_its_end)
{
    enum class reaction : unsigned char
    {
        rethrow,
        return_late,
        throw_another,
    };
    for (const auto how : {reaction::rethrow, reaction::return_late, reaction::throw_another}) {
        for (const auto type : all_types) {
            const auto log = std::make_shared<event_log>();
            virtual_fixture env(backend_kind::scripted, {.observer = log});
            lead_end end;
            election(*env.locker, "k")
                .async_lead(
                    [&]() -> asio::awaitable<void> {
                        try {
                            co_await sleep_for(1h);
                        } catch (const boost::system::system_error&) {
                            if (how == reaction::rethrow)
                                throw;
                            if (how == reaction::throw_another)
                                throw std::runtime_error("half done");
                        }
                        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
                        co_await sleep_for(5s);
                    },
                    end.handler());
            env.ready();
            end.cancel.emit(type);
            env.ready();
            if (how == reaction::return_late) {
                BOOST_TEST(end.completions == 0);
                BOOST_TEST(env.stored().size() == 1U);
                env.advance(5100ms);
            }
            BOOST_TEST(end.completions == 1);
            BOOST_TEST((end.result == asio::error::operation_aborted));
            env.wind_down();
            BOOST_TEST(log->warnings.empty());
            env.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_shutdown_ends_a_campaign_a_body_and_a_delay_normally)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        const auto held = env.acquire("busy");
        worker waiting;
        auto campaigning = env.start(election(*env.locker, "busy").lead(waiting.body()));
        worker mine;
        auto leading = env.start(election(*env.locker, "k").lead(mine.body()));
        auto pausing = env.start(election(*env.locker, "failing").lead([]() -> asio::awaitable<void> {
            throw std::runtime_error("not today");
            co_return;
        }));
        // A body may use a locker that has been shut down. That does not end its own election.
        colock::locker closed(env.memory);
        env.run(closed.shutdown());
        int attempts = 0;
        auto repeating = env.start(election(*env.locker, "again").lead([&]() -> asio::awaitable<void> {
            ++attempts;
            static_cast<void>(co_await closed.acquire("k2"));
        }));
        env.ready();
        env.advance(1100ms);
        BOOST_TEST(attempts == 2);
        BOOST_TEST(mine.running == 1);
        BOOST_TEST(!repeating.done());
        BOOST_TEST(env.run(env.locker->shutdown()).clean());
        env.ready();
        BOOST_TEST_REQUIRE((campaigning.done() && leading.done() && pausing.done() && repeating.done()));
        BOOST_CHECK_NO_THROW(campaigning.get(env.io()));
        BOOST_CHECK_NO_THROW(leading.get(env.io()));
        BOOST_CHECK_NO_THROW(pausing.get(env.io()));
        BOOST_CHECK_NO_THROW(repeating.get(env.io()));
        BOOST_TEST(waiting.begun == 0);
        BOOST_TEST(mine.running == 0);
        // A later call returns at once.
        BOOST_CHECK_NO_THROW(env.run(election(*env.locker, "k").lead(mine.body())));
        COLOCK_THROWS(create_error, errc::shutting_down, env.run(election(*env.locker, "k").campaign()));
        BOOST_TEST(mine.begun == 1);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(the_end_of_the_last_locker_ends_a_campaign_and_keeps_a_body)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        const colock::locker other(env.memory);
        auto held = env.run(other.acquire("busy"));
        worker waiting;
        auto campaigning = env.start(election(*env.locker, "busy").lead(waiting.body()));
        auto pausing = env.start(election(*env.locker, "failing").lead([]() -> asio::awaitable<void> {
            throw std::runtime_error("not today");
            co_return;
        }));
        bool ended = false;
        auto leading = env.start(election(*env.locker, "k").lead([&](leadership& mine) -> asio::awaitable<void> {
            co_await sleep_for(1min);
            BOOST_TEST(mine.held());
            ended = true;
        }));
        std::optional<election> kept(std::in_place, *env.locker, "k");
        env.ready();
        env.locker.reset();
        env.ready();
        BOOST_TEST(!campaigning.done(), "the election keeps the locker");
        kept.reset();
        env.ready();
        BOOST_TEST_REQUIRE((campaigning.done() && pausing.done()));
        BOOST_CHECK_NO_THROW(campaigning.get(env.io()));
        BOOST_CHECK_NO_THROW(pausing.get(env.io()));
        BOOST_TEST(!leading.done());
        env.advance_by_steps(61s, 500ms);
        BOOST_TEST(ended);
        BOOST_TEST_REQUIRE(leading.done());
        BOOST_CHECK_NO_THROW(leading.get(env.io()));
        BOOST_TEST(waiting.begun == 0);
        held = {};
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(a_destroyed_coroutine_resigns)
{
    virtual_fixture env(backend_kind::scripted);
    std::optional<asio::io_context> own(std::in_place);
    worker mine;
    auto leading = start(*own, election(*env.locker, "k").lead(mine.body()));
    for (int n = 0; n < 20; ++n) {
        run_ready(*own);
        env.ready();
    }
    BOOST_TEST(mine.running == 1);
    BOOST_TEST(env.stored().size() == 1U);
    own.reset();
    BOOST_TEST(mine.running == 0);
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(a_campaign_that_fails_for_good_ends_the_call)
{
    virtual_fixture env(backend_kind::scripted);
    worker mine;
    env.script->next(operation::create, step::fail(errc::access_denied));
    COLOCK_THROWS(create_error, errc::access_denied, env.run(election(*env.locker, "k").lead(mine.body())));
    COLOCK_THROWS(validation_error, errc::invalid_key, env.run(election(*env.locker, "").lead(mine.body())));
    COLOCK_THROWS(validation_error, errc::invalid_key, env.run(election(*env.locker, "").leader()));
    COLOCK_THROWS(
        validation_error, errc::invalid_ttl, env.run(election(*env.locker, "k", {.ttl = -1s}).lead(mine.body())));
    const election shared(*env.locker, "k", {.mode = lock_mode::shared});
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(shared.lead(mine.body())));
    COLOCK_THROWS(validation_error, errc::invalid_options, env.run(shared.campaign()));
    auto held = env.acquire("k");
    const election once(*env.locker, "k", {.retry = retry_policy::never()});
    COLOCK_THROWS(retry_error, errc::retry_exhausted, env.run(once.lead(mine.body())));
    BOOST_TEST(mine.begun == 0);
    held = {};
    env.ready();
    // An unavailable backend is no such failure.
    env.script->next(operation::create, step::fail(errc::unavailable));
    auto leading = env.start(election(*env.locker, "k").lead(mine.body()));
    env.advance_by_steps(3s, 100ms);
    BOOST_TEST(mine.running == 1);
    env.run(env.locker->shutdown());
    env.ready();
    BOOST_CHECK_NO_THROW(leading.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(changed_returns_the_next_leader_and_may_miss_a_term)
{
    virtual_fixture env(backend_kind::scripted);
    const colock::locker other(env.memory, {.owner = "other"});
    const election mine(*env.locker, "k");
    const election theirs(other, "k");
    auto first = env.start(mine.next_leader(0));
    env.advance_by_steps(3s, 100ms);
    BOOST_TEST(!first.done());
    BOOST_TEST(env.script->count(operation::inspect) <= 4U);
    auto held = env.run(theirs.campaign());
    env.advance(1100ms);
    BOOST_TEST_REQUIRE(first.done());
    const auto seen = first.get(env.io());
    BOOST_TEST(seen.owner == "other");
    BOOST_TEST(seen.term == held.term());

    auto second = env.start(mine.next_leader(seen.term));
    env.advance(2100ms);
    BOOST_TEST(!second.done(), "the same leader is no change");
    env.run(held.resign());
    held = env.run(theirs.campaign());
    const auto missed = held.term();
    env.run(held.resign());
    held = env.run(theirs.campaign());
    env.advance(1100ms);
    BOOST_TEST_REQUIRE(second.done());
    const auto next = second.get(env.io());
    BOOST_TEST(next.term == held.term());
    BOOST_TEST(next.term > missed);
    held = {};
    env.ready();

    env.script->next(operation::inspect, step::fail(errc::unavailable));
    COLOCK_THROWS(error, errc::unavailable, env.run(mine.next_leader(0)));
    auto third = env.start(mine.next_leader(next.term));
    env.ready();
    env.run(env.locker->shutdown());
    env.ready();
    COLOCK_THROWS(create_error, errc::shutting_down, third.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
