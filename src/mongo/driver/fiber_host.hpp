// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

namespace colock::inline v0::mongo::detail {

/// Interface of the object that runs a fiber, for the code that runs on the fiber.
class fiber_host
{
public:
    /// Returns whether the code on the fiber must end, whatever it waits for.
    [[nodiscard]] virtual bool aborts() const noexcept = 0;
    /// Suspends the fiber until it is woken, `time` is reached, or the host aborts. May return early. Must be called on
    /// the fiber.
    virtual void suspend_until(lease_clock::time_point time) = 0;

protected:
    fiber_host() = default;
    ~fiber_host() = default;
};

} // namespace colock::inline v0::mongo::detail
