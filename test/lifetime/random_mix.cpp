// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/random_mix.hpp"

#include <algorithm>

using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t mixes = 100;

/// Much longer than a whole mix takes, and much shorter than the time until a waiter that was not woken checks again.
constexpr auto deadlock_timeout = 10min;

/// One task may take dozens of steps. With longer steps, a few such tasks would last until the watchdog fires.
constexpr colock::lease_clock::duration max_step = 100ms;

/// Advances the clock in ever longer steps while there is no progress.
void run(random_mix& mix)
{
    const auto deadline = colock::lease_clock::now() + deadlock_timeout;
    colock::lease_clock::duration step = 50us;
    try {
        for (std::size_t completed = 0; !mix.ended() && colock::lease_clock::now() < deadline;) {
            jump(mix.io(), step);
            step = mix.completed_operations() == completed ? std::min(2 * step, max_step) : 50us;
            completed = mix.completed_operations();
        }
    } catch (const stuck& busy) {
        BOOST_TEST_INFO(busy.what());
    }
    BOOST_TEST_REQUIRE(mix.ended(), mix.describe());
}

} // namespace

BOOST_AUTO_TEST_SUITE(random_mixes)

BOOST_AUTO_TEST_CASE(random_operations_complete)
{
    const auto first = random_mix::first_seed();
    for (std::uint32_t n = 0; n < mixes; ++n) {
        const virtual_clock clock;
        random_mix mix(first + n, 1);
        BOOST_TEST_CONTEXT("in the mix COLOCK_SEED=" << first + n)
        {
            run(mix);
            mix.check();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
