// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/connection/framing.hpp"

#include <algorithm>

namespace colock::redis::detail {

namespace {

/// More than any server sends, and far from where the driver's arithmetic ends.
constexpr unsigned most_digits = 9;
/// The driver looks through an unfinished line anew whenever some of it arrives.
constexpr std::size_t longest_line = 65'536;
/// Of one reply, nested ones among them. Each takes a few dozen times the three bytes that it may arrive in; the
/// holders of one semaphore are told in one reply, five for each.
constexpr std::size_t most_values = std::size_t{1} << 21;

/// Of what is a value by itself, and ends with its line.
constexpr bool is_line(char type)
{
    return type == '+' || type == ':' || type == '_' || type == '-' || type == ',' || type == '#' || type == '(';
}

/// Where the next frame begins, if a short one begins here and all of it is there.
std::size_t behind_short_line(std::string_view bytes, std::size_t at)
{
    constexpr std::size_t longest = 32;
    if (!is_line(bytes[at]))
        return at;
    const auto limit = std::min(bytes.size() - at, longest) + at;
    auto end = at + 1;
    while (end < limit && bytes[end] != '\r')
        ++end;
    return end + 1 < limit && bytes[end + 1] == '\n' ? end + 2 : at;
}

} // namespace

bool framing::accept(std::string_view bytes) noexcept
{
    // Every byte that is received passes here, most of them in leaps.
    for (std::size_t at = 0; at < bytes.size();) {
        if (now_ == place::type && !count_value()) {
            now_ = place::refused;
        } else if (const auto next = now_ == place::type ? behind_short_line(bytes, at) : at; next != at) {
            at = next;
        } else if (now_ == place::payload) {
            const auto passed = std::min(size_, bytes.size() - at);
            at += passed;
            size_ -= passed;
            if (size_ == 0)
                now_ = place::payload_return;
        } else if (now_ == place::line) {
            const auto end = std::min(bytes.find('\r', at), bytes.size());
            size_ += end - at;
            at = end + 1;
            if (size_ > longest_line)
                now_ = place::refused;
            else if (end < bytes.size())
                now_ = place::line_feed;
        } else {
            now_ = step(bytes[at++]);
        }
        if (now_ == place::refused)
            return false;
    }
    return now_ != place::refused;
}

framing::place framing::step(char next) noexcept
{
    switch (now_) {
    case place::type:
        return begin(next);
    case place::line_feed:
        if (next == '\n')
            return place::type;
        // A line ends with both; one alone belongs to the value.
        return next == '\r' ? place::line_feed : place::line;
    case place::count:
        return count(next);
    case place::count_line_feed:
        if (next != '\n')
            return place::refused;
        if (bulk_)
            return size_ > 0 ? place::payload : place::payload_return;
        expected_ += pairs_ ? 2 * size_ : size_;
        return place::type;
    case place::payload_return:
        return next == '\r' ? place::payload_line_feed : place::refused;
    case place::payload_line_feed:
        return next == '\n' ? place::type : place::refused;
    case place::line:
    case place::payload:
    case place::refused:
        break;
    }
    return place::refused;
}

bool framing::count_value() noexcept
{
    if (expected_ == 0) {
        expected_ = 1;
        values_ = 0;
    }
    --expected_;
    return ++values_ <= most_values;
}

framing::place framing::begin(char type) noexcept
{
    size_ = 0;
    digits_ = 0;
    if (is_line(type))
        return place::line;
    switch (type) {
    case '$':
    case '=':
    case '!':
        bulk_ = true;
        return place::count;
    case '*':
    case '%':
    case '~':
    case '>':
        bulk_ = false;
        pairs_ = type == '%';
        return place::count;
    default:
        return place::refused;
    }
}

framing::place framing::count(char digit) noexcept
{
    if (digit == '\r')
        return digits_ > 0 ? place::count_line_feed : place::refused;
    if (digit < '0' || digit > '9' || ++digits_ > most_digits)
        return place::refused;
    size_ = size_ * 10 + static_cast<std::size_t>(digit - '0');
    return place::count;
}

} // namespace colock::redis::detail
