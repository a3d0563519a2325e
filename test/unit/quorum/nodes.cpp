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

struct listening final : observer
{
    void unreachable(std::string_view backend, const error_code&, std::string_view address) noexcept override
    {
        told.push_back("unreachable " + std::string(backend) + " " + std::string(address));
    }
    void reconnected(std::string_view backend) noexcept override
    {
        told.push_back("reconnected " + std::string(backend));
    }
    void warning(std::string_view backend, std::string_view message) noexcept override
    {
        told.push_back("warning " + std::string(backend) + " " + std::string(message));
    }

    std::vector<std::string> told;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(quorum_nodes, three_nodes)

BOOST_AUTO_TEST_CASE(what_nodes_tell_of_themselves_is_told_on)
{
    const auto hears = std::make_shared<listening>();
    on->backend().attach(hears);
    nodes[b]->notify_unreachable(make_failure(errc::unavailable, "away"), "there");
    nodes[b]->notify_reconnected();
    nodes[c]->notify_warning("take care");
    const std::vector<std::string> expected{
        "unreachable quorum there", "reconnected quorum", "warning quorum take care"};
    BOOST_TEST(hears->told == expected, boost::test_tools::per_element());
    // They may outlive it.
    on.reset();
    nodes[c]->notify_warning("nobody listens");
    BOOST_TEST(hears->told.size() == 3U);
}

BOOST_AUTO_TEST_CASE(it_is_in_trouble_when_a_majority_is)
{
    const auto away = [&](std::size_t node, const char* why) {
        nodes[node]->notify_unreachable(make_failure(errc::unavailable, why), "there");
    };
    BOOST_TEST(!on->backend().trouble());
    away(b, "the second");
    BOOST_TEST(!on->backend().trouble());
    away(c, "the third");
    BOOST_TEST_REQUIRE(on->backend().trouble());
    BOOST_TEST(on->backend().trouble()->detail == "the second");
    away(a, "the first");
    BOOST_TEST(on->backend().trouble()->detail == "the first");
    nodes[a]->notify_reconnected();
    nodes[b]->notify_ready();
    BOOST_TEST(!on->backend().trouble());
}

BOOST_AUTO_TEST_CASE(the_busy_tell_when_and_who)
{
    struct
    {
        std::chrono::milliseconds a, b;
        std::chrono::milliseconds expected;
    } const rows[] = {{120ms, 60ms, 60ms}, {60ms, 120ms, 60ms}, {0ms, 60ms, 60ms}, {60ms, 0ms, 60ms}};
    for (const auto& row : rows) {
        nodes[a]->next(operation::create, step::busy(row.a, "somebody"));
        nodes[b]->next(operation::create, step::busy(row.b));
        const auto told = on->refuse(driver::exclusive("k", ttl));
        BOOST_TEST((told.retry_after == row.expected));
        BOOST_TEST(told.holder == "somebody");
        ready();
        BOOST_TEST(standing() == "000");
    }
}

BOOST_AUTO_TEST_CASE(two_that_have_each_won_a_minority_do_not_meet_again_in_step)
{
    std::set<lease_clock::duration> pauses;
    for (const auto retry_after : {0ms, 10'000ms}) {
        for (int i = 0; i < 10; ++i) {
            nodes[a]->next(operation::create, step::busy(retry_after));
            nodes[b]->next(operation::create, step::busy(retry_after));
            const auto pause = on->refuse(driver::exclusive("k", ttl)).retry_after;
            BOOST_TEST((pause >= 125ms && pause <= 375ms));
            pauses.insert(pause);
        }
    }
    BOOST_TEST(pauses.size() > 10U);
}

BOOST_AUTO_TEST_CASE(each_request_says_when_it_was_sent)
{
    const auto sent_of = [&](operation what) {
        for (const auto& each : nodes[c]->calls()) {
            if (each.what == what)
                return each.sent;
        }
        return lease_clock::time_point{};
    };
    const auto claim = driver::exclusive("k", ttl);
    on->grant(claim);
    ready();
    BOOST_TEST((sent_of(operation::create) == claim->sent()));
    skip(1s);
    on->extend(claim, ttl);
    ready();
    BOOST_TEST((sent_of(operation::extend) >= sent_of(operation::create) + 1s));
    BOOST_TEST((sent_of(operation::extend) == claim->sent()));
    // This one waits for its turn, and is sent then.
    nodes[c]->next(operation::is_valid, step::pass().delay(100ms));
    on->check_held(claim);
    on->give_back(claim);
    pass(100ms);
    BOOST_TEST((sent_of(operation::abandon) > claim->sent()));
}

BOOST_AUTO_TEST_CASE(each_node_knows_the_owner)
{
    const plain_claim_ptr claim(new plain_claim({.key = "k",
        .ttl = ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = "me", .comment = "for a test"})}));
    on->grant(sent_now(claim));
    for (const std::size_t each : {a, b, c}) {
        ready();
        stores[each]->start_inspect("k", [](const list_outcome& told) {
            BOOST_TEST_REQUIRE(told.locks.size() == 1U);
            BOOST_TEST(told.locks[0].owner == "me");
            BOOST_TEST(told.locks[0].comment == "for a test");
        });
    }
}

BOOST_AUTO_TEST_CASE(a_list_is_of_what_was_asked_for)
{
    const auto first = driver::exclusive("first", ttl), second = driver::exclusive("second", ttl);
    on->grant(first);
    on->grant(second);
    ready();
    const auto found = on->list({.key_prefix = "sec"});
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].key == "second");
}

BOOST_AUTO_TEST_SUITE_END()
