// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/random_mix.hpp"

#include "pool.hpp"

using namespace colock::testing;

namespace {

constexpr std::uint32_t mixes = 100;

} // namespace

BOOST_AUTO_TEST_SUITE(random_mixes)

BOOST_AUTO_TEST_CASE(random_operations_on_many_threads_complete)
{
    const auto first = random_mix::first_seed();
    for (std::uint32_t n = 0; n < mixes; ++n) {
        const auto threads = 2 + n % 3;
        random_mix mix(first + n, static_cast<int>(threads));
        BOOST_TEST_CONTEXT("in the mix COLOCK_SEED=" << first + n << " on " << threads << " threads")
        {
            BOOST_TEST_REQUIRE(run_pool(mix.io(), threads), mix.describe());
            mix.check();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
