// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Tickets of a quorum, and several adopters of one ticket.
#include "fixture.hpp"

#include <colock/locker.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <random>
#include <utility>

using namespace colock;
using namespace colock::testing;

namespace {

/// A quorum of its own over the same stores, as in another process.
struct adopter
{
    explicit adopter(three_nodes& env)
    {
        for (const auto& store : env.stores)
            nodes.push_back(std::make_shared<instrumented_adapter>(store));
        backend = quorum::make_adapter(env.io().get_executor(), {nodes.begin(), nodes.end()},
            {.name = "quorum", .operation_timeout = three_nodes::node_timeout, .poll_interval = 250ms});
    }

    [[nodiscard]] std::size_t adoptions(std::size_t node) const { return nodes[node]->count(operation::adopt); }

    std::vector<std::shared_ptr<instrumented_adapter>> nodes;
    std::shared_ptr<adapter> backend;
};

using pending_outcome = std::shared_ptr<std::optional<create_outcome>>;

pending_outcome start_adopt(adapter& backend, std::string ticket, const claim_ptr& claim)
{
    auto result = std::make_shared<std::optional<create_outcome>>();
    backend.start_adopt(std::move(ticket), sent_now(claim), [result](create_outcome outcome) { *result = outcome; });
    return result;
}

struct adoptions : three_nodes
{
    [[nodiscard]] std::string detached_ticket()
    {
        const auto old = driver::exclusive("k", ttl);
        env->grant(old);
        ready();
        return env->export_ticket(old);
    }

    /// Lets several adopters use one ticket at the same time, and checks that one of them gets the lock.
    /// \param arrange prepares the nodes of an adopter
    template <class Arrange>
    void race(std::size_t count, Arrange arrange)
    {
        const auto ticket = detached_ticket();
        std::vector<std::unique_ptr<adopter>> adopters;
        std::vector<plain_claim_ptr> claims;
        std::vector<pending_outcome> outcomes;
        for (std::size_t i = 0; i < count; ++i) {
            adopters.push_back(std::make_unique<adopter>(*this));
            arrange(*adopters.back());
        }
        for (const auto& each : adopters) {
            claims.push_back(driver::exclusive("k", ttl));
            outcomes.push_back(start_adopt(*each->backend, ticket, claims.back()));
        }
        pass_time(1s);
        std::size_t winners = 0;
        for (std::size_t i = 0; i < count; ++i) {
            BOOST_TEST_REQUIRE(outcomes[i]->has_value());
            if ((*outcomes[i])->status != create_status::granted)
                continue;
            ++winners;
            BOOST_TEST(run_coro(io(), adopters[i]->backend->is_valid(claims[i])).valid);
            const auto released =
                run_coro(io(), adopters[i]->backend->release(sent_now(claims[i]), release_guarantee::released));
            BOOST_TEST((released.status == release_status::released));
        }
        BOOST_TEST(winners == 1U);
        pass_time(2s);
        for (const std::size_t each : {a, b, c})
            lose_data(each);
    }

    /// Delays the adoption on each node by 0 to 3 steps of time.
    void delay_randomly(adopter& adopters)
    {
        for (const auto& each : adopters.nodes)
            each->always(operation::adopt, step::pass().delay(std::chrono::milliseconds(50 * (random() % 4))));
    }

    std::mt19937 random{1};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(quorum_adoptions, adoptions)

BOOST_AUTO_TEST_CASE(one_of_several_adopters_gets_the_lock_in_any_order_of_arrival)
{
    for (int i = 0; i < 100; ++i)
        race(2 + static_cast<std::size_t>(i) % 3, [this](adopter& each) { delay_randomly(each); });
}

BOOST_AUTO_TEST_CASE(one_of_several_adopters_gets_the_lock_without_one_node)
{
    for (int i = 0; i < 90; ++i) {
        const auto stopped = static_cast<std::size_t>(i) % 3;
        const auto unanswered = step::lose_request().delay(node_timeout);
        race(2, [&](adopter& each) {
            delay_randomly(each);
            each.nodes[stopped]->always(operation::adopt, i % 2 == 0 ? step::fail(errc::unavailable) : unanswered);
        });
    }
}

BOOST_AUTO_TEST_CASE(first_node_is_asked_alone)
{
    const auto ticket = detached_ticket();
    nodes[a]->next(operation::adopt, step::hold());
    const auto next = driver::exclusive("k", ttl);
    const auto outcome = start_adopt(env->backend(), ticket, next);
    ready();
    BOOST_TEST(nodes[a]->count(operation::adopt) == 1U);
    BOOST_TEST(nodes[b]->count(operation::adopt) == 0U);
    BOOST_TEST(nodes[c]->count(operation::adopt) == 0U);
    nodes[b]->next(operation::adopt, step::hold());
    nodes[a]->deliver();
    ready();
    // The others are asked together.
    BOOST_TEST(nodes[b]->count(operation::adopt) == 1U);
    BOOST_TEST(nodes[c]->count(operation::adopt) == 1U);
    BOOST_TEST_REQUIRE(outcome->has_value());
    BOOST_TEST(((*outcome)->status == create_status::granted));
    nodes[b]->deliver();
    ready();
    env->release_held(next);
    ready();
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(refusal_of_the_first_node_adopts_nothing)
{
    const auto ticket = detached_ticket();
    lose_data(a);
    BOOST_TEST((env->adopt(ticket, driver::exclusive("k")).status == create_status::busy));
    ready();
    BOOST_TEST(nodes[b]->count(operation::adopt) == 0U);
    BOOST_TEST(nodes[c]->count(operation::adopt) == 0U);
    BOOST_TEST(holder_counts() == "011");
}

BOOST_AUTO_TEST_CASE(next_node_takes_the_place_of_a_node_that_does_not_answer)
{
    for (const auto& lost :
        {step::lose_request(), step::lose_reply(), step::fail(errc::unavailable), step::fail(errc::access_denied)})
    {
        const auto ticket = detached_ticket();
        nodes[a]->forget_calls();
        nodes[b]->forget_calls();
        nodes[c]->forget_calls();
        nodes[a]->next(operation::adopt, lost);
        nodes[b]->next(operation::adopt, step::hold());
        const auto next = driver::exclusive("k", ttl);
        const auto outcome = start_adopt(env->backend(), ticket, next);
        ready();
        BOOST_TEST(nodes[b]->count(operation::adopt) == 1U);
        BOOST_TEST(nodes[c]->count(operation::adopt) == 0U);
        nodes[b]->deliver();
        ready();
        BOOST_TEST_REQUIRE(outcome->has_value());
        BOOST_TEST(((*outcome)->status == create_status::granted));
        ready();
        BOOST_TEST(nodes[a]->count(operation::adopt) == 1U);
        env->release_held(next);
        pass_time(2s);
        lose_data(a);
        BOOST_TEST(holder_counts() == "000");
    }
}

BOOST_AUTO_TEST_CASE(lost_answer_of_the_first_node_is_released_after_a_refusal)
{
    const auto ticket = detached_ticket();
    nodes[a]->next(operation::adopt, step::lose_reply());
    lose_data(b);
    // The other nodes are not asked after the refusal of b, so c keeps the lock of the ticket.
    BOOST_TEST((env->adopt(ticket, driver::exclusive("k", ttl)).status == create_status::busy));
    pass_time(2s);
    BOOST_TEST(nodes[c]->count(operation::adopt) == 0U);
    BOOST_TEST(holder_counts() == "001");
}

BOOST_AUTO_TEST_CASE(adoption_that_fails_in_the_middle_keeps_its_part_for_the_next_attempt)
{
    const auto ticket = detached_ticket();
    const auto next = driver::exclusive("k", ttl);
    nodes[a]->next(operation::adopt, step::pass().after([this] {
        disconnect(b);
        disconnect(c);
    }));
    const auto failed = env->adopt(ticket, next);
    BOOST_TEST_REQUIRE((failed.status == create_status::failed));
    BOOST_TEST(failed.error->code == errc::outcome_unknown);
    // Another adopter is refused by a, and does not touch the other nodes.
    adopter other(*this);
    const auto refused = start_adopt(*other.backend, ticket, driver::exclusive("k", ttl));
    ready();
    BOOST_TEST_REQUIRE(refused->has_value());
    BOOST_TEST(((*refused)->status == create_status::busy));
    reconnect(b);
    reconnect(c);
    env->take_over(ticket, next);
    env->release_held(next);
    ready();
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_CASE(parts_of_a_cancelled_adoption_are_released)
{
    locker locks(env->shared_backend());
    auto held = run_coro(io(), locks.acquire("k", {.ttl = ttl}));
    ready();
    const auto ticket = run_coro(io(), held.detach());
    nodes[a]->next(operation::adopt, step::hold());
    asio::cancellation_signal cancel;
    error_code result;
    locks.async_adopt(
        ticket, {}, asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock&) { result = code; }));
    ready();
    cancel.emit(asio::cancellation_type::terminal);
    ready();
    BOOST_TEST((result == asio::error::operation_aborted), result.message());
    nodes[a]->deliver();
    pass_time(2s);
    // All parts are released, so the lock is free at once and not only after its ttl.
    BOOST_TEST(holder_counts() == "000");
    run_coro(io(), locks.shutdown(1s));
}

BOOST_AUTO_TEST_CASE(ticket_has_no_part_for_a_node_that_has_not_granted)
{
    const auto other = take(a);
    const auto ticket = detached_ticket();
    const auto next = driver::exclusive("k", ttl);
    env->take_over(ticket, next);
    ready();
    BOOST_TEST(nodes[a]->count(operation::adopt) == 0U);
    env->release_held(next);
    ready();
    BOOST_TEST(holder_counts() == "100");
}

BOOST_AUTO_TEST_CASE(ticket_has_no_part_for_a_node_that_has_lost_the_lock)
{
    const auto old = driver::exclusive("k", ttl), next = driver::exclusive("k", ttl);
    env->grant(old);
    ready();
    lose_data(a);
    BOOST_TEST((env->extend(old, ttl).status == extend_status::extended));
    ready();
    env->take_over(env->export_ticket(old), next);
    ready();
    BOOST_TEST(nodes[a]->count(operation::adopt) == 0U);
    env->release_held(next);
    ready();
    BOOST_TEST(holder_counts() == "000");
}

BOOST_AUTO_TEST_SUITE_END()
