// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/option_errors.hpp"

#include <colock/error.hpp>

#include <utility>

namespace colock::inline v0::detail {

std::string in_words(std::chrono::milliseconds span)
{
    using namespace std::chrono;
    const auto in_unit = [&](auto unit) { return std::to_string(duration_cast<decltype(unit)>(span).count()); };
    if (span == milliseconds::zero() || span % seconds(1) != milliseconds::zero())
        return in_unit(milliseconds()) + " ms";
    if (span % minutes(1) != milliseconds::zero())
        return in_unit(seconds()) + " s";
    if (span % hours(1) != milliseconds::zero())
        return in_unit(minutes()) + " min";
    // "1 days" would be wrong, and "24 h" is as short.
    return span % days(1) != milliseconds::zero() || abs(span) == days(1) ? in_unit(hours()) + " h"
                                                                          : in_unit(days()) + " days";
}

void refuse_options(std::string_view backend, std::string text)
{
    throw validation_error(errc::invalid_options, {.backend = std::string(backend), .detail = std::move(text)});
}

void check_range(std::string_view backend, std::string_view name, std::chrono::milliseconds value,
    std::chrono::milliseconds from, std::chrono::milliseconds to)
{
    if (value >= from && value <= to)
        return;
    refuse_options(backend,
        std::string(name) + " is " + in_words(value) + "; give one from " + in_words(from) + " to " + in_words(to));
}

} // namespace colock::inline v0::detail
