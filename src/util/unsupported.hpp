// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/spi/outcome.hpp>

#include <string>
#include <string_view>

namespace colock::inline v0::detail {

/// Makes the failure of an operation that an adapter does not implement.
/// \param feature completes the sentence "<backend> cannot ...", for example "list its locks"
[[nodiscard]] inline failure_ptr cannot(std::string_view backend, std::string_view feature)
{
    return make_failure(errc::unsupported, std::string(backend) + " cannot " + std::string(feature));
}

[[nodiscard]] inline list_outcome cannot_list(std::string_view backend)
{
    return {.error = cannot(backend, "list its locks")};
}

} // namespace colock::inline v0::detail
