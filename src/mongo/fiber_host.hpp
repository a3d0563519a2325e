// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <functional>

namespace colock::mongo::detail {

/// Who runs something on a fiber, as whatever runs there sees it.
class fiber_host
{
public:
    /// The fiber is to come to its end, whatever it waits for.
    [[nodiscard]] virtual bool aborts() const noexcept = 0;
    /// On the fiber: until it is woken, or the time has come, or it aborts. May end early.
    virtual void suspend_until(lease_clock::time_point time) = 0;
    /// Wakes it, from the strand; it may be gone by then.
    [[nodiscard]] virtual std::function<void()> waker() = 0;
    [[nodiscard]] virtual asio::any_io_executor strand() const = 0;

protected:
    fiber_host() = default;
    ~fiber_host() = default;
};

/// On a fiber: runs it on the strand, outside of any fiber: what needs a deep stack, or keeps something by thread, as
/// OpenSSL does. False: it aborts, and `act` may still be run.
[[nodiscard]] bool run_outside(fiber_host& on, std::function<void()> act);

} // namespace colock::mongo::detail
