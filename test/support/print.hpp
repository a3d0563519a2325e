// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <chrono>
#include <ostream>

/// Functions by which Boost.Test prints values of colock.
namespace colock::inline v0 {

inline std::ostream& operator<<(std::ostream& out, create_status status)
{
    constexpr const char* names[] = {"granted", "busy", "failed"};
    return out << names[static_cast<unsigned>(status)];
}

inline std::ostream& operator<<(std::ostream& out, release_status status)
{
    constexpr const char* names[] = {"released", "not_held", "failed"};
    return out << names[static_cast<unsigned>(status)];
}

inline std::ostream& operator<<(std::ostream& out, extend_status status)
{
    constexpr const char* names[] = {"extended", "not_held", "failed"};
    return out << names[static_cast<unsigned>(status)];
}

} // namespace colock::inline v0

namespace boost::test_tools::tt_detail {

template <class T>
struct print_log_value;

template <class Rep, class Period>
struct print_log_value<std::chrono::duration<Rep, Period>>
{
    void operator()(std::ostream& out, std::chrono::duration<Rep, Period> span) const
    {
        out << std::chrono::duration<double, std::milli>(span).count() << " ms";
    }
};

} // namespace boost::test_tools::tt_detail
