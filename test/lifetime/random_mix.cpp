// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/random_mix.hpp"

#include <algorithm>

using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t mixes = 100;

/// Far more than all of a mix takes, and far less than until somebody who was not woken looks again.
constexpr auto watch_dog = 10min;

/// A turn of somebody may take dozens of steps: with longer ones a few such turns would last until the watch dog barks.
constexpr colock::lease_clock::duration longest_step = 100ms;

/// The clock is turned in ever longer steps while nobody gets on.
void run(random_mix& mix)
{
    const auto deadline = colock::lease_clock::now() + watch_dog;
    colock::lease_clock::duration step = 50us;
    try {
        for (std::size_t turns = 0; !mix.ended() && colock::lease_clock::now() < deadline;) {
            virtual_clock::advance(mix.io(), step);
            step = mix.turns() == turns ? std::min(2 * step, longest_step) : 50us;
            turns = mix.turns();
        }
    } catch (const stuck& busy) {
        BOOST_TEST_INFO(busy.what());
    }
    BOOST_TEST_REQUIRE(mix.ended(), mix.describe());
}

} // namespace

BOOST_AUTO_TEST_SUITE(random_mixes)

BOOST_AUTO_TEST_CASE(whatever_is_done_at_random_comes_to_an_end)
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
