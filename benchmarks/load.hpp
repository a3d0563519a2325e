// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <cstddef>

namespace bench {

/// Adds a section to the report. `concurrency` coroutines repeatedly acquire a random key of `keys`, hold it for one
/// iteration of the event loop, and release it.
void measure_load(boost::asio::io_context& io, const colock::locker& locker, std::size_t concurrency, std::size_t keys,
    double seconds, report& results);

} // namespace bench
