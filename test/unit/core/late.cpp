// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

#include <colock/spi/awaitable_adapter.hpp>

#include <algorithm>
#include <set>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// How long the lock is valid according to its handle.
lease_clock::duration left(const lock& held)
{
    return held.expires_at() - lease_clock::now();
}

std::set<token::bytes_type> tokens_of(const scripted_adapter& script, operation what)
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

BOOST_AUTO_TEST_CASE(no_extension_outlasts_a_shorter_one_that_may_still_arrive)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("k", {.ttl = 30s});
    on.script->next(operation::extend, step::hold_unknown());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, (on.run(held.extend(1500ms)), 0));
    on.run(held.extend(60s));
    BOOST_TEST(held.held());
    BOOST_TEST((left(held) <= 1500ms));
    BOOST_TEST((held.ttl() == 60s));
    on.script->deliver();
    on.advance(1500ms);
    BOOST_TEST(on.stored().empty());
    BOOST_TEST(!held.held());
}

BOOST_AUTO_TEST_CASE(smallest_ttl_that_may_still_arrive_counts)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("k", {.ttl = 30s});
    for (const auto ttl : {20s, 5s, 10s}) {
        on.script->next(operation::extend, step::hold_unknown());
        COLOCK_THROWS(extend_error, errc::outcome_unknown, (on.run(held.extend(ttl)), 0));
    }
    on.run(held.extend(60s));
    BOOST_TEST((left(held) <= 5s));
    BOOST_TEST((left(held) > 4s));
}

BOOST_AUTO_TEST_CASE(refused_or_unsent_request_cannot_arrive)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("k", {.ttl = 30s});
    for (const auto code : {errc::unavailable, errc::access_denied}) {
        on.script->next(operation::extend, step::fail(code));
        COLOCK_THROWS(extend_error, code, (on.run(held.extend(1500ms)), 0));
    }
    on.run(held.extend(60s));
    BOOST_TEST((left(held) > 50s));
}

BOOST_AUTO_TEST_CASE(a_renewed_lock_outlives_a_shorter_extension_that_arrives_late)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    on.script->next(operation::extend, step::hold_unknown());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, (on.run(held.extend(1500ms)), 0));
    on.run(held.extend(30s));
    on.script->forget_calls();
    on.advance_by_steps(10s, 100ms);
    // The lock is renewed every half second, with a TTL of 30 s each time.
    BOOST_TEST(on.script->count(operation::extend) >= 16U);
    BOOST_TEST((on.script->calls().back().ttl == 30s));
    on.script->deliver();
    on.advance_by_steps(10s, 100ms);
    BOOST_TEST(held.held());
    BOOST_TEST(on.stored().size() == 1U);
    on.run(held.release(on_failure::raise));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_create_that_may_still_arrive_bounds_an_extension_too)
{
    virtual_fixture on(backend_kind::other_context, {.retry = retry_policy::fixed(100ms)});
    on.script->next(operation::create, step::hold_unknown());
    auto acquiring = on.start(on.locker->acquire("k", {.ttl = 10s}));
    on.advance_by_steps(1s, 50ms);
    auto held = acquiring.get(on.io());
    on.run(held.extend(60s));
    BOOST_TEST((left(held) <= 10s));
    on.script->deliver();
    BOOST_TEST((held.expires_at() <= lease_clock::now() + *on.stored().at(0).remaining));
}

BOOST_AUTO_TEST_CASE(unanswered_longer_extension_is_settled_until_its_possible_expiry)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("k", {.ttl = 10s});
    on.script->next(operation::extend, step::lose_reply());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, (on.run(held.extend(60s)), 0));
    // The server does not answer any more.
    on.script->always(operation::release, step::lose_request());
    on.script->always(operation::abandon, step::lose_request());
    held = {};
    on.advance_by_steps(50s, 500ms);
    BOOST_TEST(on.stored().size() == 1U);
    BOOST_TEST(on.locker->stats().settling == 1U);
    BOOST_TEST(on.locker->stats().unproven == 0U);
    on.wind_down();
    BOOST_TEST(on.locker->stats().settling == 0U);
    BOOST_TEST(on.locker->stats().unproven == 1U);
}

BOOST_AUTO_TEST_CASE(release_that_can_never_be_proven_is_settled_unproven_and_not_tried_again)
{
    virtual_fixture on(backend_kind::other_context);
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::fail(errc::outcome_unknown, {}, errc::lost));
    held = {};
    on.advance_by_steps(10s, 500ms);
    BOOST_TEST(on.script->count(operation::release) == 1U);
    BOOST_TEST(on.script->count(operation::abandon) == 0U);
    BOOST_TEST(on.locker->stats().settling == 0U);
    BOOST_TEST(on.locker->stats().settled == 1U);
    BOOST_TEST(on.locker->stats().unproven == 1U);
    on.wind_down();
}

BOOST_AUTO_TEST_CASE(a_claim_whose_release_may_still_arrive_is_not_granted_again)
{
    virtual_fixture on(backend_kind::other_context, {.retry = retry_policy::fixed(100ms)});
    on.script->next(operation::create, step::pass().after([&] { virtual_clock::skip(9500ms); }));
    on.script->next(operation::release, step::hold_unknown());
    auto acquiring = on.start(on.locker->acquire("k", {.ttl = 10s}));
    on.ready();
    BOOST_TEST(on.script->count(operation::release) == 1U);
    on.advance_by_steps(2s, 50ms);
    auto held = acquiring.get(on.io());
    const auto given_back = tokens_of(*on.script, operation::release);
    BOOST_TEST(!given_back.contains(held.token().bytes()));
    on.script->deliver();
    BOOST_TEST(on.run(held.is_locked()));
    on.run(held.release(on_failure::raise));
    on.wind_down();
    BOOST_TEST(on.locker->stats().settled == 1U);
    BOOST_TEST(on.locker->stats().unproven == 0U);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(unreleased_late_grant_does_not_block_for_the_delay_of_its_policy)
{
    for (const auto& failing : {step::fail(errc::unavailable), step::fail(errc::access_denied), step::lose_request()}) {
        virtual_fixture on(backend_kind::scripted);
        const locker other(on.memory);
        on.script->next(operation::create, step::pass().before([&] { on.clock.skip(58min); }));
        on.script->next(operation::release, failing);
        auto late = on.start(on.locker->acquire("k", {.ttl = 1h, .retry = retry_policy::fixed(30min).times(1)}));
        on.ready();
        auto next = on.start(other.acquire("k", {.retry = retry_policy::fixed(1s)}));
        on.advance_by_steps(3s, 100ms);
        BOOST_TEST(next.done());
        BOOST_TEST(!late.done());
        on.wind_down();
    }
}

BOOST_AUTO_TEST_CASE(replacing_claim_keeps_the_place_in_the_queue)
{
    virtual_fixture on(backend_kind::other_context, {.retry = retry_policy::fixed(100ms)});
    on.script->next(operation::create, step::pass().after([&] { virtual_clock::skip(9500ms); }));
    on.script->next(operation::release, step::hold_unknown());
    auto first = on.start(on.locker->acquire("k", {.ttl = 10s}));
    auto second = on.start(on.locker->acquire("k", {.ttl = 10s}));
    on.advance_by_steps(2s, 50ms);
    BOOST_TEST(first.done());
    BOOST_TEST(!second.done());
    on.script->deliver();
    on.run(first.get(on.io()).release(on_failure::raise));
    on.advance_by_steps(2s, 50ms);
    on.run(second.get(on.io()).release(on_failure::raise));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(adapter_may_mark_a_released_claim_as_spent)
{
    struct releasing_adapter final : awaitable_adapter
    {
        using awaitable_adapter::awaitable_adapter;
        std::string_view name() const noexcept override { return "gives back"; }
        colock::capabilities capabilities() const noexcept override { return {}; }
        asio::awaitable<create_outcome> do_create(claim_ptr claim) override
        {
            tokens.push_back(claim->token());
            if (tokens.size() == 1) {
                claim->spend();
                throw boost::system::system_error(make_error_code(errc::outcome_unknown));
            }
            co_return create_outcome::granted(1);
        }
        asio::awaitable<release_outcome> do_release(claim_ptr claim) override
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
    locker on(backend, {.retry = retry_policy::fixed(100ms)});
    auto acquiring = start(io, on.acquire("k"));
    clock.advance_by_steps(io, 1s, 50ms);
    auto held = acquiring.get(io);
    BOOST_TEST_REQUIRE(backend->tokens.size() == 2U);
    BOOST_TEST((backend->tokens[1] == held.token()));
    BOOST_TEST((backend->tokens[0] != held.token()));
    BOOST_TEST_REQUIRE(backend->released.size() == 1U);
    BOOST_TEST((backend->released[0] == backend->tokens[0]));
    BOOST_TEST(on.stats().attempts == 2U);
    run_coro(io, held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(acquire_that_gives_up_after_its_claim_was_replaced_leaves_nothing)
{
    virtual_fixture on(backend_kind::other_context, {.retry = retry_policy::fixed(100ms)});
    on.script->next(operation::create, step::pass().after([&] { virtual_clock::skip(9500ms); }));
    on.script->next(operation::release, step::hold_unknown());
    on.script->always(operation::create, step::busy());
    auto acquiring = on.start(on.locker->acquire("k", {.ttl = 10s, .retry = retry_policy::fixed(100ms).times(5)}));
    on.advance_by_steps(5s, 50ms);
    COLOCK_THROWS(retry_error, errc::retry_exhausted, acquiring.get(on.io()));
    on.script->discard();
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
