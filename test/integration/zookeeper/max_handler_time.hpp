// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace colock::testing {

/// Returns the duration of the longest handler until `reached` returns true. Polls the event loop, so that waiting
/// times do not count.
[[nodiscard]] inline std::chrono::steady_clock::duration max_handler_time(
    client& of, const std::function<bool()>& reached)
{
    using clock = std::chrono::steady_clock;
    clock::duration longest{};
    for (const auto limit = clock::now() + 30s; !reached();) {
        const auto before = clock::now();
        BOOST_TEST_REQUIRE((before < limit));
        of.io->restart();
        if (of.io->poll_one() == 0)
            std::this_thread::sleep_for(1ms);
        else
            longest = std::max(longest, clock::now() - before);
    }
    return longest;
}

} // namespace colock::testing
