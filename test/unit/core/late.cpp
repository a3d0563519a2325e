// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/spi/awaitable_adapter.hpp>

#include <cstddef>
#include <set>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// How long the lock is valid according to its handle.
lease_clock::duration left(const lock& held)
{
    return held.expires_at() - lease_clock::now();
}

std::set<token::bytes_type> tokens_of(const instrumented_adapter& script, operation what)
{
    std::set<token::bytes_type> seen;
    for (const auto& each : script.calls()) {
        if (each.what == what)
            seen.insert(each.token.bytes());
    }
    return seen;
}

} // namespace

BOOST_AUTO_TEST_SUITE(late_requests)

BOOST_AUTO_TEST_CASE(smallest_ttl_that_may_still_arrive_counts)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 30s});
    for (const auto ttl : {20s, 5s, 10s}) {
        env.script->next(operation::extend, step::hold_unknown());
        COLOCK_THROWS(extend_error, errc::outcome_unknown, (env.run(held.extend(ttl)), 0));
    }
    env.run(held.extend(60s));
    BOOST_TEST((left(held) <= 5s));
    BOOST_TEST((left(held) > 4s));
}

BOOST_AUTO_TEST_CASE(refused_or_unsent_request_cannot_arrive)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 30s});
    for (const auto code : {errc::unavailable, errc::access_denied}) {
        env.script->next(operation::extend, step::fail(code));
        COLOCK_THROWS(extend_error, code, (env.run(held.extend(1500ms)), 0));
    }
    env.run(held.extend(60s));
    BOOST_TEST((left(held) > 50s));
}

BOOST_AUTO_TEST_CASE(a_renewed_lock_outlives_a_shorter_extension_that_arrives_late)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.script->next(operation::extend, step::hold_unknown());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, (env.run(held.extend(1500ms)), 0));
    env.run(held.extend(30s));
    env.script->forget_calls();
    env.advance_by_steps(10s, 100ms);
    // The lock is renewed every half second, with a TTL of 30 s each time.
    BOOST_TEST(env.script->count(operation::extend) >= 16U);
    BOOST_TEST((env.script->calls().back().ttl == 30s));
    env.script->deliver();
    env.advance_by_steps(10s, 100ms);
    BOOST_TEST(held.held());
    BOOST_TEST(env.stored().size() == 1U);
    env.run(held.release(on_failure::raise));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(a_create_that_may_still_arrive_bounds_an_extension_too)
{
    virtual_fixture env(backend_kind::other_context, {.retry = retry_policy::fixed(100ms)});
    env.script->next(operation::create, step::hold_unknown());
    auto acquiring = env.start(env.locker->acquire("k", {.ttl = 10s}));
    env.advance_by_steps(1s, 50ms);
    auto held = acquiring.get(env.io());
    env.run(held.extend(60s));
    BOOST_TEST((left(held) <= 10s));
    env.script->deliver();
    BOOST_TEST((held.expires_at() <= lease_clock::now() + *env.stored().at(0).remaining));
}

BOOST_AUTO_TEST_CASE(unanswered_longer_extension_is_settled_until_its_possible_expiry)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 10s});
    env.script->next(operation::extend, step::lose_reply());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, (env.run(held.extend(60s)), 0));
    // The server does not answer any more.
    env.script->always(operation::release, step::lose_request());
    env.script->always(operation::abandon, step::lose_request());
    held = {};
    env.advance_by_steps(50s, 500ms);
    BOOST_TEST(env.stored().size() == 1U);
    BOOST_TEST(env.locker->stats().settling == 1U);
    BOOST_TEST(env.locker->stats().unproven == 0U);
    env.wind_down();
    BOOST_TEST(env.locker->stats().settling == 0U);
    BOOST_TEST(env.locker->stats().unproven == 1U);
}

BOOST_AUTO_TEST_CASE(release_that_can_never_be_proven_is_settled_unproven_and_not_tried_again)
{
    virtual_fixture env(backend_kind::other_context);
    auto held = env.acquire("k", {.ttl = 1h});
    env.script->next(operation::release, step::fail(errc::outcome_unknown, {}, errc::lost));
    held = {};
    env.advance_by_steps(10s, 500ms);
    BOOST_TEST(env.script->count(operation::release) == 1U);
    BOOST_TEST(env.script->count(operation::abandon) == 0U);
    BOOST_TEST(env.locker->stats().settling == 0U);
    BOOST_TEST(env.locker->stats().settled == 1U);
    BOOST_TEST(env.locker->stats().unproven == 1U);
    env.wind_down();
}

BOOST_AUTO_TEST_CASE(release_without_answer_does_not_wake_waiters_that_a_fair_backend_wakes)
{
    constexpr std::size_t waiters = 5;
    virtual_fixture env(backend_kind::other_context);
    BOOST_TEST_REQUIRE(env.script->traits().capabilities.fifo);
    auto held = env.acquire("k", {.ttl = 1h});
    std::vector<running<lock>> waiting;
    for (std::size_t i = 0; i < waiters; ++i)
        waiting.push_back(env.start(
            env.locker->acquire("k", {.ttl = 1h, .mode = lock_mode::shared, .retry = retry_policy::fixed(30min)})));
    env.ready();
    const auto creates = env.script->count(operation::create);
    BOOST_TEST(creates == waiters + 1);
    env.script->next(operation::release, step::lose_request());
    held = {};
    env.ready();
    BOOST_TEST(env.script->count(operation::release) == 1U);
    BOOST_TEST(env.script->count(operation::create) == creates);
    // The next attempt to release the lock is answered, and the backend wakes the waiters.
    env.advance_by_steps(5s, 100ms);
    for (auto& each : waiting)
        BOOST_TEST(each.get(env.io()).held());
    BOOST_TEST(env.script->count(operation::create) == creates + waiters);
}

BOOST_AUTO_TEST_CASE(a_claim_whose_release_may_still_arrive_is_not_granted_again)
{
    virtual_fixture env(backend_kind::other_context, {.retry = retry_policy::fixed(100ms)});
    env.script->next(operation::create, step::pass().after([&] { virtual_clock::skip(9500ms); }));
    env.script->next(operation::release, step::hold_unknown());
    auto acquiring = env.start(env.locker->acquire("k", {.ttl = 10s}));
    env.ready();
    BOOST_TEST(env.script->count(operation::release) == 1U);
    env.advance_by_steps(2s, 50ms);
    auto held = acquiring.get(env.io());
    const auto given_back = tokens_of(*env.script, operation::release);
    BOOST_TEST(!given_back.contains(held.token().bytes()));
    env.script->deliver();
    BOOST_TEST(env.run(held.is_locked()));
    env.run(held.release(on_failure::raise));
    env.wind_down();
    BOOST_TEST(env.locker->stats().settled == 1U);
    BOOST_TEST(env.locker->stats().unproven == 0U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(unreleased_late_grant_does_not_block_for_the_delay_of_its_policy)
{
    for (const auto& failing : {step::fail(errc::unavailable), step::fail(errc::access_denied), step::lose_request()}) {
        virtual_fixture env(backend_kind::scripted);
        const locker other(env.memory);
        env.script->next(operation::create, step::pass().before([&] { env.clock.skip(58min); }));
        env.script->next(operation::release, failing);
        auto late = env.start(env.locker->acquire("k", {.ttl = 1h, .retry = retry_policy::fixed(30min).times(1)}));
        env.ready();
        auto next = env.start(other.acquire("k", {.retry = retry_policy::fixed(1s)}));
        env.advance_by_steps(3s, 100ms);
        BOOST_TEST(next.done());
        BOOST_TEST(!late.done());
        env.wind_down();
    }
}

BOOST_AUTO_TEST_CASE(adapter_may_mark_a_released_claim_as_spent)
{
    struct releasing_adapter final : awaitable_adapter
    {
        using awaitable_adapter::awaitable_adapter;
        adapter_traits traits() const noexcept override { return {.name = "gives back"}; }
        asio::awaitable<create_outcome> do_create(claim_ptr claim) override
        {
            tokens.push_back(claim->token());
            if (tokens.size() == 1) {
                claim->mark_release_in_doubt();
                throw boost::system::system_error(make_error_code(errc::outcome_unknown));
            }
            co_return create_outcome::granted(1);
        }
        asio::awaitable<release_outcome> do_release(claim_ptr claim, release_guarantee) override
        {
            released.push_back(claim->token());
            co_return release_outcome{};
        }
        asio::awaitable<extend_outcome> do_extend(claim_ptr, std::chrono::milliseconds) override
        {
            co_return extend_outcome{};
        }
        asio::awaitable<valid_outcome> do_is_valid(claim_ptr) override { co_return valid_outcome{true}; }

        std::vector<token> tokens;
        std::vector<token> released;
    };
    virtual_clock clock;
    asio::io_context io;
    const auto backend = std::make_shared<releasing_adapter>(io.get_executor());
    locker env(backend, {.retry = retry_policy::fixed(100ms)});
    auto acquiring = start(io, env.acquire("k"));
    clock.advance(io, 1s, 50ms);
    auto held = acquiring.get(io);
    BOOST_TEST_REQUIRE(backend->tokens.size() == 2U);
    BOOST_TEST((backend->tokens[1] == held.token()));
    BOOST_TEST((backend->tokens[0] != held.token()));
    BOOST_TEST_REQUIRE(backend->released.size() == 1U);
    BOOST_TEST((backend->released[0] == backend->tokens[0]));
    BOOST_TEST(env.stats().attempts == 2U);
    run_coro(io, held.release(on_failure::raise));
}

BOOST_AUTO_TEST_SUITE_END()
