// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_clock.hpp"

#include "support/run.hpp"
#include "util/clock_offset.hpp"

#include <algorithm>

namespace colock::testing {

virtual_clock::virtual_clock() noexcept
{
    detail::clock_offset = 0;
}

virtual_clock::~virtual_clock()
{
    detail::clock_offset = 0;
}

void virtual_clock::skip(lease_clock::duration span) noexcept
{
    detail::clock_offset += span.count();
}

void virtual_clock::advance(asio::io_context& io, lease_clock::duration span, std::source_location where)
{
    run_ready(io, where);
    skip(span);
    // The kernel's timer does not know of the skip. A timer that is due before all others makes the reactor check its
    // whole queue again.
    lease_timer poke(io.get_executor());
    poke.expires_at(lease_clock::time_point::min());
    bool looked = false;
    poke.async_wait([&](const boost::system::error_code&) { looked = true; });
    run_until(io, [&] { return looked; }, where);
    run_ready(io, where);
}

void virtual_clock::advance_by_steps(
    asio::io_context& io, lease_clock::duration span, lease_clock::duration step, std::source_location where)
{
    while (span > span.zero()) {
        advance(io, std::min(span, step), where);
        span -= step;
    }
}

} // namespace colock::testing
