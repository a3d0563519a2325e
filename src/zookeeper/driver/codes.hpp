// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"

namespace colock::zookeeper::detail {

/// Returns what one of the driver's error codes means for a request.
[[nodiscard]] status status_of(int code) noexcept;

} // namespace colock::zookeeper::detail
