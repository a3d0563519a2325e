// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace colock::testing {

/// A handler that takes longer than this has blocked the event loop. The timeouts of the tests are at least 300 ms, and
/// a call that blocks until a timeout takes at least as long. Handlers that do not block take up to 65 ms of CPU, and
/// other processes may delay them. The benchmark measures how long handlers take.
inline constexpr std::chrono::milliseconds max_handler_time{200};

/// Polls the context until `reached` returns true, for at most 2 minutes.
/// \return the elapsed time of the longest handler. The times between handlers do not count.
[[nodiscard]] inline std::chrono::nanoseconds longest_handler(
    boost::asio::io_context& io, const std::function<bool()>& reached)
{
    using clock = std::chrono::steady_clock;
    clock::duration longest{};
    for (const auto limit = clock::now() + std::chrono::minutes(2); !reached();) {
        const auto begin = clock::now();
        BOOST_TEST_REQUIRE((begin < limit));
        io.restart();
        if (io.poll_one() == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        else
            longest = std::max(longest, clock::now() - begin);
    }
    return longest;
}

/// Checks that no handler blocks the event loop.
/// \param act returns the elapsed time of the longest handler. It is called again if this time was too long: a blocking
/// handler blocks each time, but the machine disturbs a measurement only sometimes.
inline void check_not_blocking(const std::function<std::chrono::nanoseconds()>& act)
{
    auto longest = act();
    for (int left = 2; left > 0 && longest >= max_handler_time; --left)
        longest = std::min(longest, act());
    BOOST_TEST((longest < max_handler_time), "a handler took " << longest.count() << " ns");
}

} // namespace colock::testing
