// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/option_errors.hpp"

#include <colock/error.hpp>

#include <utility>

namespace colock::inline v0::detail {

std::string in_words(std::chrono::milliseconds span)
{
    return std::to_string(span.count()) + " ms";
}

void refuse_options(std::string_view backend, std::string why)
{
    throw validation_error(errc::invalid_options, {.backend = std::string(backend), .detail = std::move(why)});
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
