// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Shared locks and semaphores.
#include "locker_helpers.hpp"

#include <string>

namespace colock::contract {

COLOCK_CONTRACT_CASE(locker, shared_locks_share, &capabilities::shared)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const acquire_options shared{.mode = lock_mode::shared};
    auto first = run_coro(env.io(), mine.acquire("k", shared)), second = run_coro(env.io(), other.acquire("k", shared));
    BOOST_TEST(first.mode() == lock_mode::shared);
    BOOST_TEST(!run_coro(env.io(), mine.try_acquire("k")));
    auto writer = testing::start(env.io(), mine.acquire("k"));
    env.pass_time(1ms);
    run_coro(env.io(), first.release(on_failure::raise));
    env.pass_time(1ms);
    BOOST_TEST(!writer.done());
    run_coro(env.io(), second.release(on_failure::raise));
    auto exclusive = writer.get(env.io());
    BOOST_TEST(!run_coro(env.io(), other.try_acquire("k", shared)));
    run_coro(env.io(), exclusive.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, semaphore_limits_its_holders, &capabilities::semaphore)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const acquire_options two{.mode = lock_mode::shared, .max_holders = 2};
    auto first = run_coro(env.io(), mine.acquire("k", two)), second = run_coro(env.io(), other.acquire("k", two));
    BOOST_TEST(!run_coro(env.io(), mine.try_acquire("k", two)));
    auto waiting = testing::start(env.io(), other.acquire("k", two));
    env.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    run_coro(env.io(), first.release(on_failure::raise));
    auto third = waiting.get(env.io());
    run_coro(env.io(), second.release(on_failure::raise));
    run_coro(env.io(), third.release(on_failure::raise));
}

} // namespace colock::contract
