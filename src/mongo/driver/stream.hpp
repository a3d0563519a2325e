// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/fiber_host.hpp"
#include "mongo/driver/transport.hpp"

#include <memory>

struct _mongoc_stream_t;

namespace colock::inline v0::mongo::detail {

/// Creates a stream of the driver over a transport that was opened. The driver destroys the stream. Where the driver
/// would block, the stream suspends the host's fiber, for no longer than the driver's timeout. When the host aborts,
/// every call fails.
///
/// \param host must live as long as the driver's client
[[nodiscard]] ::_mongoc_stream_t* make_stream(fiber_host& host, std::shared_ptr<transport> transport) noexcept;

} // namespace colock::inline v0::mongo::detail
