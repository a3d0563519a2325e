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
    /// Of the load: coroutines that take and give back locks, and keys that they share.
    std::size_t concurrency = 64;
    std::size_t keys = 1000;
    /// Of each part of the run.
    double seconds = 2.0;
    /// The only part to run; empty: all.
    std::string part{};
    /// A list of other libraries' programs to run beside ours; empty: none.
    std::string peers{};
    /// With them: how often each has its turn.
    std::size_t rounds = 3;
    /// Of one of several processes: the second, since 1970, in which it begins to count; 0: after a warm-up of its own.
    std::int64_t begins = 0;

    [[nodiscard]] bool wants(std::string_view name) const { return part.empty() || part == name; }
};

} // namespace bench
