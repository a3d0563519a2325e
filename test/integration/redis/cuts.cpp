// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cut_operations.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <ostream>
#include <string_view>

namespace colock::testing {

std::ostream& operator<<(std::ostream& out, loss what)
{
    constexpr const char* names[] = {"request", "reply", "time"};
    return out << names[static_cast<unsigned>(what)];
}

namespace {

/// How the script is sent in the request that is cut.
enum class form : unsigned char
{
    /// As its digest, which the server knows. Also used for requests without a script.
    known,
    /// As its digest, which the server does not know.
    not_known,
    /// As its text.
    whole,
};

std::ostream& operator<<(std::ostream& out, form which)
{
    constexpr const char* names[] = {"known", "not known", "whole"};
    return out << names[static_cast<unsigned>(which)];
}

void run_cut(redis_server& server, const cut_operation& what, form sent, std::optional<loss> lost)
{
    using kind = cut_operation::kind;
    redis::options settings;
    settings.layout = what.layout;
    settings.operation_timeout = lost == loss::delayed_reply ? 3s : 20s;
    // The attempt to connect outlasts the operation.
    settings.connect_timeout = 10s;
    fixture env(server, std::move(settings));
    if (what.cut != kind::connecting)
        env.open_connection();
    int before = 0;
    auto under_way = what.start(env, [&] {
        if (sent != form::known)
            server({"SCRIPT", "FLUSH"});
        before = env.between.cuts();
        if (lost)
            env.between.cut_at(sent == form::whole ? "EVAL" : what.word, *lost);
    });
    const auto ended = under_way.get(env.io());
    BOOST_TEST(env.between.cuts() - before == (lost ? 1 : 0));

    if (!lost || (what.cut == kind::connecting && lost != loss::delayed_reply)) {
        BOOST_TEST(!ended.failed);
        BOOST_TEST(ended.success == what.success);
        BOOST_TEST((!what.carried_out || what.carried_out(env)));
    } else {
        const auto expected = what.cut == kind::connecting ? errc::unavailable : errc::outcome_unknown;
        BOOST_TEST_REQUIRE(ended.failed);
        BOOST_TEST(ended.failed->code == expected);
        const bool arrived = what.cut != kind::connecting && lost != loss::request && sent != form::not_known;
        BOOST_TEST((!what.carried_out || what.carried_out(env) == arrived));
    }
    env.between.deliver_replies();
    for (auto& each : env.batch_mates)
        static_cast<void>(each.get(env.io()));
    if (env.repair)
        env.repair();
    env.settle();
    env.check_nothing_left();
    env.check_usable();
    env.check_nothing_hangs();
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_cuts)

BOOST_AUTO_TEST_CASE(operation_with_lost_data_reports_its_outcome_and_is_settled)
{
    redis_server server;
    for (const auto& what : cut_operations()) {
        BOOST_TEST_CONTEXT(what.name)
        {
            run_cut(server, what, form::known, std::nullopt);
        }
        // Earlier operations have sent the scripts, so the server knows them.
        for (const auto sent : {form::known, form::not_known, form::whole}) {
            if (sent != form::known && what.cut != cut_operation::kind::script)
                continue;
            for (const auto lost : {loss::request, loss::reply}) {
                BOOST_TEST_CONTEXT(what.name << ", script " << sent << ", loses " << lost)
                {
                    run_cut(server, what, sent, lost);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(late_reply_is_ignored)
{
    // Each operation takes as long as the operation timeout, so only these operations are tested.
    constexpr std::array selected{"create", "a second attempt", "create shared", "hand over", "release", "extend",
        "list, its pages", "plain create", "the greeting"};
    redis_server server;
    for (const auto& what : cut_operations()) {
        if (std::ranges::find(selected, std::string_view(what.name)) == selected.end())
            continue;
        BOOST_TEST_CONTEXT(what.name)
        {
            run_cut(server, what, form::known, std::nullopt);
            run_cut(server, what, form::known, loss::delayed_reply);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cut_in_the_middle_of_settling_is_settled)
{
    redis_server server;
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("loses " << lost)
        {
            fixture env(server, {.operation_timeout = 20s});
            env.open_connection();
            const auto claim = env.ours(driver::exclusive("k", 60s));
            env.between.cut_at("SET", loss::reply);
            BOOST_TEST((env.create(claim).get(env.io()).failed->code == errc::outcome_unknown));
            BOOST_TEST(env.has(lock_name));
            env.between.cut_at("KILL", lost);
            BOOST_TEST((env.test_driver().abandon(claim).status == release_status::released));
            BOOST_TEST(env.between.cuts() == 2);
            BOOST_TEST(!env.has(lock_name));
            env.settle();
            env.check_nothing_left();
            env.check_usable();
            env.check_nothing_hangs();
        }
    }
}

BOOST_AUTO_TEST_CASE(grant_without_fence_is_released_despite_lost_data)
{
    redis_server server;
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("loses " << lost)
        {
            fixture env(server, {.operation_timeout = 20s});
            env.open_connection();
            const auto claim = env.ours(driver::exclusive("k", 60s));
            server({"SET", fence_name, "no number"});
            env.between.cut_at("EVAL", lost);
            BOOST_TEST((env.create(claim).get(env.io()).failed->code == errc::outcome_unknown));
            BOOST_TEST(env.between.cuts() == 1);
            BOOST_TEST(env.has(lock_name) == (lost == loss::request));
            server({"DEL", fence_name});
            env.settle();
            env.check_nothing_left();
            env.check_usable();
            env.check_nothing_hangs();
        }
    }
}

/// A claim waits on "k", and the holder releases the lock only after the cut. Only a message, or a check at the right
/// moment, ends the wait.
void wait_through_cut(redis_server& server, const char* word, loss lost, const std::function<void(fixture&)>& before)
{
    fixture env(server, {.operation_timeout = 20s});
    env.open_connection();
    const auto holder = env.their_grant(driver::exclusive("k", 60s));
    const auto claim = env.ours(driver::exclusive("k", 60s));
    before(env);
    env.between.cut_at(word, lost);
    auto waiting = start(env.io(), acquire(env.test_driver().shared_backend(), claim));
    run_until(env.io(), [&] { return env.between.cuts() == 1; });
    BOOST_TEST(!waiting.done());
    env.direct->release_held(holder);
    BOOST_TEST(waiting.get(env.io()) > 0u);
    env.test_driver().check_held(claim);
    env.settle();
    env.check_nothing_left();
    env.check_usable();
    env.check_nothing_hangs();
}

BOOST_AUTO_TEST_CASE(waiter_is_woken_despite_lost_subscription_data)
{
    redis_server server;
    for (const auto* const word : {"HELLO", "SUBSCRIBE"}) {
        for (const auto lost : {loss::request, loss::reply}) {
            BOOST_TEST_CONTEXT(word << ", loses " << lost)
            {
                wait_through_cut(server, word, lost, [](fixture&) {});
            }
        }
    }
    // Another subscription, on a connection that already has some.
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("a second subscription, loses " << lost)
        {
            wait_through_cut(server, "SUBSCRIBE", lost, [](fixture& env) {
                env.their_grant(driver::exclusive("other", 60s));
                const auto waiter = env.ours(driver::exclusive("other", 60s));
                env.test_driver().check_refused(waiter);
                static_cast<void>(start(env.io(), env.backend().wait(waiter, lease_clock::time_point::max())));
                run_until(env.io(),
                    [&] { return env.server({"PUBSUB", "NUMSUB", "{colock}:other"}) == "{colock}:other\n1\n"; });
            });
        }
    }
}

BOOST_AUTO_TEST_CASE(a_cut_in_the_middle_of_unsubscribing_disturbs_no_other_waiter)
{
    redis_server server;
    for (const auto lost : {loss::request, loss::reply}) {
        BOOST_TEST_CONTEXT("loses " << lost)
        {
            fixture env(server, {.operation_timeout = 20s});
            const auto first = env.their_grant(driver::exclusive("k", 60s));
            const auto second = env.their_grant(driver::exclusive("other", 60s));
            const auto claim = env.ours(driver::exclusive("k", 60s));
            const auto other = env.ours(driver::exclusive("other", 60s));
            auto waiting = start(env.io(), acquire(env.test_driver().shared_backend(), claim));
            auto longer = start(env.io(), acquire(env.test_driver().shared_backend(), other));
            run_until(env.io(), [&] {
                return server({"PUBSUB", "NUMSUB", lock_name, "{colock}:other"}) ==
                       "{colock}:k\n1\n{colock}:other\n1\n";
            });
            env.between.cut_at("UNSUBSCRIBE", lost);
            env.direct->release_held(first);
            waiting.get(env.io());
            run_until(env.io(), [&] { return env.between.cuts() == 1; });
            BOOST_TEST(!longer.done());
            env.direct->release_held(second);
            longer.get(env.io());
            env.settle();
            env.check_nothing_left();
            env.check_nothing_hangs();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
