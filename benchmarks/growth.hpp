// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <cstdint>

namespace bench {

/// Returns the number of pairs for a duration of `seconds`: 1,000,000 for 2 s or more.
[[nodiscard]] std::uint64_t growth_pairs(double seconds) noexcept;

/// Measures whether the memory or the open descriptors of this process grow over this number of pairs.
void measure_growth(
    boost::asio::io_context& io, const colock::locker& locker, std::uint64_t pair_count, report& results);

} // namespace bench
