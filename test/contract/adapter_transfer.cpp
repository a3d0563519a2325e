// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

#include <memory>
#include <string>

namespace colock::contract {

// Locks that another claim adopts.

namespace {

void check_refused(const driver& by, const std::string& ticket, const plain_claim_ptr& claim,
    driver::where at = driver::where::current())
{
    BOOST_TEST_CONTEXT("called from " << at.file_name() << ":" << at.line())
    {
        BOOST_TEST(by.adopt(ticket, claim).status == create_status::busy);
        by.check_not_held(claim);
        BOOST_TEST(by.abandon(claim).status == release_status::not_held);
    }
}

} // namespace

COLOCK_CONTRACT_CASE(adapter, adopted_lock_has_another_holder, &capabilities::tickets)
{
    const auto other = env.another();
    const auto old = env.exclusive("k"), next = env.one_attempt("k");
    const auto fence = env.grant(old);
    const auto ticket = env.export_ticket(old);
    env.check_held(old);
    BOOST_TEST((other.take_over(ticket, next) > fence || !env.capabilities().fence));
    other.check_held(next);
    // A late request of the previous holder changes nothing.
    env.check_not_held(old);
    BOOST_TEST(env.extend(old, env.long_ttl).status == extend_status::not_held);
    BOOST_TEST(env.release(old).status == release_status::not_held);
    BOOST_TEST(env.abandon(old).status == release_status::not_held);
    other.check_held(next);
    env.check_refused(env.one_attempt("k"));
    other.release_held(next);
    const auto last = env.exclusive("k");
    env.grant(last);
    env.release_held(last);
}

COLOCK_CONTRACT_CASE(adapter, fences_increase_with_each_adoption, &capabilities::tickets, &capabilities::fence)
{
    auto held = env.exclusive("k");
    auto last = env.grant(held);
    for (int i = 0; i < 3; ++i) {
        const auto next = env.exclusive("k");
        const auto fence = env.take_over(env.export_ticket(held), next);
        BOOST_TEST(fence > last);
        last = fence;
        held = next;
    }
    env.release_held(held);
    const auto after = env.exclusive("k");
    BOOST_TEST(env.grant(after) > last);
    env.release_held(after);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_works_once, &capabilities::tickets)
{
    const auto old = env.exclusive("k"), next = env.exclusive("k");
    env.grant(old);
    const auto ticket = env.export_ticket(old);
    env.take_over(ticket, next);
    check_refused(env, ticket, env.one_attempt("k"));
    check_refused(env.another(), ticket, env.one_attempt("k"));
    env.check_held(next);
    env.release_held(next);
    check_refused(env, ticket, env.one_attempt("k"));
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_adoption_finds_its_own_grant, &capabilities::tickets)
{
    const auto old = env.exclusive("k"), next = env.one_attempt("k");
    env.grant(old);
    const auto ticket = env.export_ticket(old);
    const auto fence = env.take_over(ticket, next);
    BOOST_TEST(env.extend(next, env.short_ttl()).status == extend_status::extended);
    BOOST_TEST(env.take_over(ticket, next) >= fence);
    // The lock has a new TTL.
    env.pass_time(env.short_ttl() * 11 / 10);
    env.check_held(next);
    env.release_held(next);
    env.check_not_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_ends_with_the_ttl, &capabilities::tickets, &capabilities::expires)
{
    const auto old = env.exclusive("k", env.short_ttl());
    env.grant(old);
    const auto ticket = env.export_ticket(old);
    env.pass_time(env.short_ttl());
    check_refused(env, ticket, env.one_attempt("k"));
    const auto other = env.exclusive("k");
    env.grant(other);
    check_refused(env, ticket, env.one_attempt("k"));
    env.check_held(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_ends_with_a_release, &capabilities::tickets)
{
    const auto old = env.exclusive("k"), other = env.exclusive("k");
    env.grant(old);
    const auto ticket = env.export_ticket(old);
    env.release_held(old);
    check_refused(env, ticket, env.one_attempt("k"));
    env.grant(other);
    check_refused(env, ticket, env.one_attempt("k"));
    env.check_held(other);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_ends_with_a_break, &capabilities::tickets, &capabilities::list)
{
    const auto old = env.exclusive("k");
    env.grant(old);
    const auto ticket = env.export_ticket(old);
    BOOST_TEST(env.break_key("k").size() == 1U);
    check_refused(env, ticket, env.one_attempt("k"));
}

COLOCK_CONTRACT_CASE(adapter, invalid_ticket_adopts_nothing, &capabilities::tickets)
{
    const auto held = env.exclusive("k");
    env.grant(held);
    const auto ticket = env.export_ticket(held);
    const std::string broken[]{"", "x", std::string(1000, '\0'), ticket + 'x', ticket.substr(1),
        ticket.substr(0, ticket.size() - 1), std::string(ticket.size(), '0'), std::string(ticket.size(), '\xff')};
    for (const auto& each : broken) {
        const auto claim = env.one_attempt("k");
        BOOST_TEST((env.adopt(each, claim).status != create_status::granted));
        env.check_not_held(claim);
        env.abandon(claim);
    }
    // The ticket of another key is refused, too.
    check_refused(env, ticket, env.one_attempt("l"));
    env.check_held(held);
    env.release_held(held);
}

COLOCK_CONTRACT_CASE(adapter, adopted_lock_has_the_ttl_of_its_claim, &capabilities::tickets, &capabilities::expires)
{
    const auto old = env.exclusive("k"), brief = env.exclusive("k", env.short_ttl());
    env.grant(old);
    env.take_over(env.export_ticket(old), brief);
    BOOST_TEST((env.check_refused(env.one_attempt("k")).retry_after <= env.short_ttl()));
    env.pass_time(env.short_ttl());
    env.check_not_held(brief);
    const auto again = env.exclusive("k", env.short_ttl()), lasting = env.exclusive("k");
    env.grant(again);
    env.take_over(env.export_ticket(again), lasting);
    env.pass_time(env.short_ttl() * 11 / 10);
    env.check_held(lasting);
    env.release_held(lasting);
}

COLOCK_CONTRACT_CASE(
    adapter, lock_without_ttl_is_adopted, &capabilities::tickets, &capabilities::no_ttl, &capabilities::expires)
{
    const auto old = env.exclusive("k", 0ms), eternal = env.exclusive("k", 0ms),
               brief = env.exclusive("k", env.short_ttl());
    env.grant(old);
    env.take_over(env.export_ticket(old), eternal);
    env.check_not_held(old);
    env.pass_time(env.short_ttl());
    env.check_held(eternal);
    env.take_over(env.export_ticket(eternal), brief);
    env.pass_time(env.short_ttl());
    env.check_not_held(brief);
    env.grant(brief);
    env.take_over(env.export_ticket(brief), old);
    env.pass_time(env.short_ttl());
    env.check_held(old);
    env.release_held(old);
}

COLOCK_CONTRACT_CASE(adapter, shared_lock_is_adopted, &capabilities::tickets, &capabilities::shared)
{
    const auto other = env.another();
    for (const bool is_alone : {true, false}) {
        const auto old = env.shared("k"), other_reader = env.shared("k"), next = env.shared("k"),
                   writer = env.one_attempt("k");
        const auto fence = env.grant(old);
        if (!is_alone)
            env.grant(other_reader);
        const auto ticket = env.export_ticket(old);
        BOOST_TEST((other.take_over(ticket, next) > fence || !env.capabilities().fence));
        env.check_not_held(old);
        other.check_held(next);
        BOOST_TEST(env.release(old).status == release_status::not_held);
        check_refused(env, ticket, env.one_attempt("k", lock_mode::shared));
        if (env.capabilities().list) {
            BOOST_TEST(env.inspect("k").size() == (is_alone ? 1U : 2U));
        }
        env.check_refused(writer);
        if (!is_alone) {
            env.check_held(other_reader);
            env.release_held(other_reader);
        }
        env.check_refused(writer);
        BOOST_TEST(other.extend(next, env.long_ttl).status == extend_status::extended);
        other.release_held(next);
        env.grant(writer);
        env.release_held(writer);
    }
}

COLOCK_CONTRACT_CASE(adapter, adopted_shared_lock_has_the_ttl_of_its_claim, &capabilities::tickets,
    &capabilities::shared, &capabilities::expires)
{
    const auto old = env.shared("k", 0, env.short_ttl()), other_reader = env.shared("k"), next = env.shared("k");
    env.grant(old);
    env.grant(other_reader);
    env.take_over(env.export_ticket(old), next);
    env.release_held(other_reader);
    env.pass_time(env.short_ttl() * 11 / 10);
    env.check_held(next);
    const auto brief = env.shared("k", 0, env.short_ttl());
    env.take_over(env.export_ticket(next), brief);
    env.pass_time(env.short_ttl());
    env.check_not_held(brief);
    const auto writer = env.exclusive("k");
    env.grant(writer);
    env.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, lock_of_a_semaphore_holder_is_adopted, &capabilities::tickets, &capabilities::semaphore)
{
    const auto first = env.shared("k", 2), second = env.shared("k", 2), next = env.shared("k", 2);
    env.grant(first);
    env.grant(second);
    const plain_claim_ptr third(new plain_claim(
        {.key = "k", .mode = lock_mode::shared, .max_holders = 2, .ttl = driver::long_ttl, .keeps_place = false}));
    env.check_refused(third);
    // The semaphore is full, and stays full.
    env.take_over(env.export_ticket(first), next);
    env.check_refused(third);
    env.check_held(second);
    env.release_held(next);
    env.grant(third);
    env.release_held(third);
    env.release_held(second);
}

COLOCK_CONTRACT_CASE(adapter, waiters_continue_to_wait_for_an_adopted_lock, &capabilities::tickets)
{
    const auto old = env.exclusive("k"), queued = env.exclusive("k"), next = env.exclusive("k");
    env.grant(old);
    env.check_refused(queued);
    env.take_over(env.export_ticket(old), next);
    env.check_refused(queued);
    env.check_held(next);
    env.release_held(next);
    env.grant(queued);
    env.release_held(queued);
}

COLOCK_CONTRACT_CASE(adapter, release_of_an_adopted_lock_wakes_listeners, &capabilities::tickets, &capabilities::events)
{
    const auto old = env.exclusive("k"), queued = env.exclusive("k"), next = env.exclusive("k");
    env.grant(old);
    auto waiting = env.start_acquire(queued);
    env.pass_time(1ms);
    const auto ticket = env.export_ticket(old);
    env.take_over(ticket, next);
    env.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    env.release_held(next);
    waiting.get(env.io());
    env.release_held(queued);
}

COLOCK_CONTRACT_CASE(adapter, an_adopted_lock_is_handed_over, &capabilities::tickets)
{
    const auto old = env.exclusive("k"), held = env.exclusive("k"), next = env.exclusive("k");
    env.grant(old);
    const auto fence = env.take_over(env.export_ticket(old), held);
    const auto outcome = env.hand_over(held, next);
    BOOST_TEST(outcome.released.status == release_status::released);
    BOOST_TEST(outcome.created.status == create_status::granted);
    BOOST_TEST((outcome.created.fence > fence || !env.capabilities().fence));
    env.check_not_held(held);
    env.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, adopted_lock_is_listed_with_its_new_owner, &capabilities::tickets, &capabilities::list)
{
    const auto old = env.exclusive("k");
    env.grant(old);
    const plain_claim_ptr next(new plain_claim({.key = "k",
        .ttl = driver::long_ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = "heir", .group = "g"})}));
    env.take_over(env.export_ticket(old), next);
    const auto listed = env.inspect("k");
    BOOST_TEST_REQUIRE(listed.size() == 1U);
    BOOST_TEST(listed.front().owner == "heir");
    BOOST_TEST(listed.front().group == "g");
    env.release_held(next);
}

} // namespace colock::contract
