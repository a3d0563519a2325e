// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_helpers.hpp"

#include <string>
#include <vector>

namespace colock::contract {

// Locks that are transferred to another process: detached and adopted.

COLOCK_CONTRACT_CASE(locker, unsupported_move_is_reported)
{
    const auto locker = env.make_locker();
    if (env.capabilities().tickets)
        return;
    auto held = run_coro(env.io(), locker.acquire("k"));
    BOOST_TEST((failure_of<validation_error>(env, held.detach()) == errc::unsupported));
    BOOST_TEST(held.held());
    BOOST_TEST((failure_of<validation_error>(env, locker.adopt("ticket")) == errc::unsupported));
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_lock_moves_to_another_process, &capabilities::tickets)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k", {.ttl = 10min}));
    auto loss = testing::start(env.io(), held.lost());
    const auto ticket = run_coro(env.io(), held.detach());
    BOOST_TEST(!held.held());
    BOOST_TEST((loss.get(env.io()) == lost_reason::released));
    BOOST_TEST(mine.held_locks().empty());
    BOOST_TEST(!run_coro(env.io(), other.try_acquire("k")));

    auto adopted = run_coro(env.io(), other.adopt(ticket));
    BOOST_TEST(adopted.held());
    BOOST_TEST(adopted.key() == "k");
    BOOST_TEST((adopted.ttl() == 10min));
    BOOST_TEST(adopted.mode() == lock_mode::exclusive);
    BOOST_TEST((adopted.fence() > held.fence() || !env.capabilities().fence));
    BOOST_TEST(run_coro(env.io(), adopted.is_locked()));
    BOOST_TEST((adopted.token() != held.token()));

    // Later operations on the old handle have no effect.
    BOOST_TEST(!run_coro(env.io(), held.is_locked()));
    BOOST_TEST((failure_of<extend_error>(env, held.extend(1min)) == errc::not_held));
    BOOST_TEST((failure_of<error>(env, held.detach()) == errc::not_held));
    run_coro(env.io(), held.release(on_failure::raise));
    held = {};
    BOOST_TEST(run_coro(env.io(), adopted.is_locked()));

    run_coro(env.io(), adopted.extend(20min));
    run_coro(env.io(), adopted.release(on_failure::raise));
    BOOST_TEST(!is_taken(env, mine, "k"));
}

COLOCK_CONTRACT_CASE(locker, a_lock_that_moves_stays_in_its_group, &capabilities::tickets, &capabilities::groups)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    std::vector<lock_mode> modes{lock_mode::exclusive};
    if (env.capabilities().shared)
        modes.push_back(lock_mode::shared);
    for (const auto mode : modes) {
        auto group = mine.group("g");
        run_coro(env.io(), group.acquire("k", {.ttl = 1min, .mode = mode}));
        run_coro(env.io(), group.acquire("left", {.ttl = 1min, .mode = mode}));
        BOOST_CHECK_EXCEPTION(static_cast<void>(group.take("another")), validation_error,
            [](const validation_error& refused) { return refused.code() == errc::invalid_options; });
        auto held = group.take("k");
        BOOST_TEST(held.held());
        BOOST_TEST(group.size() == 1U);
        const auto ticket = run_coro(env.io(), held.detach());
        if (env.capabilities().extends_groups) {
            BOOST_TEST(run_coro(env.io(), other.group("g").extend(1h)).size() == 2U);
            for (const auto& status : run_coro(env.io(), mine.list({.group = "g"})))
                BOOST_TEST((*status.remaining > 50min));
        }
        auto adopted = run_coro(env.io(), other.adopt(ticket, {.ttl = 2h}));
        BOOST_TEST(run_coro(env.io(), mine.list({.key = "k", .group = "g"})).size() == 1U);
        if (env.capabilities().extends_groups)
            BOOST_TEST(run_coro(env.io(), group.extend(3h)).size() == 2U);
        const auto reports = run_coro(env.io(), group.release());
        BOOST_TEST_REQUIRE(reports.size() == 2U);
        BOOST_TEST(reports[0].key == "left");
        BOOST_TEST(reports[1].key == "k");
        BOOST_TEST(!run_coro(env.io(), adopted.is_locked()));
        BOOST_TEST(!is_taken(env, mine, "k"));
        BOOST_TEST(run_coro(env.io(), other.group("g").release()).empty());
    }
}

COLOCK_CONTRACT_CASE(locker, one_of_several_concurrent_adoptions_succeeds, &capabilities::tickets)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    const auto ticket = run_coro(env.io(), held.detach());
    std::vector<testing::running<lock>> adopting;
    for (const auto* by : {&mine, &other, &mine, &other})
        adopting.push_back(testing::start(env.io(), by->adopt(ticket)));
    std::vector<lock> adopted;
    for (auto& each : adopting) {
        try {
            adopted.push_back(each.get(env.io()));
        } catch (const create_error& refused) {
            BOOST_TEST((refused.code() == errc::not_held), refused.what());
        }
    }
    BOOST_TEST_REQUIRE(adopted.size() == 1U);
    run_coro(env.io(), adopted.front().release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_detached_lock_outlives_its_locker, &capabilities::tickets)
{
    const auto mine = env.make_locker();
    std::string ticket;
    {
        const auto other = env.make_other_locker();
        auto held = run_coro(env.io(), other.acquire("k"));
        ticket = run_coro(env.io(), held.detach());
        BOOST_TEST(run_coro(env.io(), other.shutdown()).clean());
    }
    env.pass_time(1ms);
    BOOST_TEST(!run_coro(env.io(), mine.try_acquire("k")));
    auto adopted = run_coro(env.io(), mine.adopt(ticket));
    run_coro(env.io(), adopted.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, waiters_get_the_lock_after_its_adopter, &capabilities::tickets)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k"));
    auto here = testing::start(env.io(), mine.acquire("k")), there = testing::start(env.io(), other.acquire("k"));
    env.pass_time(1ms);
    const auto ticket = run_coro(env.io(), held.detach());
    env.pass_time(1ms);
    auto adopted = run_coro(env.io(), other.adopt(ticket));
    env.pass_time(1ms);
    BOOST_TEST(!here.done());
    BOOST_TEST(!there.done());
    run_coro(env.io(), adopted.release(on_failure::raise));
    testing::run_until(env.io(), [&] { return here.done() || there.done(); });
    for (auto* each : {&here, &there}) {
        if (!each->done())
            continue;
        auto first = each->get(env.io());
        run_coro(env.io(), first.release(on_failure::raise));
        auto second = (each == &here ? there : here).get(env.io());
        run_coro(env.io(), second.release(on_failure::raise));
        break;
    }
}

COLOCK_CONTRACT_CASE(locker, lock_returns_to_a_locker_with_waiters, &capabilities::tickets)
{
    const auto locker = env.make_locker();
    auto held = run_coro(env.io(), locker.acquire("k"));
    auto waiting = testing::start(env.io(), locker.acquire("k"));
    env.pass_time(1ms);
    const auto ticket = run_coro(env.io(), held.detach());
    env.pass_time(1ms);
    auto adopted = run_coro(env.io(), locker.adopt(ticket));
    env.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(!run_coro(env.io(), locker.try_acquire("k")));
    run_coro(env.io(), adopted.release(on_failure::raise));
    auto next = waiting.get(env.io());
    run_coro(env.io(), next.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, adopted_lock_has_the_given_options, &capabilities::tickets)
{
    const auto locker = env.make_locker();
    auto held = run_coro(env.io(), locker.acquire("k", {.ttl = 10min, .owner = "first", .comment = "old"}));
    const auto ticket = run_coro(env.io(), held.detach());
    // A different mode and an invalid policy are ignored.
    auto adopted = run_coro(env.io(), locker.adopt(ticket, {.ttl = 20min,
                                                               .mode = lock_mode::shared,
                                                               .max_holders = 7,
                                                               .retry = retry_policy::fixed(-1s),
                                                               .owner = "second",
                                                               .comment = "new"}));
    BOOST_TEST((adopted.ttl() == 20min));
    BOOST_TEST(adopted.mode() == lock_mode::exclusive);
    if (env.capabilities().list) {
        const auto listed = run_coro(env.io(), locker.list());
        BOOST_TEST_REQUIRE(listed.size() == 1U);
        BOOST_TEST((listed.front().remaining > 15min));
        BOOST_TEST(listed.front().mode == lock_mode::exclusive);
        BOOST_TEST((listed.front().owner == "second" || listed.front().owner.empty()));
    }
    run_coro(env.io(), adopted.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, an_adopted_lock_is_renewed, &capabilities::tickets)
{
    const auto locker = env.make_locker();
    auto held = run_coro(env.io(), locker.acquire("k", {.ttl = env.short_ttl()}));
    const auto ticket = run_coro(env.io(), held.detach());
    auto adopted = run_coro(env.io(), locker.adopt(ticket, {.renewal = renewal::automatic}));
    pass_slowly(env, env.short_ttl() * 2);
    BOOST_TEST(adopted.held());
    BOOST_TEST(run_coro(env.io(), adopted.is_locked()));
    run_coro(env.io(), adopted.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_lock_without_ttl_can_be_adopted, &capabilities::tickets, &capabilities::no_ttl)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("k", {.ttl = 0ms}));
    auto adopted = run_coro(env.io(), other.adopt(run_coro(env.io(), held.detach())));
    BOOST_TEST((adopted.ttl() == 0ms));
    BOOST_TEST((adopted.expires_at() == lease_clock::time_point::max()));
    auto back = run_coro(env.io(), mine.adopt(run_coro(env.io(), adopted.detach()), {.ttl = 10min}));
    BOOST_TEST((back.ttl() == 10min));
    BOOST_TEST((back.expires_at() < lease_clock::now() + 11min));
    run_coro(env.io(), back.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_body_may_detach_its_lock, &capabilities::tickets)
{
    const auto locker = env.make_locker();
    std::string ticket;
    run_coro(env.io(), locker.with_lock("k", {.ttl = 10min}, [&](lock& held) -> asio::awaitable<void> {
        ticket = co_await held.detach();
        BOOST_TEST(!held.held());
    }));
    BOOST_TEST(is_taken(env, locker, "k"));
    auto adopted = run_coro(env.io(), locker.adopt(ticket));
    BOOST_TEST(adopted.held());
    run_coro(env.io(), adopted.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, invalid_ticket_is_refused, &capabilities::tickets)
{
    const auto locker = env.make_locker();
    auto held = run_coro(env.io(), locker.acquire("k"));
    const auto ticket = run_coro(env.io(), held.detach());
    const std::string broken[]{"", "colock1", ticket + 'x', ticket.substr(1), ticket.substr(0, ticket.size() - 1),
        ' ' + ticket, std::string(100'000, 'a')};
    for (const auto& each : broken) {
        try {
            static_cast<void>(run_coro(env.io(), locker.adopt(each)));
            BOOST_ERROR("it was adopted");
        } catch (const validation_error& refused) {
            BOOST_TEST((refused.code() == errc::invalid_options), refused.what());
            if (each.size() > 10) {
                BOOST_TEST((std::string(refused.what()).find(each.substr(each.size() - 10)) == std::string::npos));
            }
        }
    }
    auto adopted = run_coro(env.io(), locker.adopt(ticket));
    run_coro(env.io(), adopted.release(on_failure::raise));
}

} // namespace colock::contract
