// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {
namespace {

/// Two adapters, the second in the role of another process.
struct two_adapters
{
    redis_server server;
    client_side env{{.url = server.url()}};
    client_side other{{.url = server.url()}};

    /// Runs until a client has subscribed to the channel of the key.
    void wait_for_subscription(const running<std::uint64_t>& waiting, const std::string& key = "k")
    {
        const auto channel = "{colock}:" + key;
        run_until(env.io, [&] { return server({"PUBSUB", "NUMSUB", channel}) == channel + "\n1\n"; });
        BOOST_TEST(!waiting.done());
    }
};

/// Releases all locks at once and returns the outcomes.
std::vector<release_outcome> release_together(client_side& by, const std::vector<plain_claim_ptr>& claims)
{
    std::vector<std::optional<release_outcome>> answers(claims.size());
    for (std::size_t n = 0; n < claims.size(); ++n) {
        sent_now(claims[n]);
        by.test_driver.backend().start_release(claims[n], release_guarantee::released,
            [&answer = answers[n]](release_outcome outcome) { answer = std::move(outcome); });
    }
    run_until(by.io, [&] { return std::ranges::all_of(answers, [](const auto& each) { return each.has_value(); }); });
    std::vector<release_outcome> all;
    for (auto& each : answers)
        all.push_back(std::move(*each));
    return all;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(redis_wake_ups, two_adapters)

BOOST_AUTO_TEST_CASE(writer_does_not_remove_the_intent_of_another_writer)
{
    const auto has_intent = [&](const plain_claim_ptr& writer) {
        return server({"ZSCORE", "{colock}:k", 'w' + writer->token().hex()}) != "(nil)";
    };
    const auto reader = driver::shared("k", 0, 60s);
    env.test_driver.grant(reader);
    const auto first = driver::exclusive("k"), second = driver::exclusive("k");
    env.test_driver.check_refused(first);
    env.test_driver.check_refused(second);
    BOOST_TEST((has_intent(first) && has_intent(second)));
    env.test_driver.abandon(first);
    BOOST_TEST((!has_intent(first) && has_intent(second)));
    env.test_driver.check_refused(driver::shared("k"));
    env.test_driver.abandon(second);
    BOOST_TEST(!has_intent(second));
    env.test_driver.grant(driver::shared("k"));
}

BOOST_AUTO_TEST_CASE(writer_is_granted_despite_the_intent_of_another_writer)
{
    const auto reader = driver::shared("k", 0, 60s);
    env.test_driver.grant(reader);
    const auto first = driver::exclusive("k"), second = driver::exclusive("k");
    env.test_driver.check_refused(first);
    env.test_driver.check_refused(second);
    env.test_driver.release_held(reader);
    env.test_driver.grant(first);
    // The intent of the second writer is gone with the set.
    BOOST_TEST(server({"GET", "{colock}:k"}).starts_with(first->token().hex()));
    env.test_driver.check_refused(second);
    env.test_driver.release_held(first);
    env.test_driver.grant(second);
    env.test_driver.release_held(second);
}

BOOST_AUTO_TEST_CASE(a_writer_that_gives_up_wakes_the_readers_that_it_kept_out)
{
    const auto reader = driver::shared("k", 0, 60s);
    env.test_driver.grant(reader);
    const auto writer = driver::exclusive("k");
    env.test_driver.check_refused(writer);
    const auto late = driver::shared("k");
    auto waiting = env.test_driver.start_acquire(late);
    wait_for_subscription(waiting);
    env.test_driver.abandon(writer);
    BOOST_TEST(waiting.get(env.io) > 0u);
    env.test_driver.release_held(late);
    env.test_driver.release_held(reader);
}

BOOST_AUTO_TEST_CASE(batched_releases_wake_the_waiters_of_each_key)
{
    std::vector<plain_claim_ptr> held;
    std::vector<plain_claim_ptr> wanted;
    std::vector<running<std::uint64_t>> waiting;
    for (const std::string key : {"a", "b", "c"}) {
        env.test_driver.grant(held.emplace_back(driver::exclusive(key)));
        waiting.push_back(env.test_driver.start_acquire(wanted.emplace_back(driver::exclusive(key))));
        wait_for_subscription(waiting.back(), key);
    }
    for (const auto& answer : release_together(env, held)) {
        BOOST_TEST((answer.status == release_status::released));
        BOOST_TEST(!answer.others_wait);
    }
    for (auto& each : waiting)
        BOOST_TEST(each.get(env.io) > 0u);
    for (const auto& each : wanted)
        env.test_driver.release_held(each);
}

BOOST_AUTO_TEST_CASE(release_reports_whether_others_wait)
{
    const auto grant = [&](const std::string& key) {
        auto claim = driver::exclusive(key);
        env.test_driver.grant(claim);
        return claim;
    };
    // At first no client waits. Then only a client of the holder's own adapter waits, which is not counted.
    BOOST_TEST(!env.test_driver.release(grant("k")).others_wait);
    auto held = grant("k");
    const auto own = driver::exclusive("k");
    auto waiting = env.test_driver.start_acquire(own);
    wait_for_subscription(waiting);
    BOOST_TEST(!env.test_driver.release(held).others_wait);
    waiting.get(env.io);
    env.test_driver.release_held(own);

    // A waiter of another adapter, with a single release and with several in one batch.
    for (const bool together : {false, true}) {
        const std::string key = together ? "several" : "single";
        held = grant(key);
        const auto other_held = grant("other key than " + key);
        const auto others = driver::exclusive(key);
        auto other_waiting = other.test_driver.start_acquire(others);
        run_until(
            other.io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:" + key}) == "{colock}:" + key + "\n1\n"; });
        if (together) {
            const auto answers = release_together(env, {other_held, held});
            BOOST_TEST(!answers[0].others_wait);
            BOOST_TEST(answers[1].others_wait);
        } else {
            BOOST_TEST(env.test_driver.release(held).others_wait);
            env.test_driver.release_held(other_held);
        }
        other_waiting.get(other.io);
        other.test_driver.release_held(others);
    }
}

BOOST_AUTO_TEST_CASE(repeated_create_starts_a_new_ttl_for_each_kind_of_holder)
{
    const auto remaining_ms = [&](std::string_view key) { return std::stoll(server({"PTTL", key})); };
    // A writer, a single reader, and one of two readers.
    for (const auto& [claim, other_reader] :
        std::vector<std::pair<plain_claim_ptr, plain_claim_ptr>>{{driver::exclusive("k", 60s), nullptr},
            {driver::shared("k", 0, 60s), nullptr}, {driver::shared("k", 0, 60s), driver::shared("k", 0, 60s)}})
    {
        if (other_reader)
            env.test_driver.grant(other_reader);
        env.test_driver.grant(claim);
        if (other_reader) {
            // The score of a member is its expiry.
            const auto soon = std::to_string((std::stoll(server({"TIME"})) + 20) * 1000);
            const auto members = server({"ZRANGE", "{colock}:k", "0", "-1"});
            for (std::size_t begin = 0, end = 0; begin < members.size(); begin = end + 1) {
                end = members.find('\n', begin);
                server({"ZADD", "{colock}:k", "XX", soon, members.substr(begin, end - begin)});
            }
        } else {
            server({"PEXPIRE", "{colock}:k", "20000"});
        }
        env.test_driver.grant(claim);
        long long longest_remaining = 0;
        for (const auto& each : env.test_driver.inspect("k"))
            longest_remaining = std::max<long long>(longest_remaining, each.remaining.value_or(0ms).count());
        BOOST_TEST(longest_remaining > 40'000);
        BOOST_TEST(remaining_ms("{colock}:k") > 40'000);
        env.test_driver.release(claim);
        if (other_reader)
            env.test_driver.release(other_reader);
    }
}

BOOST_AUTO_TEST_CASE(repeated_create_starts_a_new_ttl_in_the_plain_layout)
{
    client_side plain({.url = server.url(), .layout = redis::layout::plain});
    const auto claim = driver::exclusive("k", 60s);
    plain.test_driver.grant(claim);
    server({"PEXPIRE", "k", "20000"});
    plain.test_driver.grant(claim);
    BOOST_TEST(std::stoll(server({"PTTL", "k"})) > 40'000);
    const plain_claim_ptr endless = driver::exclusive("endless", 0ms);
    plain.test_driver.grant(endless);
    server({"PEXPIRE", "endless", "20000"});
    plain.test_driver.grant(endless);
    BOOST_TEST(server({"PTTL", "endless"}) == "-1");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
