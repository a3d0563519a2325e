// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>
#include <colock/spi/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <memory>

namespace colock::inline v0::memory {

/// Options of the memory adapter. make_adapter checks them.
///
/// The query of a URL can give them, too: `memory:?sweep_interval=1m`. See colock::make_adapter.
struct options
{
    /// Interval at which an operation also removes stale locks of other keys, that is, locks whose ttl has passed
    /// without a release. The stale locks of the key that is being acquired are always removed. Range: more than 0.
    std::chrono::milliseconds sweep_interval{std::chrono::minutes(5)};
    /// Maximum number of stale locks that one operation removes. The next operations remove the rest. Range: 1 or more.
    std::size_t sweep_batch = 100;
};

/// Makes an adapter that stores the locks in the memory of this process. It is the reference for the semantics of every
/// backend, and can replace a real backend in tests.
///
/// Supports exclusive, shared and semaphore locks with and without ttl, and fencing tokens. Each key has a FIFO queue,
/// and a release passes the lock directly to the next waiter. Every operation completes inside the call that starts it.
/// The locks belong to the adapter: lockers exclude each other if they are made from the same adapter.
///
/// Thread safety: all members may be called from any thread.
/// \throws validation_error `invalid_options` for options out of range
COLOCK_EXPORT [[nodiscard]] std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, options settings = {});

} // namespace colock::inline v0::memory
