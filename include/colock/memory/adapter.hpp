// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <memory>

namespace colock::memory {

/// Checked by make_adapter.
struct options
{
    /// How often an operation also sweeps stale locks of other keys: those whose ttl has passed without a release.
    /// Range: more than 0. The key that is being acquired is always swept.
    std::chrono::milliseconds sweep_interval{std::chrono::minutes(5)};
    /// How many stale locks one operation removes at most; what is left, the next operations remove. Range: at least 1.
    std::size_t sweep_batch = 100;
};

/// Locks in this process's memory: the reference for the semantics of every backend, and a double for tests.
///
/// Exclusive, shared and semaphore locks with and without ttl, fences, a FIFO queue per key with direct hand-off.
/// Operations end inside the call that starts them. The store belongs to the adapter: lockers made from the same
/// adapter exclude each other.
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for options out of range
[[nodiscard]] std::shared_ptr<adapter> make_adapter(asio::any_io_executor executor, options settings = {});

} // namespace colock::memory
