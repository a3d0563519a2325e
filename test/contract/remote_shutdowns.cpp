// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace colock::contract {

// Tests of the shutdown of a locker and of a context, while the server can be reached and while it cannot.

namespace {

/// Two lockers of two processes. One holds a lock, and both have a waiter.
struct waiting_pair
{
    explicit waiting_pair(remote_subject& subject)
        : on(subject), ours(on.make_linked_locker()), theirs(on.make_linked_locker())
    {
        held = on.run(ours->acquire("k", {.ttl = on.short_ttl() * 3}));
        far.emplace(on.start(theirs->acquire("k")));
        on.until([&] { return theirs->stats().waiting == 1; });
        near.emplace(on.start(ours->acquire("k")));
        on.until([&] { return ours->stats().waiting == 1; });
    }

    /// Shuts both down, and checks that they end in time.
    shutdown_report shut_down(std::chrono::milliseconds deadline)
    {
        const auto begin = lease_clock::now();
        const auto theirs_left = on.run(theirs->shutdown(deadline));
        auto ours_left = on.run(ours->shutdown(deadline));
        BOOST_TEST((lease_clock::now() - begin < deadline * 2 + on.short_ttl() * 4));
        BOOST_CHECK_THROW(static_cast<void>(on.get(std::move(*far))), create_error);
        BOOST_CHECK_THROW(static_cast<void>(on.get(std::move(*near))), create_error);
        BOOST_TEST(!held.held());
        return ours_left;
    }

    remote_subject& on;
    std::optional<locker> ours;
    std::optional<locker> theirs;
    lock held;
    std::optional<running<lock>> far;
    std::optional<running<lock>> near;
};

} // namespace

COLOCK_REMOTE_CASE(a_shutdown_leaves_nothing_to_wait_for)
{
    waiting_pair pair(on);
    BOOST_TEST(pair.shut_down(on.long_timeout()).clean());
    // Nothing is left, not even a connection or a channel that another caller might use.
    BOOST_TEST(on.out_of_work());
    on.check_stored(0);
}

COLOCK_REMOTE_CASE(shutdown_with_an_unreachable_server_ends_within_its_deadline_and_reports)
{
    for (const auto& fault : all_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            waiting_pair pair(on);
            fault.set(on.link(), true);
            const auto report = pair.shut_down(on.short_ttl() / 5);
            BOOST_TEST(!report.clean());
            BOOST_TEST(std::ranges::count(report.unsettled, "k") > 0);
            on.until([&] { return on.out_of_work(); });
            fault.set(on.link(), false);
            // The lock would also end by itself, but later.
            if (on.able().list) {
                on.direct_driver().break_key("k");
                on.run(on.direct_driver().backend().close(on.long_timeout()));
            }
            on.until([&] { return on.link().stored().empty(); });
        }
    }
}

COLOCK_REMOTE_CASE(locker_made_during_a_shutdown_ends_the_close)
{
    const auto timeout = on.short_ttl() / 5;
    const locker first(on.shared_backend(), {.operation_timeout = timeout});
    on.run(on.run(first.acquire("k")).release(on_failure::raise));
    // A close that waits for this request waits for at most the operation timeout of the locker.
    on.link().silence(true);
    const auto claim = on.exclusive("k");
    auto created = on.start(on.backend().create(testing::sent_now(claim)));
    auto ends = on.start(first.shutdown(on.long_timeout()));
    on.pass_time(timeout / 10);
    const locker second(on.shared_backend());
    on.pass_time(timeout * 2);
    BOOST_TEST(!created.done());
    on.link().silence(false);
    // Some links lose a request during a silence.
    if (on.get(std::move(created)).status == create_status::failed)
        claim->mark_in_doubt();
    BOOST_TEST(on.get(std::move(ends)).clean());
    on.settle(claim);
    on.run(on.run(second.acquire("k")).release(on_failure::raise));
}

COLOCK_REMOTE_CASE(failed_acquire_leaves_no_work_in_the_context)
{
    for (const auto& fault : {refusal, death}) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            fault.set(on.link(), true);
            // An attempt may be in flight for much longer than its caller waits for it.
            const auto locks = on.make_linked_locker();
            const auto failed =
                on.failure_of(locks.acquire("k", {.retry = retry_policy::forever().total_time(on.short_ttl() / 5)}));
            BOOST_TEST((failed.code() == errc::unavailable || failed.code() == errc::outcome_unknown), failed.what());
            const auto begin = lease_clock::now();
            on.until([&] { return on.out_of_work(); });
            BOOST_TEST((lease_clock::now() - begin < on.long_timeout() / 2));
            BOOST_TEST(locks.stats().settling == 0U);
            fault.set(on.link(), false);
            on.run(on.run(locks.acquire("k")).release(on_failure::raise));
        }
    }
}

COLOCK_REMOTE_CASE(adapter_closed_while_its_server_was_unreachable_connects_again)
{
    for (const auto& fault : all_faults) {
        BOOST_TEST_CONTEXT(fault.name)
        {
            const auto some = on.make_short_timeout_driver();
            fault.set(on.link(), true);
            std::vector<plain_claim_ptr> claims;
            const auto begin = [&] {
                const auto& claim = claims.emplace_back(on.exclusive("k" + std::to_string(claims.size())));
                return on.start(some.backend().create(testing::sent_now(claim)));
            };
            auto waiting = begin();
            on.pass_time(on.short_ttl() / 20);
            on.run(some.backend().close(1ms));
            fault.set(on.link(), false);
            // In each round an operation waits, so that the adapter has a reason to connect.
            bool granted = false;
            for (int i = 0; i < 20 && !granted; ++i) {
                on.pass_time(on.short_ttl() / 3);
                auto next = begin();
                granted = on.get(std::exchange(waiting, std::move(next))).status == create_status::granted;
            }
            BOOST_TEST(granted);
            static_cast<void>(on.get(std::move(waiting)));
            for (const auto& each : claims)
                on.until([&] { return on.run(some.backend().abandon(each)).status != release_status::failed; });
        }
    }
}

} // namespace colock::contract
