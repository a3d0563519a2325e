// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "hall.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

/// Formats 1234567 as "1,234,567".
inline std::string grouped(std::uint64_t number)
{
    std::string digits = std::to_string(number);
    for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
        digits.insert(static_cast<std::size_t>(i), ",");
    return digits;
}

inline std::string bar(double fraction)
{
    const char* locale = std::getenv("LC_ALL");
    if (!locale || !*locale)
        locale = std::getenv("LC_CTYPE");
    if (!locale || !*locale)
        locale = std::getenv("LANG");
    const bool utf8 = locale && std::string_view(locale).find("UTF-8") != std::string_view::npos;
    std::string drawn;
    for (int i = 0; i < std::lround(fraction * 40.0); ++i)
        drawn += utf8 ? "\u2588" : "#";
    return drawn;
}

inline std::ostream& row(std::string_view name)
{
    return std::cout << "  " << std::left << std::setw(12) << name;
}

inline void print_waits(std::vector<std::chrono::nanoseconds> waits)
{
    std::sort(waits.begin(), waits.end());
    const auto quantile = [&](double fraction) {
        const auto index = static_cast<std::size_t>(fraction * static_cast<double>(waits.size() - 1));
        return std::chrono::duration<double, std::milli>(waits[index]).count();
    };
    for (const auto& [name, fraction] : {std::pair("wait p50", 0.5), std::pair("wait p99", 0.99)}) {
        row(name) << std::right << std::fixed << std::setprecision(1) << std::setw(8) << quantile(fraction) << " ms  "
                  << bar(quantile(fraction) / std::max(quantile(0.99), 0.001)) << '\n';
    }
}

/// Prints the final table. Returns false if a guarantee of the lock was violated.
inline bool print_summary(const hall& seats, std::size_t capacity, bool locked,
    const std::vector<std::chrono::nanoseconds>& waits, std::chrono::duration<double> elapsed)
{
    row("seats sold") << grouped(seats.sales()) << " of " << grouped(capacity) << '\n';
    row("oversold") << grouped(seats.oversold()) << '\n';
    if (!locked)
        return true;
    row("grants") << grouped(waits.size()) << ", "
                  << grouped(static_cast<std::uint64_t>(static_cast<double>(waits.size()) / elapsed.count()))
                  << " per second\n";
    if (!waits.empty())
        print_waits(waits);
    if (seats.highest_fence() == 0)
        row("fences") << "none: this backend has no fence\n";
    else if (seats.stale_fences() == 0)
        row("fences") << grouped(seats.lowest_fence()) << " to " << grouped(seats.highest_fence())
                      << ", increasing in every block\n";
    else
        row("fences") << grouped(seats.stale_fences()) << " NOT INCREASING\n";
    return seats.oversold() == 0 && (seats.highest_fence() == 0 || seats.stale_fences() == 0);
}
