// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <chrono>

namespace colock::testing {

using namespace std::chrono_literals;

/// The end of a lease that began at `from`, as its holder counts it: less 1 % and 2 ms.
[[nodiscard]] inline lease_clock::time_point end_of(std::chrono::milliseconds ttl, lease_clock::time_point from)
{
    return from + ttl - ttl / 100 - 2ms;
}

/// Compares with a tolerance, because real time passes in addition to virtual time.
[[nodiscard]] inline bool about(lease_clock::time_point time, lease_clock::time_point expected)
{
    return time >= expected && time < expected + 900ms;
}

/// Checks whether a grant of 30 s is kept if its answer arrives after `late`.
inline void check_late_grant(virtual_fixture& env, lease_clock::duration late, bool is_kept)
{
    env.script->next(operation::create, step::pass().after([&env, late] { env.clock.skip(late); }));
    auto acquiring = env.start(env.locker->acquire("k", {.ttl = 30s, .retry = retry_policy::never()}));
    env.ready();
    BOOST_TEST_REQUIRE(acquiring.done());
    if (is_kept)
        BOOST_TEST(acquiring.get(env.io()).held());
    else
        COLOCK_THROWS(create_error, errc::unavailable, acquiring.get(env.io()));
    env.wind_down_and_check();
}

} // namespace colock::testing
