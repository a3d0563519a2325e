// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"

namespace colock::zookeeper::detail {

/// What one of the driver's codes says of a request.
[[nodiscard]] status status_of(int code) noexcept;

} // namespace colock::zookeeper::detail
