// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/outcome.hpp>

namespace colock::inline v0::detail {

/// The failure of a request for which there was no memory. The first call allocates it.
[[nodiscard]] inline failure_ptr no_memory()
{
    static const failure_ptr instance = make_failure(errc::unavailable, "there was no memory to send the request",
        make_error_code(boost::system::errc::not_enough_memory));
    return instance;
}

} // namespace colock::inline v0::detail
