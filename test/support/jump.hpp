// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/run.hpp"

#include <colock/testing/virtual_clock.hpp>

#include <boost/asio/io_context.hpp>

#include <source_location>

namespace colock::testing {

/// Moves the virtual clock at once, and runs all handlers that become due. In contrast to virtual_clock::advance(), a
/// timer that is armed again by its own handler runs once.
inline void jump(
    asio::io_context& io, lease_clock::duration span, std::source_location where = std::source_location::current())
{
    run_ready(io, where);
    virtual_clock::skip(span);
    virtual_clock::advance(io, lease_clock::duration::zero(), virtual_clock::default_step, where);
}

} // namespace colock::testing
