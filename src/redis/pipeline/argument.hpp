// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace colock::inline v0::redis::detail {

/// A command argument other than a text or a number. It is written into the request directly, without a temporary
/// string.
template <class T>
concept argument = requires(const T& text, std::string& to) {
    {
        text.size()
    } -> std::convertible_to<std::size_t>;
    text.append_to(to);
} && !std::convertible_to<T, std::string_view>;

/// Writes a bulk string. The driver finds this function through argument-dependent lookup.
template <argument T>
void boost_redis_to_bulk(std::string& to, const T& text)
{
    (to += '$') += std::to_string(text.size());
    to += "\r\n";
    text.append_to(to);
    to += "\r\n";
}

} // namespace colock::inline v0::redis::detail
