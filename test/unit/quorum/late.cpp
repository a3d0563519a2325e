// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/locker.hpp>

using namespace colock;
using namespace colock::testing;

namespace {

constexpr auto never = std::chrono::milliseconds::max();

struct late_requests : three_nodes
{
    void extend(const claim_ptr& claim, std::chrono::milliseconds new_ttl)
    {
        BOOST_TEST(env->extend(claim, new_ttl).status == extend_status::extended);
        ready();
    }
    plain_claim_ptr grant_claim()
    {
        auto claim = driver::exclusive("k", ttl);
        env->grant(claim);
        ready();
        BOOST_TEST((claim->late_ttl() == never));
        return claim;
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(quorum_late_requests, late_requests)

BOOST_AUTO_TEST_CASE(late_shorter_extension_bounds_a_majority_with_its_node)
{
    const auto claim = grant_claim();
    nodes[c]->next(operation::extend, step::hold_unknown());
    extend(claim, 1500ms);
    BOOST_TEST((claim->late_ttl() == never));
    disconnect(a);
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == 1500ms));
    nodes[c]->deliver();
    pass_time(1500ms);
    BOOST_TEST(holder_counts() == "010");
}

BOOST_AUTO_TEST_CASE(extension_is_not_bounded_if_its_majority_has_no_late_request)
{
    const auto claim = grant_claim();
    nodes[c]->next(operation::extend, step::hold_unknown());
    extend(claim, 1500ms);
    disconnect(c);
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == never));
    reconnect(c);
    // First b and c answer, then a and b.
    nodes[a]->next(operation::extend, step::hold());
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == 1500ms));
    nodes[a]->deliver();
    ready();
    disconnect(c);
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == never));
    nodes[c]->deliver();
    pass_time(30s);
    BOOST_TEST(holder_counts() == "110");
    env->check_held(claim);
}

BOOST_AUTO_TEST_CASE(smallest_late_ttl_of_the_majority_applies)
{
    const auto claim = grant_claim();
    nodes[b]->next(operation::extend, step::hold_unknown());
    extend(claim, 2s);
    for (const auto each : {3s, 4s}) {
        nodes[c]->next(operation::extend, step::hold_unknown());
        extend(claim, each);
    }
    disconnect(b);
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == 3s));
    reconnect(b);
    disconnect(a);
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == 2s));
    // A failed extend_answer changes nothing.
    disconnect(c);
    BOOST_TEST(env->extend(claim, 60s).status == extend_status::failed);
    BOOST_TEST((claim->late_ttl() == 2s));
}

BOOST_AUTO_TEST_CASE(unanswered_create_bounds_an_extension)
{
    const auto claim = driver::exclusive("k", ttl);
    nodes[c]->next(operation::create, step::lose_reply());
    env->grant(claim);
    ready();
    disconnect(a);
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == ttl));
}

BOOST_AUTO_TEST_CASE(refused_or_unsent_extension_bounds_nothing)
{
    const auto claim = grant_claim();
    for (const auto code : {errc::unavailable, errc::access_denied}) {
        nodes[c]->next(operation::extend, step::fail(code));
        extend(claim, 1500ms);
    }
    disconnect(a);
    extend(claim, 60s);
    BOOST_TEST((claim->late_ttl() == never));
}

BOOST_AUTO_TEST_CASE(new_round_has_no_late_requests)
{
    const auto claim = driver::exclusive("k", ttl);
    claim->lower_late_ttl(1s);
    env->grant(claim);
    BOOST_TEST((claim->late_ttl() == never));
}

BOOST_AUTO_TEST_CASE(late_requests_of_a_round_do_not_bound_the_next)
{
    locker locks(env->shared_backend());
    for (const std::size_t each : {a, b})
        nodes[each]->next(operation::create, step::hold_unknown());
    auto acquiring = start(io(), locks.acquire("k", {.ttl = ttl, .retry = retry_policy::fixed(300ms).jitter(0)}));
    pass_time(1s);
    BOOST_TEST_REQUIRE(acquiring.done());
    auto held = acquiring.get(io());
    run_coro(io(), held.extend(60s));
    BOOST_TEST((held.expires_at() > lease_clock::now() + 50s));
    for (const std::size_t each : {a, b})
        nodes[each]->deliver();
    pass_time(1s);
    BOOST_TEST(held.held());
    BOOST_TEST(run_coro(io(), held.is_locked()));
}

BOOST_AUTO_TEST_SUITE_END()
