// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

namespace colock::inline v0::remote {

/// Computes the delay between attempts to connect: about 100 ms at first, doubled after each failure up to about 1.6 s.
/// The delays are randomized, so that the clients of a restarted server do not all reconnect at the same time.
class backoff
{
public:
    /// Returns the delay after a failed attempt or after the loss of a connection.
    [[nodiscard]] lease_clock::duration next();
    /// Must be called after a successful attempt.
    void reset() noexcept { failures_ = 0; }

private:
    unsigned failures_ = 0;
};

} // namespace colock::inline v0::remote
