// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/framing.hpp"

#include <algorithm>

namespace colock::inline v0::redis::detail {

namespace {

/// Limit of the digits of a length. No server sends a longer one, and the driver's arithmetic cannot overflow with so
/// few digits.
constexpr unsigned max_digits = 9;
/// Limit of a line, because the driver parses an unfinished line from its beginning each time that more bytes arrive.
constexpr std::size_t max_line_size = 65'536;
/// Limit of the values in one reply, including nested ones. A value may take only three bytes on the wire, but the
/// driver allocates a few dozen times as much memory for it. The holders of a semaphore are listed in one reply, with
/// five values for each.
constexpr std::size_t max_values = std::size_t{1} << 21;

/// Tells whether a value of this type is a single line.
constexpr bool is_line(char type)
{
    return type == '+' || type == ':' || type == '_' || type == '-' || type == ',' || type == '#' || type == '(';
}

/// Returns the position after the line that begins at `at`, if the line is short and complete. Otherwise returns `at`.
std::size_t end_of_short_line(std::string_view bytes, std::size_t at)
{
    constexpr std::size_t max_length = 32;
    if (!is_line(bytes[at]))
        return at;
    const auto limit = std::min(bytes.size() - at, max_length) + at;
    auto end = at + 1;
    while (end < limit && bytes[end] != '\r')
        ++end;
    return end + 1 < limit && bytes[end + 1] == '\n' ? end + 2 : at;
}

} // namespace

bool framing::accept(std::string_view bytes) noexcept
{
    // This loop passes over every received byte, so long spans are skipped at once.
    for (std::size_t at = 0; at < bytes.size();) {
        if (state_ == state::type && !count_value()) {
            state_ = state::refused;
        } else if (const auto next = state_ == state::type ? end_of_short_line(bytes, at) : at; next != at) {
            at = next;
        } else if (state_ == state::payload) {
            const auto passed = std::min(size_, bytes.size() - at);
            at += passed;
            size_ -= passed;
            if (size_ == 0)
                state_ = state::payload_return;
        } else if (state_ == state::line) {
            const auto end = std::min(bytes.find('\r', at), bytes.size());
            size_ += end - at;
            at = end + 1;
            if (size_ > max_line_size)
                state_ = state::refused;
            else if (end < bytes.size())
                state_ = state::line_feed;
        } else {
            state_ = step(bytes[at++]);
        }
        if (state_ == state::refused)
            return false;
    }
    return state_ != state::refused;
}

framing::state framing::step(char next) noexcept
{
    switch (state_) {
    case state::type:
        return begin(next);
    case state::line_feed:
        if (next == '\n')
            return state::type;
        // Only CR and LF together end a line. A single CR belongs to the value.
        return next == '\r' ? state::line_feed : state::line;
    case state::count:
        return count(next);
    case state::count_line_feed:
        if (next != '\n')
            return state::refused;
        if (is_bulk_)
            return size_ > 0 ? state::payload : state::payload_return;
        expected_ += has_pairs_ ? 2 * size_ : size_;
        return state::type;
    case state::payload_return:
        return next == '\r' ? state::payload_line_feed : state::refused;
    case state::payload_line_feed:
        return next == '\n' ? state::type : state::refused;
    case state::line:
    case state::payload:
    case state::refused:
        break;
    }
    return state::refused;
}

bool framing::count_value() noexcept
{
    if (expected_ == 0) {
        expected_ = 1;
        values_ = 0;
    }
    --expected_;
    return ++values_ <= max_values;
}

framing::state framing::begin(char type) noexcept
{
    size_ = 0;
    digits_ = 0;
    if (is_line(type))
        return state::line;
    switch (type) {
    case '$':
    case '=':
    case '!':
        is_bulk_ = true;
        return state::count;
    case '*':
    case '%':
    case '~':
    case '>':
        is_bulk_ = false;
        has_pairs_ = type == '%';
        return state::count;
    default:
        return state::refused;
    }
}

framing::state framing::count(char digit) noexcept
{
    if (digit == '\r')
        return digits_ > 0 ? state::count_line_feed : state::refused;
    if (digit < '0' || digit > '9' || ++digits_ > max_digits)
        return state::refused;
    size_ = size_ * 10 + static_cast<std::size_t>(digit - '0');
    return state::count;
}

} // namespace colock::inline v0::redis::detail
