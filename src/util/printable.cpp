// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/printable.hpp"

#include <algorithm>
#include <cstddef>

namespace colock::inline v0::detail {

namespace {

using byte = unsigned char;

bool is_continuation_byte(char unit)
{
    return (static_cast<byte>(unit) & 0xc0U) == 0x80U;
}

/// Returns the number of bytes of the first character of a text, or 0 if the character must be escaped: a control
/// character, or invalid UTF-8. Overlong encodings of three or four bytes are accepted, and so are surrogates.
std::size_t printable_size(std::string_view text)
{
    const auto first = static_cast<byte>(text.front());
    if (first < 0x20 || first == 0x7f)
        return 0;
    if (first < 0x80)
        return 1;
    const std::size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    const auto rest = text.substr(1, size > 0 ? size - 1 : 0);
    if (size > text.size() || !std::all_of(rest.begin(), rest.end(), is_continuation_byte))
        return 0;
    const bool is_control = first == 0xc2 && static_cast<byte>(text[1]) < 0xa0;
    return is_control ? 0 : size;
}

void append(std::string& to, std::string_view text, bool between_quotes)
{
    constexpr char digits[] = "0123456789abcdef";
    while (!text.empty()) {
        const auto first = static_cast<byte>(text.front());
        const std::size_t size = printable_size(text);
        if (size == 0)
            to += {'\\', 'x', digits[first >> 4U], digits[first & 0xfU]};
        else if (between_quotes && (first == '"' || first == '\\'))
            to += {'\\', text.front()};
        else
            to += text.substr(0, size);
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
}

} // namespace

std::string printable(std::string_view text)
{
    std::string result;
    append(result, text, false);
    return result;
}

std::string quoted(std::string_view text, std::size_t max_size)
{
    std::string result = "\"";
    if (text.size() <= max_size) {
        append(result, text, true);
        return result + '"';
    }
    auto end = max_size;
    // Moves the end to the start of a character, which has at most four bytes.
    for (int back = 0; back < 3 && end > 0 && is_continuation_byte(text[end]); ++back)
        --end;
    append(result, text.substr(0, end), true);
    return result + "...\" (" + std::to_string(text.size()) + " bytes)";
}

} // namespace colock::inline v0::detail
