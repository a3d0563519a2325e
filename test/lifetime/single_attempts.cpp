// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

const acquire_options shared_without_ttl{.ttl = 0ms, .mode = lock_mode::shared};

} // namespace

BOOST_AUTO_TEST_SUITE(single_attempts)

BOOST_AUTO_TEST_CASE(shared_try_acquire_runs_in_parallel_with_a_shared_acquire)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create, step::hold());
    auto first = env.start(env.locker->acquire("k", shared_without_ttl));
    env.ready();
    auto second = env.run(env.locker->try_acquire("k", shared_without_ttl));
    BOOST_TEST(second.has_value());
    env.script->deliver();
    auto held = first.get(env.io());
    BOOST_TEST(held.held());
    held = {};
    second.reset();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(shared_try_acquire_does_not_overtake_waiters_or_writers)
{
    virtual_fixture env(backend_kind::scripted);
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", {.ttl = 0ms}));
    auto waiting = env.start(env.locker->acquire("k", shared_without_ttl));
    env.ready();
    BOOST_TEST(!env.run(env.locker->try_acquire("k", shared_without_ttl)).has_value());
    BOOST_TEST(env.script->count(operation::create) == 1U);
    env.script->next(operation::create, step::hold());
    auto writing = env.start(env.locker->acquire("w"));
    env.ready();
    BOOST_TEST(!env.run(env.locker->try_acquire("w", shared_without_ttl)).has_value());
    env.script->deliver();
    env.ready();
    held = {};
    env.ready();
    static_cast<void>(waiting.get(env.io()));
    static_cast<void>(writing.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
