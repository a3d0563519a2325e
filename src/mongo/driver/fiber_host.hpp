// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

namespace colock::mongo::detail {

/// Who runs something on a fiber, as whatever runs there sees it.
class fiber_host
{
public:
    /// The fiber is to come to its end, whatever it waits for.
    [[nodiscard]] virtual bool aborts() const noexcept = 0;
    /// On the fiber: until it is woken, or the time has come, or it aborts. May end early.
    virtual void suspend_until(lease_clock::time_point time) = 0;

protected:
    fiber_host() = default;
    ~fiber_host() = default;
};

} // namespace colock::mongo::detail
