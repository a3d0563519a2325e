// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

namespace colock::remote {

/// How long to wait between attempts to connect: around 100 ms at first, up to about 2 s. Spread, because all clients
/// of a server that returns should not do so at once.
class backoff
{
public:
    /// One more has failed, or a connection was lost.
    [[nodiscard]] lease_clock::duration next();
    /// One has succeeded.
    void reset() noexcept { failures_ = 0; }

private:
    unsigned failures_ = 0;
};

} // namespace colock::remote
