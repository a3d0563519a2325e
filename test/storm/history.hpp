// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace storm {

/// The period in which a caller could believe to hold a lock, in nanoseconds of colock::lease_clock, which all
/// processes share.
struct hold
{
    std::string key;
    bool shared = false;
    std::uint64_t fence = 0;
    std::int64_t from = 0;
    std::int64_t until = 0;
};

std::ostream& operator<<(std::ostream& out, const hold& held);
std::istream& operator>>(std::istream& in, hold& held);

/// Returns a line for each violation among the holds of one key.
std::vector<std::string> check_key(std::vector<hold> holds);

} // namespace storm
