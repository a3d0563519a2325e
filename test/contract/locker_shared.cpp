// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Shared locks and semaphores.
#include "locker_verbs.hpp"

#include <string>

namespace colock::contract {

COLOCK_CONTRACT_CASE(locker, shared_locks_share, &capabilities::shared)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const acquire_options shared{.mode = lock_mode::shared};
    auto first = run_coro(on.io(), mine.acquire("k", shared)), second = run_coro(on.io(), other.acquire("k", shared));
    BOOST_TEST(first.mode() == lock_mode::shared);
    BOOST_TEST(!run_coro(on.io(), mine.try_acquire("k")));
    auto writer = testing::start(on.io(), mine.acquire("k"));
    on.pass_time(1ms);
    run_coro(on.io(), first.release(on_failure::raise));
    on.pass_time(1ms);
    BOOST_TEST(!writer.done());
    run_coro(on.io(), second.release(on_failure::raise));
    auto exclusive = writer.get(on.io());
    BOOST_TEST(!run_coro(on.io(), other.try_acquire("k", shared)));
    run_coro(on.io(), exclusive.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, semaphore_limits_its_holders, &capabilities::semaphore)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const acquire_options two{.mode = lock_mode::shared, .max_holders = 2};
    auto first = run_coro(on.io(), mine.acquire("k", two)), second = run_coro(on.io(), other.acquire("k", two));
    BOOST_TEST(!run_coro(on.io(), mine.try_acquire("k", two)));
    auto waiting = testing::start(on.io(), other.acquire("k", two));
    on.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    run_coro(on.io(), first.release(on_failure::raise));
    auto third = waiting.get(on.io());
    run_coro(on.io(), second.release(on_failure::raise));
    run_coro(on.io(), third.release(on_failure::raise));
}

} // namespace colock::contract
