// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "integration/redis/fixture.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace colock::testing {

/// Acquires a lock, and pauses after an error: some errors are answered at once for several seconds.
inline asio::awaitable<std::uint64_t> acquire_with_pauses(std::shared_ptr<adapter> backend, plain_claim_ptr claim)
{
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        const auto outcome = co_await backend->create(sent_now(claim));
        if (outcome.status == create_status::granted)
            co_return outcome.fence;
        if (outcome.status == create_status::busy)
            co_await backend->wait(claim, lease_clock::time_point::max());
        pause.expires_after(std::chrono::milliseconds(5));
        co_await pause.async_wait(asio::deferred);
    }
}

/// Starts an acquire that continues after errors.
inline running<std::uint64_t> start_acquire(client_side& by, const std::string& key)
{
    return start(by.io, acquire_with_pauses(by.test_driver.shared_backend(), driver::exclusive(key)));
}

/// Does the same and returns the fence.
inline std::uint64_t acquire_now(client_side& by, const std::string& key)
{
    return start_acquire(by, key).get(by.io);
}

} // namespace colock::testing
