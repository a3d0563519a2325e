// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/text_escaping.hpp"

#include <algorithm>
#include <cstddef>

namespace colock::inline v0::detail {

namespace {

using byte = unsigned char;

bool is_continuation_byte(char unit)
{
    return (static_cast<byte>(unit) & 0xc0U) == 0x80U;
}

/// Returns the number of bytes of the first character of a text, or 0 if they are not valid UTF-8.
std::size_t character_size(std::string_view text)
{
    const auto first = static_cast<byte>(text.front());
    if (first < 0x80)
        return 1;
    const std::size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    const auto rest = text.substr(1, size > 0 ? size - 1 : 0);
    if (size == 0 || size > text.size() || !std::all_of(rest.begin(), rest.end(), is_continuation_byte))
        return 0;
    // Overlong encodings, surrogates, and code points above U+10FFFF.
    const auto second = static_cast<byte>(rest.front());
    const bool is_invalid = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
    return is_invalid ? 0 : size;
}

bool is_control(std::string_view character)
{
    const auto first = static_cast<byte>(character.front());
    return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<byte>(character[1]) < 0xa0);
}

constexpr char digits[] = "0123456789abcdef";

void append(std::string& to, std::string_view text, bool between_quotes)
{
    while (!text.empty()) {
        const auto first = static_cast<byte>(text.front());
        std::size_t size = character_size(text);
        if (size > 0 && is_control(text))
            size = 0;
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

std::string json_string(std::string_view text)
{
    std::string result = "\"";
    while (!text.empty()) {
        const std::size_t size = character_size(text);
        const auto character = text.substr(0, std::max<std::size_t>(size, 1));
        if (size == 0) {
            result += "\\ufffd";
        } else if (is_control(character)) {
            // The last byte of a control character is its code point.
            const auto code = static_cast<byte>(character.back());
            result += {'\\', 'u', '0', '0', digits[code >> 4U], digits[code & 0xfU]};
        } else {
            if (character == "\"" || character == "\\")
                result += '\\';
            result += character;
        }
        text.remove_prefix(character.size());
    }
    return result + '"';
}

} // namespace colock::inline v0::detail
