// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/cursor.hpp"

#include <charconv>

namespace colock::inline v0::detail {

namespace {

/// Maximum size of a cursor in bytes. Sufficient for a cursor that contains an encoded key.
constexpr std::size_t max_cursor_size = 4096;

} // namespace

std::string make_cursor(std::string_view backend, std::string_view where)
{
    return std::string(backend).append(":").append(where);
}

std::optional<std::string_view> read_cursor(std::string_view backend, std::string_view cursor)
{
    if (cursor.size() > max_cursor_size || !cursor.starts_with(backend) ||
        !cursor.substr(backend.size()).starts_with(':'))
        return std::nullopt;
    return cursor.substr(backend.size() + 1);
}

failure_ptr not_a_cursor(std::string_view backend)
{
    return make_failure(errc::invalid_options, "the cursor is not from a page of " + std::string(backend) +
                                                   "; pass the next of the previous page, or an empty cursor");
}

std::optional<std::uint64_t> read_number(std::string_view text, int base)
{
    std::uint64_t number = 0;
    const auto* const last = text.data() + text.size();
    const auto [end, problem] = std::from_chars(text.data(), last, number, base);
    return problem == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

} // namespace colock::inline v0::detail
