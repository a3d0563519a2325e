// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>

namespace bench {

/// Returns how many bytes this process has received on the open connections to a port.
[[nodiscard]] std::uint64_t bytes_received_from(std::uint16_t port);

} // namespace bench
