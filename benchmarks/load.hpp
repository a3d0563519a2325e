// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <cstddef>

namespace bench {

/// A section of the report: so many coroutines acquire a random one of so many keys, hold it over one turn of the loop,
/// and release it.
void measure_load(boost::asio::io_context& io, const colock::locker& locker, std::size_t concurrency, std::size_t keys,
    double seconds, report& found);

} // namespace bench
