// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/fiber_host.hpp"
#include "mongo/driver/transport.hpp"

#include <memory>

struct _mongoc_stream_t;

namespace colock::mongo::detail {

/// A stream of the driver's over a connection that has been begun; the driver disposes of it. It suspends the host's
/// fiber where the driver means to block, for no longer than the driver says. When the host aborts, every call fails.
///
/// \param by lives as long as the driver's client
[[nodiscard]] ::_mongoc_stream_t* make_stream(fiber_host& by, std::shared_ptr<transport> over) noexcept;

} // namespace colock::mongo::detail
