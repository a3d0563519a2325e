// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/fiber_host.hpp"

#include <boost/asio/post.hpp>

#include <memory>
#include <utility>

namespace colock::mongo::detail {

bool run_outside(fiber_host& on, std::function<void()> act)
{
    const auto done = std::make_shared<bool>(false);
    asio::post(on.strand(), [done, act = std::move(act), wake = on.waker()] {
        act();
        *done = true;
        wake();
    });
    while (!*done && !on.aborts())
        on.suspend_until(lease_clock::time_point::max());
    return *done;
}

} // namespace colock::mongo::detail
