// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/rig.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>

namespace colock::testing {

inline constexpr std::size_t pool_size = 4;
inline constexpr int workers = 12;
inline constexpr int rounds = 60;

/// Of memory, or through a script.
[[nodiscard]] std::shared_ptr<adapter> make_backend(asio::io_context& io, behind kind);

/// Runs `io` on several threads until it has nothing left to do. Stops it and returns false if that takes so long that
/// nobody can be getting on.
[[nodiscard]] bool run_pool(asio::io_context& io, std::size_t threads = pool_size);

void check_idle(const locker& subject);

/// How many coroutines ended, and what went wrong in them.
struct results
{
    std::atomic<int> ended{0};
    std::atomic<int> failed{0};

    auto handler()
    {
        return [this](std::exception_ptr failure) {
            ++ended;
            if (failure)
                ++failed;
        };
    }
};

} // namespace colock::testing
