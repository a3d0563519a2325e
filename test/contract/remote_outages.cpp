// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

// Tests of a server that cannot be reached, or does not answer: what is reported, to which caller, and when.

namespace {

/// Returns the errors of one operation of each kind; those of the reads of all claims are the last. All run at the same
/// time, because each may last until its timeout.
std::vector<failure_ptr> failures_of(
    remote_fixture& env, const driver& by, const plain_claim_ptr& held, const plain_claim_ptr& wanted)
{
    std::vector<running<failure_ptr>> under_way;
    const auto begin = [&]<class Outcome>(asio::awaitable<Outcome> operation) {
        under_way.push_back(env.start([](auto started) -> asio::awaitable<failure_ptr> {
            const auto outcome = co_await std::move(started);
            co_return outcome.error;
        }(std::move(operation))));
    };
    auto& backend = by.backend();
    begin(backend.create(testing::sent_now(wanted)));
    begin(backend.is_valid(held));
    begin(backend.extend(testing::sent_now(held), 1h));
    if (env.capabilities().list) {
        begin(backend.listing({.filter = {.key = "k"}}));
        begin(backend.listing({}));
    }
    std::vector<failure_ptr> failures;
    for (auto& each : under_way)
        failures.push_back(env.get(std::move(each)));
    return failures;
}

} // namespace

// Cases that use the adapter.

COLOCK_REMOTE_CASE(unsent_request_is_unavailable)
{
    for (const auto& fault : {refusal, death}) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto linked_driver = env.make_short_timeout_driver();
            fault.set(env.link(), true);
            for (const auto& failed : failures_of(env, linked_driver, env.exclusive("k"), env.exclusive("k"))) {
                BOOST_TEST_REQUIRE(failed);
                BOOST_TEST(failed->code == errc::unavailable);
            }
            fault.set(env.link(), false);
        }
    }
}

COLOCK_REMOTE_CASE(unanswered_request_ends_in_time_with_an_unknown_outcome)
{
    const auto linked_driver = env.make_short_timeout_driver();
    const auto held = env.exclusive("held"), wanted = env.exclusive("k");
    env.until([&] {
        return env.run(linked_driver.backend().create(testing::sent_now(held))).status == create_status::granted;
    });
    env.link().silence(true);
    const auto begin = lease_clock::now();
    constexpr std::size_t operations_of_claims = 3;
    const auto failures = failures_of(env, linked_driver, held, wanted);
    for (std::size_t i = 0; i < failures.size(); ++i) {
        BOOST_TEST_REQUIRE(failures[i]);
        // A read changes nothing, so an adapter may report that nothing was changed.
        BOOST_TEST((failures[i]->code == errc::outcome_unknown ||
                    (i >= operations_of_claims && failures[i]->code == errc::unavailable)));
    }
    BOOST_TEST((lease_clock::now() - begin < env.short_timeout() * 8));
    env.link().silence(false);
    wanted->mark_in_doubt();
    // The claims can still be used.
    env.until([&] { return env.run(linked_driver.backend().is_valid(held)).valid; });
    for (const auto& each : {held, wanted})
        env.until([&] {
            return env.run(linked_driver.backend().release(each, release_guarantee::settled)).status !=
                   release_status::failed;
        });
    env.check_stored(0);
}

// Cases that use a locker.

COLOCK_REMOTE_CASE(unreachable_server_is_never_reported_as_busy)
{
    env.link().refuse(true);
    const auto recorder = std::make_shared<event_recorder>();
    const auto locks = env.make_short_timeout_locker({.observer = recorder});
    // With all defaults, the acquire waits forever, but reports the failure.
    auto first = env.start(locks.acquire("k"));
    env.until([&] { return recorder->count("unreachable") > 0; });
    BOOST_TEST(recorder->count("waiting") == 0U);
    for (const auto& policy : {within(env.short_ttl() / 3), retry_policy::fixed(env.short_ttl() / 15).times(2)}) {
        // The acquire of "k" waits behind `first`, and sends no request.
        for (const char* const key : {"other", "k"}) {
            const auto failed = env.failure_of(locks.acquire(key, {.retry = policy}));
            BOOST_TEST((failed.code() == errc::unavailable), failed.what());
            BOOST_TEST(std::ranges::count(recorder->causes, failed.cause()) == 1, failed.what());
        }
    }
    BOOST_TEST((env.failure_of(locks.try_acquire("k")).code() == errc::unavailable));
    const auto limit = env.short_ttl() / 3;
    for (const char* const key : {"other", "k"}) {
        BOOST_TEST((env.failure_of(locks.try_acquire(key, limit)).code() == errc::unavailable));
        BOOST_TEST((env.failure_of(locks.try_acquire_all({key}, limit)).code() == errc::unavailable));
        BOOST_TEST((env.failure_of(locks.try_with_lock(key, limit, [] {})).code() == errc::unavailable));
    }
    BOOST_TEST(!first.done());
    env.run(locks.shutdown(env.long_timeout()));
    BOOST_CHECK_THROW(static_cast<void>(env.get(std::move(first))), create_error);
}

COLOCK_REMOTE_CASE(server_that_never_completes_a_connection_is_unavailable)
{
    env.link().silence(true);
    const auto locks = env.make_linked_locker();
    const auto policy = within(env.short_ttl() / 5);
    auto first = env.start(locks.acquire("k", {.retry = policy}));
    auto next = env.start(locks.acquire("k", {.retry = policy}));
    auto shared = env.start(locks.acquire("other", {.retry = policy}));
    for (auto* each : {&first, &next, &shared}) {
        const auto failed = env.failure_of(std::move(*each));
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
    }
    env.link().silence(false);
    env.until([&] { return locks.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(loss_of_contact_puts_every_held_lock_at_risk)
{
    const auto recorder = std::make_shared<event_recorder>();
    const auto locks = env.make_linked_locker({.retry = remote_fixture::quick_retry().retry, .observer = recorder});
    std::vector<lock> held;
    for (const char* const key : {"a", "b"})
        held.push_back(env.run(locks.acquire(key, {.ttl = 1h})));
    recorder->events.clear();
    env.link().refuse(true);
    // A lock with manual renewal is at risk only because of the lost contact.
    env.until([&] { return recorder->count("at_risk") == 2; });
    BOOST_TEST(recorder->events.front() == "suspended");
    env.link().refuse(false);
    for (auto& each : held)
        env.until([&] { return env.run(each.is_locked()); });
    BOOST_TEST(recorder->count("at_risk") == 2U);
    held.clear();
    env.until([&] { return locks.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(failed_acquire_is_tried_again_when_contact_is_regained)
{
    for (const bool was_reached : {false, true}) {
        BOOST_TEST_CONTEXT("reached before: " << was_reached)
        {
            const auto recorder = std::make_shared<event_recorder>();
            const auto locks = env.make_short_timeout_locker({.retry = retry_policy::fixed(1h), .observer = recorder});
            if (was_reached)
                env.run(env.run(locks.acquire("other")).release());
            env.link().refuse(true);
            auto waiting = env.start(locks.acquire("k"));
            // Runs until the request has failed, and the acquire waits for an hour.
            env.until([&] { return locks.stats().attempts == (was_reached ? 2U : 1U); });
            env.pass_time(env.short_ttl() / 5);
            env.link().refuse(false);
            // Another caller makes the adapter connect again.
            env.run(locks.acquire("other", {.retry = remote_fixture::quick_retry().retry})) = {};
            env.get(std::move(waiting)) = {};
            env.until([&] { return locks.stats().settling == 0; });
        }
    }
}

COLOCK_REMOTE_CASE(query_to_an_unreachable_server_fails)
{
    const auto recorder = std::make_shared<event_recorder>();
    const auto locks = env.make_short_timeout_locker({.observer = recorder});
    auto held = env.run(locks.acquire("k"));
    env.link().refuse(true);
    env.until([&] { return recorder->count("suspended") > 0; });
    // The operations run at the same time. If they ran one after the other, the session and the lock would end.
    auto checking = env.start(held.is_locked());
    auto extended = env.start([](lock& of) -> asio::awaitable<int> {
        co_await of.extend(20min);
        co_return 1;
    }(held));
    std::vector<error> failures;
    if (env.capabilities().list) {
        auto taken = env.start(locks.is_locked("k"));
        auto listed = env.start(locks.list());
        auto broken = env.start(locks.break_lock("k"));
        auto purged = env.start(locks.purge());
        failures.push_back(env.failure_of(std::move(taken)));
        failures.push_back(env.failure_of(std::move(listed)));
        failures.push_back(env.failure_of(std::move(broken)));
        failures.push_back(env.failure_of(std::move(purged)));
    }
    failures.push_back(env.failure_of(std::move(checking)));
    failures.push_back(env.failure_of(std::move(extended)));
    for (const auto& failed : failures) {
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        BOOST_TEST(failed.cause().failed(), failed.what());
    }
    // None of the errors reports that the lock is lost.
    BOOST_TEST(held.held());
    env.link().refuse(false);
    env.run(held.release());
    env.until([&] { return locks.stats().settling == 0; });
}

COLOCK_REMOTE_CASE(unreachable_server_is_reported_once_per_cause)
{
    const auto recorder = std::make_shared<event_recorder>();
    const auto locks = env.make_linked_locker({.observer = recorder});
    std::vector<std::string> expected{"unreachable", "ready"};
    for (const char* const key : {"first", "second"}) {
        BOOST_TEST_CONTEXT(key)
        {
            env.link().serve(false);
            auto waiting = env.start(locks.acquire(key));
            env.until([&] { return !recorder->causes.empty(); });
            // Meanwhile the adapter tries again to connect.
            env.pass_time(env.short_ttl());
            env.link().serve(true);
            env.get(std::move(waiting)) = {};
            env.until([&] { return recorder->events.back() == expected.back(); });
            for (const auto& each : recorder->causes)
                BOOST_TEST(std::ranges::count(recorder->causes, each) == 1, each.message());
            const auto repeated = std::ranges::unique(recorder->events);
            recorder->events.erase(repeated.begin(), repeated.end());
            BOOST_TEST(recorder->events == expected, boost::test_tools::per_element());
            recorder->events.clear();
            recorder->causes.clear();
            expected = {"suspended", "unreachable", "reconnected"};
        }
    }
    env.until([&] { return locks.stats().settling == 0; });
}

// An adapter that reports a connection twice, or fails to report a loss, does not pass.
COLOCK_REMOTE_CASE(each_loss_of_contact_is_reported_once_and_followed_by_its_end)
{
    const auto recorder = std::make_shared<event_recorder>();
    const auto backend = env.make_short_timeout_driver().shared_backend();
    backend->attach(recorder);
    const auto grant = [&] {
        const auto claim = env.exclusive("k");
        env.until([&] { return env.run(backend->create(testing::sent_now(claim))).status == create_status::granted; });
        env.until([&] {
            return env.run(backend->release(claim, release_guarantee::settled)).status != release_status::failed;
        });
        BOOST_TEST(!backend->connection_failure());
    };
    grant();
    for (std::size_t losses = 1; losses <= 2; ++losses) {
        env.link().refuse(true);
        // An adapter may notice the loss of an unused connection only when it is used.
        env.until([&] {
            BOOST_TEST((env.run(backend->create(env.exclusive("k"))).status == create_status::failed));
            return recorder->count("suspended") == losses;
        });
        BOOST_TEST(backend->connection_failure());
        env.link().refuse(false);
        grant();
        BOOST_TEST(recorder->count("suspended") == losses);
        BOOST_TEST(recorder->count("reconnected") == losses);
        BOOST_TEST(backend->reconnects() == losses);
    }
    BOOST_TEST(recorder->count("ready") == 1U);
    BOOST_TEST(recorder->events.back() == "reconnected");
}

COLOCK_REMOTE_CASE(bad_input_is_refused_without_asking_the_server)
{
    env.link().refuse(true);
    const auto recorder = std::make_shared<event_recorder>();
    const auto locks = env.make_linked_locker({.observer = recorder});
    const auto begin = lease_clock::now();
    const auto code_for = [&](std::string key, acquire_options options) {
        return env.failure_of(locks.acquire(std::move(key), std::move(options))).code();
    };
    BOOST_TEST((code_for("", {}) == errc::invalid_key));
    BOOST_TEST((code_for("k", {.ttl = 1ms}) == errc::invalid_ttl));
    BOOST_TEST((code_for("k", {.max_holders = 2}) == errc::invalid_options));
    if (!env.capabilities().shared)
        BOOST_TEST((code_for("k", {.mode = lock_mode::shared}) == errc::unsupported));
    BOOST_TEST((lease_clock::now() - begin < env.long_timeout()));
    env.pass_time(env.short_ttl() / 5);
    // No attempt was made to reach the server.
    BOOST_TEST(recorder->events.empty());
    BOOST_TEST(locks.stats().attempts == 0U);
}

} // namespace colock::contract
