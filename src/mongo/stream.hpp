// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/connection.hpp"

#include <colock/clock.hpp>

#include <memory>

struct _mongoc_stream_t;

namespace colock::mongo::detail {

/// What the driver's streams need of whoever runs the driver.
class stream_host
{
public:
    /// The driver is to come back, whatever it waits for: every call of a stream fails from now on.
    [[nodiscard]] virtual bool aborts() const noexcept = 0;
    /// On the fiber: until a connection has changed, or the time has come, or it aborts. May end early.
    virtual void suspend_until(lease_clock::time_point time) = 0;
    /// Begins one.
    [[nodiscard]] virtual std::shared_ptr<connection> connect() = 0;

protected:
    stream_host() = default;
    ~stream_host() = default;
};

/// A stream of the driver's over a connection that has been begun; the driver disposes of it. It suspends the host's
/// fiber where the driver means to block, for no longer than the driver says.
///
/// \param by lives as long as the driver's client
[[nodiscard]] ::_mongoc_stream_t* make_stream(stream_host& by, std::shared_ptr<connection> over) noexcept;

} // namespace colock::mongo::detail
