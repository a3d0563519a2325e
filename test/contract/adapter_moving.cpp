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
    const auto other = on.another();
    const auto old = on.exclusive("k"), next = on.one_attempt("k");
    const auto fence = on.grant(old);
    const auto ticket = on.backend().export_ticket(*old);
    on.check_held(old);
    BOOST_TEST((other.take_over(ticket, next) > fence || !on.able().fence));
    other.check_held(next);
    // A late request of the previous holder changes nothing.
    on.check_not_held(old);
    BOOST_TEST(on.extend(old, on.long_ttl).status == extend_status::not_held);
    BOOST_TEST(on.release(old).status == release_status::not_held);
    BOOST_TEST(on.abandon(old).status == release_status::not_held);
    other.check_held(next);
    on.refuse(on.one_attempt("k"));
    other.release_held(next);
    const auto last = on.exclusive("k");
    on.grant(last);
    on.release_held(last);
}

COLOCK_CONTRACT_CASE(adapter, fences_grow_over_an_adoption, &capabilities::tickets, &capabilities::fence)
{
    auto held = on.exclusive("k");
    auto last = on.grant(held);
    for (int i = 0; i < 3; ++i) {
        const auto next = on.exclusive("k");
        const auto fence = on.take_over(on.backend().export_ticket(*held), next);
        BOOST_TEST(fence > last);
        last = fence;
        held = next;
    }
    on.release_held(held);
    const auto after = on.exclusive("k");
    BOOST_TEST(on.grant(after) > last);
    on.release_held(after);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_works_once, &capabilities::tickets)
{
    const auto old = on.exclusive("k"), next = on.exclusive("k");
    on.grant(old);
    const auto ticket = on.backend().export_ticket(*old);
    on.take_over(ticket, next);
    check_refused(on, ticket, on.one_attempt("k"));
    check_refused(on.another(), ticket, on.one_attempt("k"));
    on.check_held(next);
    on.release_held(next);
    check_refused(on, ticket, on.one_attempt("k"));
}

COLOCK_CONTRACT_CASE(adapter, a_repeated_adoption_finds_its_own_grant, &capabilities::tickets)
{
    const auto old = on.exclusive("k"), next = on.one_attempt("k");
    on.grant(old);
    const auto ticket = on.backend().export_ticket(*old);
    const auto fence = on.take_over(ticket, next);
    BOOST_TEST(on.extend(next, on.short_ttl()).status == extend_status::extended);
    BOOST_TEST(on.take_over(ticket, next) >= fence);
    // The lock has a new TTL.
    on.pass_time(on.short_ttl() * 11 / 10);
    on.check_held(next);
    on.release_held(next);
    on.check_not_held(next);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_ends_with_the_ttl, &capabilities::tickets, &capabilities::expires)
{
    const auto old = on.exclusive("k", on.short_ttl());
    on.grant(old);
    const auto ticket = on.backend().export_ticket(*old);
    on.pass_time(on.short_ttl());
    check_refused(on, ticket, on.one_attempt("k"));
    const auto other = on.exclusive("k");
    on.grant(other);
    check_refused(on, ticket, on.one_attempt("k"));
    on.check_held(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_ends_with_a_release, &capabilities::tickets)
{
    const auto old = on.exclusive("k"), other = on.exclusive("k");
    on.grant(old);
    const auto ticket = on.backend().export_ticket(*old);
    on.release_held(old);
    check_refused(on, ticket, on.one_attempt("k"));
    on.grant(other);
    check_refused(on, ticket, on.one_attempt("k"));
    on.check_held(other);
    on.release_held(other);
}

COLOCK_CONTRACT_CASE(adapter, a_ticket_ends_with_a_break, &capabilities::tickets, &capabilities::list)
{
    const auto old = on.exclusive("k");
    on.grant(old);
    const auto ticket = on.backend().export_ticket(*old);
    BOOST_TEST(on.break_key("k").size() == 1U);
    check_refused(on, ticket, on.one_attempt("k"));
}

COLOCK_CONTRACT_CASE(adapter, invalid_ticket_adopts_nothing, &capabilities::tickets)
{
    const auto held = on.exclusive("k");
    on.grant(held);
    const auto ticket = on.backend().export_ticket(*held);
    const std::string broken[]{"", "x", std::string(1000, '\0'), ticket + 'x', ticket.substr(1),
        ticket.substr(0, ticket.size() - 1), std::string(ticket.size(), '0'), std::string(ticket.size(), '\xff')};
    for (const auto& each : broken) {
        const auto claim = on.one_attempt("k");
        BOOST_TEST((on.adopt(each, claim).status != create_status::granted));
        on.check_not_held(claim);
        on.abandon(claim);
    }
    // The ticket of another key is refused, too.
    check_refused(on, ticket, on.one_attempt("l"));
    on.check_held(held);
    on.release_held(held);
}

COLOCK_CONTRACT_CASE(adapter, adopted_lock_has_the_ttl_of_its_claim, &capabilities::tickets, &capabilities::expires)
{
    const auto old = on.exclusive("k"), brief = on.exclusive("k", on.short_ttl());
    on.grant(old);
    on.take_over(on.backend().export_ticket(*old), brief);
    BOOST_TEST((on.refuse(on.one_attempt("k")).retry_after <= on.short_ttl()));
    on.pass_time(on.short_ttl());
    on.check_not_held(brief);
    on.grant(brief);
    const auto lasting = on.exclusive("k");
    on.take_over(on.backend().export_ticket(*brief), lasting);
    on.pass_time(on.short_ttl() * 11 / 10);
    on.check_held(lasting);
    on.release_held(lasting);
}

COLOCK_CONTRACT_CASE(
    adapter, lock_without_ttl_is_adopted, &capabilities::tickets, &capabilities::no_ttl, &capabilities::expires)
{
    const auto old = on.exclusive("k", 0ms), eternal = on.exclusive("k", 0ms),
               brief = on.exclusive("k", on.short_ttl());
    on.grant(old);
    on.take_over(on.backend().export_ticket(*old), eternal);
    on.check_not_held(old);
    on.pass_time(on.short_ttl());
    on.check_held(eternal);
    on.take_over(on.backend().export_ticket(*eternal), brief);
    on.pass_time(on.short_ttl());
    on.check_not_held(brief);
    on.grant(brief);
    on.take_over(on.backend().export_ticket(*brief), old);
    on.pass_time(on.short_ttl());
    on.check_held(old);
    on.release_held(old);
}

COLOCK_CONTRACT_CASE(adapter, shared_lock_is_adopted, &capabilities::tickets, &capabilities::shared)
{
    const auto other = on.another();
    for (const bool is_alone : {true, false}) {
        const auto old = on.shared("k"), other_reader = on.shared("k"), next = on.shared("k"),
                   writer = on.one_attempt("k");
        const auto fence = on.grant(old);
        if (!is_alone)
            on.grant(other_reader);
        const auto ticket = on.backend().export_ticket(*old);
        BOOST_TEST((other.take_over(ticket, next) > fence || !on.able().fence));
        on.check_not_held(old);
        other.check_held(next);
        BOOST_TEST(on.release(old).status == release_status::not_held);
        check_refused(on, ticket, on.one_attempt("k", lock_mode::shared));
        if (on.able().list) {
            BOOST_TEST(on.inspect("k").size() == (is_alone ? 1U : 2U));
        }
        on.refuse(writer);
        if (!is_alone) {
            on.check_held(other_reader);
            on.release_held(other_reader);
        }
        on.refuse(writer);
        BOOST_TEST(other.extend(next, on.long_ttl).status == extend_status::extended);
        other.release_held(next);
        on.grant(writer);
        on.release_held(writer);
    }
}

COLOCK_CONTRACT_CASE(adapter, adopted_shared_lock_has_the_ttl_of_its_claim, &capabilities::tickets,
    &capabilities::shared, &capabilities::expires)
{
    const auto old = on.shared("k", 0, on.short_ttl()), other_reader = on.shared("k"), next = on.shared("k");
    on.grant(old);
    on.grant(other_reader);
    on.take_over(on.backend().export_ticket(*old), next);
    on.release_held(other_reader);
    on.pass_time(on.short_ttl() * 11 / 10);
    on.check_held(next);
    const auto brief = on.shared("k", 0, on.short_ttl());
    on.take_over(on.backend().export_ticket(*next), brief);
    on.pass_time(on.short_ttl());
    on.check_not_held(brief);
    const auto writer = on.exclusive("k");
    on.grant(writer);
    on.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, lock_of_a_semaphore_holder_is_adopted, &capabilities::tickets, &capabilities::semaphore)
{
    const auto first = on.shared("k", 2), second = on.shared("k", 2), next = on.shared("k", 2);
    on.grant(first);
    on.grant(second);
    const plain_claim_ptr third(new plain_claim(
        {.key = "k", .mode = lock_mode::shared, .max_holders = 2, .ttl = driver::long_ttl, .queues = false}));
    on.refuse(third);
    // The semaphore is full, and stays full.
    on.take_over(on.backend().export_ticket(*first), next);
    on.refuse(third);
    on.check_held(second);
    on.release_held(next);
    on.grant(third);
    on.release_held(third);
    on.release_held(second);
}

COLOCK_CONTRACT_CASE(adapter, waiters_continue_to_wait_for_an_adopted_lock, &capabilities::tickets)
{
    const auto old = on.exclusive("k"), queued = on.exclusive("k"), next = on.exclusive("k");
    on.grant(old);
    on.refuse(queued);
    on.take_over(on.backend().export_ticket(*old), next);
    on.refuse(queued);
    on.check_held(next);
    on.release_held(next);
    on.grant(queued);
    on.release_held(queued);
}

COLOCK_CONTRACT_CASE(adapter, release_of_an_adopted_lock_wakes_listeners, &capabilities::tickets, &capabilities::events)
{
    const auto old = on.exclusive("k"), queued = on.exclusive("k"), next = on.exclusive("k");
    on.grant(old);
    auto waiting = on.start_acquire(queued);
    on.pass_time(1ms);
    const auto ticket = on.backend().export_ticket(*old);
    on.take_over(ticket, next);
    on.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    on.release_held(next);
    waiting.get(on.io());
    on.release_held(queued);
}

COLOCK_CONTRACT_CASE(adapter, an_adopted_lock_is_handed_over, &capabilities::tickets)
{
    const auto old = on.exclusive("k"), held = on.exclusive("k"), next = on.exclusive("k");
    on.grant(old);
    const auto fence = on.take_over(on.backend().export_ticket(*old), held);
    const auto outcome = on.hand_over(held, next);
    BOOST_TEST(outcome.released.status == release_status::released);
    BOOST_TEST(outcome.created.status == create_status::granted);
    BOOST_TEST((outcome.created.fence > fence || !on.able().fence));
    on.check_not_held(held);
    on.release_held(next);
}

COLOCK_CONTRACT_CASE(adapter, adopted_lock_is_listed_with_its_new_owner, &capabilities::tickets, &capabilities::list)
{
    const auto old = on.exclusive("k");
    on.grant(old);
    const plain_claim_ptr next(new plain_claim({.key = "k",
        .ttl = driver::long_ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = "heir", .group = "g"})}));
    on.take_over(on.backend().export_ticket(*old), next);
    const auto listed = on.inspect("k");
    BOOST_TEST_REQUIRE(listed.size() == 1U);
    BOOST_TEST(listed.front().owner == "heir");
    BOOST_TEST(listed.front().group == "g");
    on.release_held(next);
}

} // namespace colock::contract
