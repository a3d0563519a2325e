// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"

#include <colock/observer.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace colock;
using namespace colock::testing;

namespace {

struct node_events final : observer
{
    void unreachable(std::string_view backend, const error_code&, std::string_view address,
        std::string_view detail) noexcept override
    {
        events.push_back(
            "unreachable " + std::string(backend) + " " + std::string(address) + ": " + std::string(detail));
    }
    void ready(std::string_view backend) noexcept override { events.push_back("ready " + std::string(backend)); }
    void suspended(std::string_view backend, const error_code&) noexcept override
    {
        events.push_back("suspended " + std::string(backend));
    }
    void reconnected(std::string_view backend) noexcept override
    {
        events.push_back("reconnected " + std::string(backend));
    }
    void warning(std::string_view backend, std::string_view message) noexcept override
    {
        events.push_back("warning " + std::string(backend) + " " + std::string(message));
    }

    std::vector<std::string> events;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(quorum_nodes, three_nodes)

BOOST_AUTO_TEST_CASE(events_of_nodes_are_forwarded)
{
    const auto log = std::make_shared<node_events>();
    for (const auto& each : nodes)
        each->contact().set_up();
    env->backend().attach(log);
    log->events.clear();
    nodes[b]->contact().set_connecting("there");
    nodes[b]->contact().set_down(make_failure(errc::unavailable, "away"), "there");
    nodes[b]->contact().set_up();
    nodes[c]->contact().warn("take care");
    const std::vector<std::string> expected{
        "unreachable quorum there: away", "reconnected quorum", "warning quorum take care"};
    BOOST_TEST(log->events == expected, boost::test_tools::per_element());
    // The nodes may outlive the quorum.
    env.reset();
    nodes[c]->contact().warn("nobody listens");
    BOOST_TEST(log->events.size() == 3U);
}

/// Otherwise observers would get no `reconnected`, and no report of the next loss.
BOOST_AUTO_TEST_CASE(majority_that_connects_again_after_it_was_idle_is_not_reported_as_lost)
{
    const auto log = std::make_shared<node_events>();
    for (const auto& each : nodes)
        each->contact().set_up();
    env->backend().attach(log);
    log->events.clear();
    for (const auto& each : nodes) {
        each->contact().set_idle();
        each->contact().set_connecting("there");
    }
    nodes[c]->contact().set_down(make_failure(errc::unavailable, "away"), "there");
    nodes[a]->contact().set_up();
    nodes[b]->contact().set_up();
    BOOST_TEST(
        log->events == std::vector<std::string>{"unreachable quorum there: away"}, boost::test_tools::per_element());
    log->events.clear();
    nodes[b]->contact().set_down(asio::error::eof);
    BOOST_TEST(log->events == std::vector<std::string>{"suspended quorum"}, boost::test_tools::per_element());
    log->events.clear();
    nodes[b]->contact().set_up();
    BOOST_TEST(log->events == std::vector<std::string>{"reconnected quorum"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(refusal_of_a_minority_is_reported_once)
{
    const auto log = std::make_shared<node_events>();
    env->backend().attach(log);
    always(b, step::fail(errc::misconfigured_backend, "out of memory"));
    for (int i = 0; i < 2; ++i) {
        const auto claim = driver::exclusive("k", ttl);
        env->grant(claim);
        env->release_held(claim);
        ready();
    }
    BOOST_TEST(
        log->events == std::vector<std::string>{"warning quorum out of memory"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(quorum_reports_a_connection_failure_if_a_majority_has_one)
{
    const auto report_unreachable = [&](std::size_t node, const char* detail) {
        nodes[node]->contact().set_down(make_failure(errc::unavailable, detail), "there");
    };
    BOOST_TEST(!env->backend().connection_failure());
    report_unreachable(b, "the second");
    BOOST_TEST(!env->backend().connection_failure());
    report_unreachable(c, "the third");
    BOOST_TEST_REQUIRE(env->backend().connection_failure());
    BOOST_TEST(env->backend().connection_failure()->detail == "the second");
    report_unreachable(a, "the first");
    BOOST_TEST(env->backend().connection_failure()->detail == "the first");
    nodes[a]->contact().set_up();
    nodes[b]->contact().set_up();
    BOOST_TEST(!env->backend().connection_failure());
}

BOOST_AUTO_TEST_CASE(busy_reports_retry_time_and_holder)
{
    struct
    {
        std::chrono::milliseconds a, b;
        std::chrono::milliseconds expected;
    } const rows[] = {{120ms, 60ms, 60ms}, {60ms, 120ms, 60ms}, {0ms, 60ms, 60ms}, {60ms, 0ms, 60ms}};
    for (const auto& row : rows) {
        nodes[a]->next(operation::create, step::busy(row.a, "somebody"));
        nodes[b]->next(operation::create, step::busy(row.b));
        const auto outcome = env->check_refused(driver::exclusive("k", ttl));
        BOOST_TEST((outcome.retry_after == row.expected));
        BOOST_TEST(outcome.holder == "somebody");
        ready();
        BOOST_TEST(holder_counts() == "000");
    }
}

BOOST_AUTO_TEST_CASE(retry_times_of_colliding_clients_differ)
{
    std::set<lease_clock::duration> pauses;
    for (const auto retry_after : {0ms, 10'000ms}) {
        for (int i = 0; i < 10; ++i) {
            nodes[a]->next(operation::create, step::busy(retry_after));
            nodes[b]->next(operation::create, step::busy(retry_after));
            const auto pause = env->check_refused(driver::exclusive("k", ttl)).retry_after;
            BOOST_TEST((pause >= 125ms && pause <= 375ms));
            pauses.insert(pause);
        }
    }
    BOOST_TEST(pauses.size() > 10U);
}

BOOST_AUTO_TEST_CASE(each_request_says_when_it_was_sent)
{
    const auto sent_of = [&](operation kind) {
        for (const auto& each : nodes[c]->calls()) {
            if (each.what == kind)
                return each.operation_start;
        }
        return lease_clock::time_point{};
    };
    const auto claim = driver::exclusive("k", ttl);
    env->grant(claim);
    ready();
    BOOST_TEST((sent_of(operation::create) == claim->operation_start()));
    virtual_clock::skip(1s);
    env->extend(claim, ttl);
    ready();
    BOOST_TEST((sent_of(operation::extend) >= sent_of(operation::create) + 1s));
    BOOST_TEST((sent_of(operation::extend) == claim->operation_start()));
    // The release is sent to node c after the answer to this request, and contains the time of its sending, not that of
    // the call.
    nodes[c]->next(operation::is_valid, step::pass().delay(100ms));
    env->check_held(claim);
    env->release_held(claim);
    pass_time(100ms);
    BOOST_TEST((sent_of(operation::abandon) > claim->operation_start()));
}

BOOST_AUTO_TEST_CASE(each_node_knows_the_owner)
{
    const plain_claim_ptr claim(new plain_claim({.key = "k",
        .ttl = ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = "me", .comment = "for a test"})}));
    env->grant(sent_now(claim));
    for (const std::size_t each : {a, b, c}) {
        ready();
        stores[each]->start_listing({.filter = {.key = "k"}}, [](const list_outcome& listed) {
            BOOST_TEST_REQUIRE(listed.locks.size() == 1U);
            BOOST_TEST(listed.locks[0].owner == "me");
            BOOST_TEST(listed.locks[0].comment == "for a test");
        });
    }
}

BOOST_AUTO_TEST_CASE(list_applies_the_filter)
{
    const auto first = driver::exclusive("first", ttl), second = driver::exclusive("second", ttl);
    env->grant(first);
    env->grant(second);
    ready();
    const auto found = env->list({.key_prefix = "sec"});
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].key == "second");
}

BOOST_AUTO_TEST_SUITE_END()
