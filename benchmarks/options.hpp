// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

struct options
{
    std::string backend = "memory:";
    /// Number of coroutines that acquire and release locks, and number of keys that they share.
    std::size_t concurrency = 64;
    std::size_t keys = 1000;
    /// Duration of each part of the run, in seconds.
    double seconds = 2.0;
    /// The only part to run. Empty: all parts.
    std::string part{};
    /// File with the commands of other libraries' programs. Empty: none.
    std::string peers{};
    /// Number of measurements of each library, if there are peers.
    std::size_t rounds = 3;
    /// For one of several processes: the time at which it starts to count, in seconds since 1970. 0: after its own
    /// warm-up.
    std::int64_t begins = 0;

    [[nodiscard]] bool wants(std::string_view name) const { return part.empty() || part == name; }
};

} // namespace bench
