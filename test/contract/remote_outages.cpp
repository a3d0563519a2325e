// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

// A server that cannot be reached, or does not answer: what is said of it, to whom, and when.

namespace {

/// The codes of one operation of each kind, all at once: each may last until its time is over.
std::vector<failure_ptr> failures_of(
    remote_subject& on, const driver& by, const plain_claim_ptr& held, const plain_claim_ptr& wanted)
{
    std::vector<running<failure_ptr>> under_way;
    const auto begin = [&]<class Outcome>(asio::awaitable<Outcome> operation) {
        under_way.push_back(on.start([](auto started) -> asio::awaitable<failure_ptr> {
            const auto outcome = co_await std::move(started);
            co_return outcome.error;
        }(std::move(operation))));
    };
    auto& backend = by.backend();
    begin(backend.create(testing::sent_now(wanted)));
    begin(backend.is_valid(held));
    begin(backend.extend(testing::sent_now(held), 1h));
    if (on.able().list) {
        begin(backend.inspect("k"));
        begin(backend.list({}));
    }
    std::vector<failure_ptr> failures;
    for (auto& each : under_way)
        failures.push_back(on.get(std::move(each)));
    return failures;
}

} // namespace

// Through the adapter.

COLOCK_REMOTE_CASE(what_was_not_sent_is_unavailable)
{
    for (const auto& fault : {refusal, death}) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto some = on.hasty();
            fault.set(on.link(), true);
            for (const auto& failed : failures_of(on, some, on.exclusive("k"), on.exclusive("k"))) {
                BOOST_TEST_REQUIRE(failed);
                BOOST_TEST(failed->code == errc::unavailable);
            }
            fault.set(on.link(), false);
        }
    }
}

COLOCK_REMOTE_CASE(what_was_not_answered_ends_in_time_and_is_unknown)
{
    const auto some = on.hasty();
    const auto held = on.exclusive("held"), wanted = on.exclusive("k");
    on.until([&] { return on.run(some.backend().create(testing::sent_now(held))).status == create_status::granted; });
    on.link().silence(true);
    const auto begin = lease_clock::now();
    for (const auto& failed : failures_of(on, some, held, wanted)) {
        BOOST_TEST_REQUIRE(failed);
        BOOST_TEST(failed->code == errc::outcome_unknown);
    }
    BOOST_TEST((lease_clock::now() - begin < on.haste() * 8));
    on.link().silence(false);
    wanted->mark_in_doubt();
    // It is used again.
    on.until([&] { return on.run(some.backend().is_valid(held)).valid; });
    for (const auto& each : {held, wanted})
        on.until([&] { return on.run(some.backend().abandon(each)).status != release_status::failed; });
    on.check_stored(0);
}

// Through a locker.

COLOCK_REMOTE_CASE(down_is_never_reported_as_busy)
{
    on.link().refuse(true);
    const auto told = std::make_shared<ears>();
    const auto locks = on.make_hasty_locker({.observer = told});
    // With all defaults: it waits for ever, but not in silence.
    auto first = on.start(locks.acquire("k"));
    on.until([&] { return told->times("unreachable") > 0; });
    BOOST_TEST(told->times("waiting") == 0U);
    for (const auto& policy :
        {retry_policy::forever().total_time(on.short_ttl() / 3), retry_policy::fixed(on.short_ttl() / 15).times(2)})
    {
        // The second one stands behind the first, without a word to the server.
        for (const char* const key : {"other", "k"}) {
            const auto failed = on.failure_of(locks.acquire(key, {.retry = policy}));
            BOOST_TEST((failed.code() == errc::unavailable), failed.what());
            BOOST_TEST(std::ranges::count(told->causes, failed.cause()) == 1, failed.what());
        }
    }
    BOOST_TEST((on.failure_of(locks.try_acquire("k")).code() == errc::unavailable));
    BOOST_TEST(!first.done());
    on.run(locks.shutdown(on.patience()));
    BOOST_CHECK_THROW(static_cast<void>(on.get(std::move(first))), create_error);
}

COLOCK_REMOTE_CASE(server_that_never_completes_a_connection_is_unavailable)
{
    on.link().silence(true);
    const auto locks = on.make_linked_locker();
    const auto policy = retry_policy::forever().total_time(on.short_ttl() / 5);
    auto first = on.start(locks.acquire("k", {.retry = policy}));
    auto next = on.start(locks.acquire("k", {.retry = policy}));
    auto shared = on.start(locks.acquire("other", {.retry = policy}));
    for (auto* each : {&first, &next, &shared}) {
        const auto failed = on.failure_of(std::move(*each));
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
    }
    on.link().silence(false);
    on.until([&] { return locks.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(loss_of_contact_puts_every_held_lock_at_risk)
{
    const auto told = std::make_shared<ears>();
    const auto locks = on.make_linked_locker({.retry = remote_subject::eager().retry, .observer = told});
    std::vector<lock> held;
    for (const char* const key : {"a", "b"})
        held.push_back(on.run(locks.acquire(key, {.ttl = 1h})));
    told->heard.clear();
    on.link().refuse(true);
    // Nothing else puts a lock at risk whose renewal is manual.
    on.until([&] { return told->times("at_risk") == 2; });
    BOOST_TEST(told->heard.front() == "suspended");
    on.link().refuse(false);
    for (auto& each : held)
        on.until([&] { return on.run(each.is_locked()); });
    BOOST_TEST(told->times("at_risk") == 2U);
    held.clear();
    on.until([&] { return locks.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(failed_acquire_is_tried_again_when_contact_is_regained)
{
    for (const bool was_reached : {false, true}) {
        BOOST_TEST_CONTEXT("reached before: " << was_reached)
        {
            const auto told = std::make_shared<ears>();
            const auto locks = on.make_hasty_locker({.retry = retry_policy::fixed(1h), .observer = told});
            if (was_reached)
                on.run(on.run(locks.acquire("other")).release());
            on.link().refuse(true);
            auto waiting = on.start(locks.acquire("k"));
            // Until its request has failed, and it waits for an hour.
            on.until([&] { return locks.stats().attempts == (was_reached ? 2U : 1U); });
            on.pass_time(on.short_ttl() / 5);
            on.link().refuse(false);
            // Another caller makes the adapter connect again.
            on.run(locks.acquire("other", {.retry = remote_subject::eager().retry})) = {};
            on.get(std::move(waiting)) = {};
            on.until([&] { return locks.stats().settling == 0; });
        }
    }
}

COLOCK_REMOTE_CASE(a_question_to_an_absent_server_is_answered_by_an_error)
{
    const auto told = std::make_shared<ears>();
    const auto locks = on.make_hasty_locker({.observer = told});
    auto held = on.run(locks.acquire("k"));
    on.link().refuse(true);
    on.until([&] { return told->times("suspended") > 0; });
    // At once: a session would end, and the lock with it, if one waited for the other.
    auto stands = on.start(held.is_locked());
    auto extended = on.start([](lock& of) -> asio::awaitable<int> {
        co_await of.extend(20min);
        co_return 1;
    }(held));
    std::vector<error> failures;
    if (on.able().list) {
        auto taken = on.start(locks.is_locked("k"));
        auto listed = on.start(locks.list());
        auto broken = on.start(locks.break_lock("k"));
        auto purged = on.start(locks.purge());
        failures.push_back(on.failure_of(std::move(taken)));
        failures.push_back(on.failure_of(std::move(listed)));
        failures.push_back(on.failure_of(std::move(broken)));
        failures.push_back(on.failure_of(std::move(purged)));
    }
    failures.push_back(on.failure_of(std::move(stands)));
    failures.push_back(on.failure_of(std::move(extended)));
    for (const auto& failed : failures) {
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        BOOST_TEST(failed.cause().failed(), failed.what());
    }
    // None of them says that it is lost.
    BOOST_TEST(held.held());
    on.link().refuse(false);
    on.run(held.release());
    on.until([&] { return locks.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(an_unreachable_server_is_told_once_per_cause)
{
    const auto told = std::make_shared<ears>();
    const auto locks = on.make_linked_locker({.observer = told});
    std::vector<std::string> expected{"unreachable", "ready"};
    for (const char* const key : {"first", "second"}) {
        BOOST_TEST_CONTEXT(key)
        {
            on.link().serve(false);
            auto waiting = on.start(locks.acquire(key));
            on.until([&] { return !told->causes.empty(); });
            // Meanwhile it is tried again.
            on.pass_time(on.short_ttl());
            on.link().serve(true);
            on.get(std::move(waiting)) = {};
            on.until([&] { return told->heard.back() == expected.back(); });
            for (const auto& each : told->causes)
                BOOST_TEST(std::ranges::count(told->causes, each) == 1, each.message());
            const auto repeated = std::ranges::unique(told->heard);
            told->heard.erase(repeated.begin(), repeated.end());
            BOOST_TEST(told->heard == expected, boost::test_tools::per_element());
            told->heard.clear();
            told->causes.clear();
            expected = {"suspended", "unreachable", "reconnected"};
        }
    }
    on.until([&] { return locks.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(bad_input_is_refused_without_asking_the_server)
{
    on.link().refuse(true);
    const auto told = std::make_shared<ears>();
    const auto locks = on.make_linked_locker({.observer = told});
    const auto begin = lease_clock::now();
    const auto code_for = [&](std::string key, acquire_options options) {
        return on.failure_of(locks.acquire(std::move(key), std::move(options))).code();
    };
    BOOST_TEST((code_for("", {}) == errc::invalid_key));
    BOOST_TEST((code_for("k", {.ttl = 1ms}) == errc::invalid_ttl));
    BOOST_TEST((code_for("k", {.max_holders = 2}) == errc::invalid_options));
    if (!on.able().shared)
        BOOST_TEST((code_for("k", {.mode = lock_mode::shared}) == errc::unsupported));
    BOOST_TEST((lease_clock::now() - begin < on.haste()));
    on.pass_time(on.short_ttl() / 5);
    // Nobody has looked for the server.
    BOOST_TEST(told->heard.empty());
    BOOST_TEST(locks.stats().attempts == 0U);
}

} // namespace colock::contract
