// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"

#include <boost/asio/error.hpp>

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <optional>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(one_at_a_time)

BOOST_AUTO_TEST_CASE(renewal_waits_for_a_query_in_flight)
{
    rig on(behind::scripted);
    const auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    on.advance(9s);
    on.script->next(operation::is_valid, step::hold());
    auto asking = on.start(held.is_locked());
    on.advance(2s);
    BOOST_TEST(on.script->count(operation::extend) == 0U);
    on.script->deliver();
    BOOST_TEST(asking.get(on.io()));
    on.ready();
    BOOST_TEST(on.script->count(operation::extend) == 1U);
}

BOOST_AUTO_TEST_CASE(query_waits_for_a_renewal_and_for_another_query)
{
    rig on(behind::scripted);
    const auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    on.script->next(operation::extend, step::hold());
    on.advance(11s);
    on.script->next(operation::is_valid, step::hold());
    auto first = on.start(held.is_locked());
    auto second = on.start(held.is_locked());
    on.ready();
    BOOST_TEST(on.script->count(operation::is_valid) == 0U);
    on.script->deliver();
    on.ready();
    BOOST_TEST(on.script->count(operation::is_valid) == 1U);
    on.script->deliver();
    BOOST_TEST(first.get(on.io()));
    BOOST_TEST(second.get(on.io()));
}

BOOST_AUTO_TEST_CASE(release_follows_the_query_in_flight)
{
    rig on(behind::scripted);
    auto held = on.acquire("k");
    on.script->next(operation::is_valid, step::hold());
    auto asking = on.start(held.is_locked());
    on.ready();
    auto releasing = on.start(held.release());
    on.ready();
    BOOST_TEST(on.script->count(operation::release) == 0U);
    on.script->deliver();
    releasing.get(on.io());
    BOOST_TEST(on.script->count(operation::release) == 1U);
    // The answer was true when it was made, but is not true any more.
    BOOST_TEST(!asking.get(on.io()));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(extensions_follow_one_another)
{
    rig on(behind::scripted);
    auto held = on.acquire("k");
    on.script->next(operation::extend, step::hold());
    auto first = on.start(held.extend(40s));
    auto second = on.start(held.extend(50s));
    on.ready();
    BOOST_TEST(on.script->count(operation::extend) == 1U);
    on.script->deliver();
    first.get(on.io());
    second.get(on.io());
    BOOST_TEST(held.ttl() == 50s);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(unanswered)

BOOST_AUTO_TEST_CASE(query_of_a_new_lock_ends_after_the_operation_timeout)
{
    rig on(behind::scripted);
    const auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::is_valid, step::hold());
    auto asking = on.start(held.is_locked());
    on.advance(4s);
    BOOST_TEST(!asking.done());
    on.advance(2s);
    BOOST_TEST_REQUIRE(asking.done());
    BOOST_CHECK_THROW(asking.get(on.io()), error);
    on.script->deliver();
    on.ready();
}

BOOST_AUTO_TEST_CASE(extension_of_a_lock_that_was_lost_meanwhile_ends)
{
    rig on(behind::scripted);
    on.script->open_session(lease_clock::now() + 1h);
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::extend, step::hold());
    auto extending = on.start(held.extend(1h));
    on.advance(1s);
    on.script->end_session();
    on.advance_by_steps(6s, 1s);
    BOOST_TEST_REQUIRE(extending.done());
    BOOST_CHECK_THROW(extending.get(on.io()), extend_error);
    on.script->deliver();
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(shutdown_ends_operations_that_wait_for_an_answer)
{
    rig on(behind::scripted);
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::extend, step::hold());
    auto extending = on.start(held.extend(1h));
    on.ready();
    auto shutting = on.start(on.locker->shutdown(1s));
    on.advance(2s);
    BOOST_TEST(!shutting.get(on.io()).clean());
    on.ready();
    BOOST_TEST_REQUIRE(extending.done());
    BOOST_CHECK_THROW(extending.get(on.io()), extend_error);
    on.script->deliver();
    on.ready();
}

BOOST_AUTO_TEST_CASE(an_extension_that_shortens_is_noticed_without_its_answer)
{
    rig on(behind::scripted);
    auto held = on.acquire("k", {.ttl = 1h});
    auto lost = on.start(held.lost());
    on.ready();
    on.script->next(operation::extend, step::hold());
    auto extending = on.start(held.extend(1s));
    on.advance(2s);
    BOOST_TEST(lost.done());
    on.script->deliver();
    BOOST_CHECK_THROW(extending.get(on.io()), extend_error);
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_release_returns_with_its_first_answer)
{
    rig on(behind::scripted);
    auto held = on.acquire("k");
    on.script->always(operation::release, step::fail(errc::unavailable));
    auto releasing = on.start(held.release());
    on.ready();
    BOOST_TEST(releasing.done());
    on.script->reset();
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(timeout_of_the_adapter_is_used_only_if_it_is_short_enough)
{
    struct row
    {
        std::chrono::milliseconds answers_within;
        bool behind_an_extension;
        bool timed;
    };
    for (const auto& [within, behind_an_extension, timed] :
        {row{1s, false, false}, row{10s, false, true}, row{0s, false, true}, row{1s, true, true}})
    {
        rig on(behind::scripted);
        auto limits = on.script->limits();
        limits.answers_within = within;
        on.script->set_limits(limits);
        on.locker.emplace(on.backend());
        auto held = on.acquire("k", {.ttl = 1h});
        std::optional<running<void>> extending;
        if (behind_an_extension) {
            on.script->next(operation::extend, step::hold());
            extending = on.start(held.extend(1h));
            on.ready();
        } else {
            on.script->next(operation::release, step::hold());
        }
        auto releasing = on.start(held.release());
        on.ready();
        BOOST_TEST(!releasing.done());
        on.advance(6s);
        BOOST_TEST(releasing.done() == timed);
        on.script->deliver();
        on.wind_down();
        BOOST_TEST(releasing.done());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(body_that_does_not_stop_causes_no_polling)
{
    rig on;
    auto working =
        on.start(on.locker->with_lock("k", {.ttl = 30s, .renewal = renewal::manual}, []() -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            co_await sleep_for(1min);
        }));
    on.ready();
    on.clock.advance(on.io(), 29s);
    on.ready();
    on.advance_by_steps(32s, 1s);
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
}

BOOST_AUTO_TEST_CASE(clean_up_is_repeated_with_growing_delays)
{
    rig on(behind::scripted);
    auto held = on.acquire("k");
    on.script->always(operation::release, step::fail(errc::unavailable));
    held = {};
    on.ready();
    on.advance_by_steps(12s, 10ms);
    std::vector<lease_clock::time_point> tries;
    for (const auto& made : on.script->calls()) {
        if (made.what == operation::release)
            tries.push_back(made.sent);
    }
    BOOST_TEST_REQUIRE(tries.size() >= 8U);
    auto least = std::chrono::milliseconds(50);
    for (std::size_t n = 1; n < tries.size(); ++n) {
        BOOST_TEST((tries[n] - tries[n - 1] >= least));
        BOOST_TEST((tries[n] - tries[n - 1] < least + 900ms));
        least = std::min(2 * least, std::chrono::milliseconds(2s));
    }
    on.script->reset();
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(without_a_ttl_clean_up_never_gives_up)
{
    rig on(behind::scripted);
    auto held = on.acquire("k", {.ttl = 0ms});
    on.script->always(operation::release, step::fail(errc::unavailable));
    held = {};
    for (int day = 0; day < 5; ++day)
        on.advance(24h);
    BOOST_TEST(on.locker->stats().settling == 1U);
    on.script->reset();
    on.wind_down();
    BOOST_TEST(on.locker->stats().unproven == 0U);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(clean_up_continues_for_an_unanswered_longer_ttl)
{
    rig on(behind::scripted);
    auto held = on.acquire("k", {.ttl = 10s});
    on.script->next(operation::extend, step::lose_reply());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, on.run(held.extend(1h)));
    on.script->always(operation::release, step::fail(errc::unavailable));
    held = {};
    on.advance_by_steps(50min, 1min);
    BOOST_TEST(on.locker->stats().settling == 1U);
    on.advance_by_steps(15min, 1min);
    BOOST_TEST(on.locker->stats().settling == 0U);
    BOOST_TEST(on.locker->stats().unproven == 1U);
}

BOOST_AUTO_TEST_CASE(raising_release_reports_why_it_was_not_answered)
{
    const error_code refused = asio::error::connection_refused;
    for (const bool known : {false, true}) {
        rig on(behind::scripted, {.operation_timeout = 2s});
        auto held = on.acquire("k");
        on.script->next(operation::release, step::hold());
        auto releasing = on.start(held.release(on_failure::raise));
        on.ready();
        if (known)
            on.script->notify_unreachable(make_failure(errc::unavailable, "nobody listens", refused), "there:1");
        on.advance(3s);
        const auto thrown = thrown_by<release_error>([&] { releasing.get(on.io()); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST((thrown->code() == (known ? errc::unavailable : errc::outcome_unknown)));
        BOOST_TEST((thrown->cause() == (known ? refused : error_code(asio::error::timed_out))));
        BOOST_TEST(!thrown->detail().empty());
        on.script->deliver();
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
