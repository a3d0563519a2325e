// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/process.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace colock::testing {

/// Checks that a child process takes nothing away from its parent if it destroys the objects of its parent, as it does
/// when it returns from `main`: the parent's lock is renewed for three ttls afterwards, on the same connection.
/// \param ttl of a lock, or of the session that it belongs to
inline void check_exit_of_child(
    const std::function<std::shared_ptr<adapter>(const asio::any_io_executor&)>& make_adapter,
    std::chrono::milliseconds ttl)
{
    struct program
    {
        explicit program(const std::function<std::shared_ptr<adapter>(const asio::any_io_executor&)>& make)
            : by(make(io.get_executor()))
        {
        }

        asio::io_context io;
        locker by;
        lock held;
        std::optional<running<lock>> waiting;
    };
    auto parent = std::make_unique<program>(make_adapter);
    auto& io = parent->io;
    parent->held = run_coro(io, parent->by.acquire("k", {.ttl = ttl, .renewal = renewal::automatic}));
    parent->waiting = start(io, parent->by.acquire("k", {.ttl = ttl}));
    run_until(io, [&] { return parent->by.stats().waiting == 1; });
    BOOST_TEST(wait_for(in_child([&] { parent.reset(); })) == 0);
    const auto ended = lease_clock::now();
    run_until(io, [&] { return lease_clock::now() - ended > 3 * ttl || !parent->held.held(); });
    BOOST_TEST(parent->held.held());
    run_coro(io, parent->held.release(on_failure::raise));
    run_coro(io, parent->waiting->get(io).release(on_failure::raise));
    BOOST_TEST(parent->by.stats().reconnects == 0U);
    BOOST_TEST(run_coro(io, parent->by.shutdown(std::chrono::seconds(5))).clean());
}

} // namespace colock::testing
