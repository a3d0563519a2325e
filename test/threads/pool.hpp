// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>

namespace colock::testing {

inline constexpr std::size_t pool_size = 4;
inline constexpr int workers = 12;
inline constexpr int rounds = 60;

/// Makes a memory adapter, or a scripted one.
[[nodiscard]] std::shared_ptr<adapter> make_backend(asio::io_context& io, backend_kind kind);

/// Runs `io` on several threads until it has no work left. Stops it and returns false if this takes so long that there
/// must be a deadlock.
[[nodiscard]] bool run_pool(asio::io_context& io, std::size_t threads = pool_size);

void check_idle(const locker& subject);

/// Number of coroutines that ended, and of those that failed.
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
