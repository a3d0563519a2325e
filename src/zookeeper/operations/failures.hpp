// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"

#include <colock/spi/outcome.hpp>

namespace colock::inline v0::zookeeper::detail {

/// Returns why a request has failed.
[[nodiscard]] failure_ptr failure_of(const reply& reply);

} // namespace colock::inline v0::zookeeper::detail
