// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/notes.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/locker.hpp>

#include <algorithm>

using namespace colock;
using namespace colock::testing;

namespace {

errc code_of(const failure_ptr& failure)
{
    BOOST_TEST_REQUIRE(failure);
    return failure->code;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(quorum_majority, three_nodes)

BOOST_AUTO_TEST_CASE(two_of_three_grant_and_extend_and_release)
{
    for (const std::size_t one : {a, b, c}) {
        disconnect(one);
        const auto claim = driver::exclusive("k", ttl);
        env->grant(claim);
        env->check_refused(driver::exclusive("k"));
        BOOST_TEST(env->extend(claim, 20s).status == extend_status::extended);
        env->check_held(claim);
        BOOST_TEST(env->inspect("k").size() == 1U);
        env->release_held(claim);
        reconnect(one);
        ready();
        BOOST_TEST(holder_counts() == "000");
    }
    BOOST_TEST(idle());
}

BOOST_AUTO_TEST_CASE(quorum_is_ready_when_a_majority_is)
{
    const auto listener = std::make_shared<notes>();
    env->backend().attach(listener);
    nodes[a]->contact().set_up();
    BOOST_TEST(listener->readies == 0);
    nodes[c]->contact().set_up();
    BOOST_TEST(listener->readies == 1);
    nodes[b]->contact().set_up();
    BOOST_TEST(listener->readies == 1);
}

BOOST_AUTO_TEST_CASE(quorum_is_suspended_without_a_majority)
{
    const auto listener = std::make_shared<notes>();
    env->backend().attach(listener);
    const locker locks(env->backend().shared_from_this(), {.observer = listener});
    for (const auto& each : nodes)
        each->contact().set_up();
    auto held = run_coro(io(), locks.acquire("k", {.ttl = 1h}));
    nodes[a]->contact().set_down(errc::unavailable);
    BOOST_TEST(listener->suspensions == 0);
    BOOST_TEST(listener->risks == 0);
    nodes[c]->contact().set_down(make_failure(errc::unavailable), "there");
    nodes[b]->contact().set_down(errc::unavailable);
    BOOST_TEST(listener->suspensions == 1);
    BOOST_TEST(listener->risks == 1);
    // The nodes a and c are still disconnected, so nothing is reported when b reconnects and disconnects again.
    nodes[b]->contact().set_up();
    nodes[b]->contact().set_down(errc::unavailable);
    BOOST_TEST(listener->suspensions == 1);
    BOOST_TEST(listener->risks == 1);
    nodes[b]->contact().set_up();
    nodes[c]->contact().set_up();
    BOOST_TEST(!env->backend().connection_failure());
    nodes[b]->contact().set_down(errc::unavailable);
    BOOST_TEST(listener->suspensions == 2);
    BOOST_TEST(listener->risks == 2);
    for (const auto& each : nodes)
        each->contact().set_up();
    run_coro(io(), held.release());
    run_coro(io(), locks.shutdown(1s));
}

BOOST_AUTO_TEST_CASE(grant_of_one_node_is_not_a_lock)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    lose_data(a);
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::extended);
    env->check_held(claim);
    BOOST_TEST(env->inspect("k").size() == 1U);
    BOOST_TEST(env->list().size() == 1U);
    lose_data(b);
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::not_held);
    env->check_not_held(claim);
    BOOST_TEST(env->inspect("k").empty());
    BOOST_TEST(env->list().empty());
    BOOST_TEST(env->break_key("k").empty());
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(node_with_many_holders_has_one_vote)
{
    std::vector<plain_claim_ptr> readers;
    for (int i = 0; i < 3; ++i) {
        readers.push_back(sent_now(driver::shared("k")));
        stores[a]->start_create(readers.back(), [](const create_outcome&) {});
    }
    BOOST_TEST(holder_count(a) == 3U);
    BOOST_TEST(env->inspect("k").empty());
    BOOST_TEST(env->list().empty());
}

BOOST_AUTO_TEST_CASE(lock_of_a_minority_is_not_reported)
{
    locker locks(env->shared_backend());
    take(b);
    BOOST_TEST(!run_coro(io(), locks.is_locked("k")));
    auto held = run_coro(io(), locks.try_acquire("k"));
    BOOST_TEST_REQUIRE(held.has_value());
    BOOST_TEST(run_coro(io(), locks.is_locked("k")));
    BOOST_TEST(run_coro(io(), held->is_locked()));
    lose_data(a);
    BOOST_TEST(!run_coro(io(), held->is_locked()));
    BOOST_TEST(!held->held());
}

BOOST_AUTO_TEST_CASE(adoption_on_two_of_three_nodes_succeeds)
{
    for (const std::size_t one : {a, b, c}) {
        const auto old = driver::exclusive("k", ttl), next = driver::exclusive("k", ttl);
        env->grant(old);
        ready();
        const auto ticket = env->export_ticket(old);
        disconnect(one);
        env->take_over(ticket, next);
        env->check_held(next);
        env->check_not_held(old);
        env->release_held(next);
        reconnect(one);
        lose_data(one);
    }
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(late_grant_of_exported_claim_is_released)
{
    const auto old = driver::exclusive("k", ttl), next = driver::exclusive("k", ttl);
    nodes[c]->next(operation::create, step::hold_unknown());
    env->grant(old);
    ready();
    env->take_over(env->export_ticket(old), next);
    ready();
    env->release_held(next);
    ready();
    BOOST_TEST(holder_counts() == "000");
    nodes[c]->deliver();
    pass_time(2s);
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(ticket_contains_the_part_of_a_node_that_answers_after_the_grant)
{
    const auto old = driver::exclusive("k", ttl), next = driver::exclusive("k", ttl);
    nodes[c]->next(operation::create, step::hold());
    env->grant(old);
    std::optional<std::string> ticket;
    env->backend().start_export(old, [&](export_outcome outcome) { ticket = std::move(outcome.ticket); });
    ready();
    BOOST_TEST(!ticket.has_value());
    nodes[c]->deliver();
    ready();
    BOOST_TEST_REQUIRE(ticket.has_value());
    disconnect(a);
    env->take_over(*ticket, next);
    env->release_held(next);
}

BOOST_AUTO_TEST_CASE(partial_adoption_counts_in_the_next_attempt)
{
    const auto old = driver::exclusive("k", ttl), next = driver::exclusive("k", ttl);
    env->grant(old);
    ready();
    const auto ticket = env->export_ticket(old);
    for (const std::size_t each : {a, b, c})
        disconnect(each);
    BOOST_TEST(code_of(env->adopt(ticket, next).error) == errc::unavailable);
    reconnect(a);
    BOOST_TEST(code_of(env->adopt(ticket, next).error) == errc::outcome_unknown);
    ready();
    reconnect(b);
    lose_data(c);
    env->take_over(ticket, next);
    reconnect(c);
    env->check_held(next);
    env->release_held(next);
    ready();
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(adoption_refused_by_a_majority_is_released)
{
    const auto old = driver::exclusive("k", ttl), next = driver::exclusive("k", ttl);
    env->grant(old);
    ready();
    const auto ticket = env->export_ticket(old);
    lose_data(b);
    lose_data(c);
    BOOST_TEST(env->adopt(ticket, next).status == create_status::busy);
    ready();
    BOOST_TEST(holder_counts() == "000");
    for (const auto& other : {ticket.substr(1), ticket + "0:", ticket.substr(0, ticket.size() / 2), std::string("1:x")})
        BOOST_TEST(env->adopt(other, driver::exclusive("k")).status == create_status::busy);
}

BOOST_AUTO_TEST_CASE(without_a_majority_of_answers_nothing_is_decided)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    lose_data(a);
    disconnect(b);
    // One node says yes, one says no.
    const auto extended = env->extend(claim, ttl);
    BOOST_TEST(extended.status == extend_status::failed);
    BOOST_TEST(code_of(extended.error) == errc::unavailable);
    const auto valid = env->valid(claim);
    BOOST_TEST(!valid.valid);
    BOOST_TEST(code_of(valid.error) == errc::unavailable);
    disconnect(c);
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::failed);
    BOOST_TEST(code_of(env->valid(claim).error) == errc::unavailable);
    BOOST_CHECK_THROW(env->inspect("k"), std::runtime_error);
    const auto released = env->release(claim);
    BOOST_TEST(released.status == release_status::failed);
    BOOST_TEST(code_of(released.error) == errc::unavailable);
    reconnect(b);
    reconnect(c);
    env->release_held(claim);
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(unanswered_extension_reports_outcome_unknown)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    nodes[a]->next(operation::extend, step::lose_reply());
    nodes[b]->next(operation::extend, step::fail(errc::unavailable));
    const auto extended = env->extend(claim, ttl);
    BOOST_TEST(extended.status == extend_status::failed);
    BOOST_TEST(code_of(extended.error) == errc::outcome_unknown);
}

BOOST_AUTO_TEST_CASE(busy_needs_answers_of_a_majority)
{
    take(c);
    disconnect(a);
    disconnect(b);
    const auto unreachable = env->create(driver::exclusive("k", ttl));
    BOOST_TEST(unreachable.status == create_status::failed);
    BOOST_TEST(code_of(unreachable.error) == errc::unavailable);
    BOOST_TEST(unreachable.error->detail == "2 of 3 masters failed: away");
    reconnect(b);
    const auto found = env->check_refused(driver::exclusive("k", ttl));
    BOOST_TEST((found.retry_after > 0ms && found.retry_after <= 375ms));
    ready();
    BOOST_TEST(holder_counts() == "001");
    reconnect(a);
    env->grant(driver::exclusive("k", ttl));
}

BOOST_AUTO_TEST_CASE(busy_waits_for_the_answer_that_makes_it_certain)
{
    take(a);
    disconnect(b);
    nodes[c]->next(operation::create, step::hold());
    const auto claim = sent_now(driver::exclusive("k", ttl));
    auto outcome = start(io(), env->backend().create(claim));
    ready();
    BOOST_TEST(!outcome.done());
    nodes[c]->deliver();
    BOOST_TEST(outcome.get(io()).status == create_status::busy);
}

BOOST_AUTO_TEST_CASE(refusal_of_a_majority_is_reported)
{
    nodes[a]->next(operation::create, step::fail(errc::access_denied, "denied"));
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    env->release_held(claim);
    for (const std::size_t each : {a, b})
        nodes[each]->next(operation::create, step::fail(errc::access_denied, "denied"));
    const auto refused = env->create(driver::exclusive("k", ttl));
    BOOST_TEST(refused.status == create_status::failed);
    BOOST_TEST(code_of(refused.error) == errc::access_denied);
    ready();
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(release_reports_whether_a_majority_held_the_lock)
{
    auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    lose_data(a);
    env->release_held(claim);
    claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    lose_data(a);
    lose_data(b);
    BOOST_TEST(env->release(claim).status == release_status::not_held);
    ready();
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(repeated_release_counts_what_was_released_before)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    // The release is carried out on two nodes, but too few have answered.
    nodes[b]->next(operation::abandon, step::lose_reply());
    disconnect(c);
    BOOST_TEST(env->release(claim).status == release_status::failed);
    BOOST_TEST(holder_counts() == "001");
    reconnect(c);
    lose_data(c);
    BOOST_TEST(env->release(claim).status == release_status::released);
    BOOST_TEST(env->release(claim).status == release_status::not_held);
}

BOOST_AUTO_TEST_CASE(released_claim_is_not_held)
{
    const auto claim = driver::exclusive("k", ttl);
    BOOST_TEST(env->release(claim).status == release_status::not_held);
    env->grant(claim);
    env->release_held(claim);
    ready();
    for (const auto& node : nodes)
        node->forget_calls();
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::not_held);
    env->check_not_held(claim);
    BOOST_TEST(env->release(claim).status == release_status::not_held);
    BOOST_TEST(env->abandon(claim).status == release_status::not_held);
    BOOST_TEST(nodes[a]->calls().size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_lock_without_ttl_is_refused)
{
    locker locks(env->shared_backend());
    COLOCK_THROWS(validation_error, errc::unsupported, run_coro(io(), locks.acquire("k", {.ttl = 0ms})));
}

BOOST_AUTO_TEST_CASE(slow_node_has_one_request_in_flight)
{
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    const auto extensions = [&] { return nodes[c]->count(operation::extend); };
    nodes[c]->next(operation::extend, step::hold());
    for (int i = 0; i < 3; ++i)
        BOOST_TEST(env->extend(claim, ttl).status == extend_status::extended);
    env->check_held(claim);
    BOOST_TEST(extensions() == 1U);
    BOOST_TEST(nodes[c]->count(operation::is_valid) == 0U);
    // Only the last of the waiting requests is sent.
    nodes[c]->deliver();
    ready();
    BOOST_TEST(extensions() == 1U);
    BOOST_TEST(nodes[c]->count(operation::is_valid) == 1U);

    // Without a, the majority needs c, which has not answered its earlier request.
    nodes[c]->next(operation::extend, step::hold());
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::extended);
    disconnect(a);
    auto waiting = start(io(), env->backend().extend(sent_now(claim), ttl));
    ready();
    BOOST_TEST(!waiting.done());
    nodes[c]->deliver();
    BOOST_TEST(waiting.get(io()).status == extend_status::extended);

    // A waiting request fails when another one replaces it.
    nodes[c]->next(operation::extend, step::hold());
    auto under_way = start(io(), env->backend().extend(sent_now(claim), ttl));
    auto replaced = start(io(), env->backend().extend(sent_now(claim), ttl));
    auto last = start(io(), env->backend().extend(sent_now(claim), ttl));
    BOOST_TEST(replaced.get(io()).status == extend_status::failed);
    nodes[c]->deliver();
    BOOST_TEST(under_way.get(io()).status == extend_status::extended);
    BOOST_TEST(last.get(io()).status == extend_status::extended);

    // A request that waits for an unanswered one ends when the lock is released.
    reconnect(a);
    nodes[c]->next(operation::is_valid, step::hold());
    env->check_held(claim);
    disconnect(a);
    auto superseded = start(io(), env->backend().extend(sent_now(claim), ttl));
    ready();
    BOOST_TEST(!superseded.done());
    auto released = start(io(), env->backend().release(sent_now(claim), release_guarantee::released));
    BOOST_TEST(superseded.get(io()).status == extend_status::failed);
    nodes[c]->deliver();
    BOOST_TEST(released.get(io()).status == release_status::released);
}

BOOST_AUTO_TEST_CASE(unneeded_node_is_not_asked)
{
    // These nodes complete inside the call.
    const driver at_once(io(), quorum::make_adapter(io().get_executor(), stores,
                                   {.name = "quorum", .operation_timeout = node_timeout, .poll_interval = 250ms}));
    take(a);
    take(b);
    at_once.check_refused(driver::exclusive("k", ttl));
    BOOST_TEST(holder_counts() == "110");
    lose_data(a);
    const auto claim = driver::exclusive("k", ttl);
    at_once.grant(claim);
    at_once.check_held(claim);
    at_once.release_held(claim);
    BOOST_TEST(holder_counts() == "010");
}

BOOST_AUTO_TEST_CASE(node_without_grant_is_not_asked_again)
{
    take(c);
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    BOOST_TEST(env->extend(claim, ttl).status == extend_status::extended);
    env->check_held(claim);
    env->release_held(claim);
    ready();
    BOOST_TEST(nodes[c]->calls().size() == 1U);
    BOOST_TEST(holder_counts() == "001");
}

BOOST_AUTO_TEST_SUITE_END()
