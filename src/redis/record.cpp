// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/record.hpp"

#include <charconv>
#include <ctime>

namespace colock::redis::detail {

namespace {

constexpr std::size_t created_digits = 11;

/// Nearly all locks of a process have the same owner.
const std::string& written(const std::shared_ptr<const owner_data>& owner)
{
    thread_local std::shared_ptr<const owner_data> last;
    thread_local std::string text;
    if (last != owner) {
        last = nullptr;
        text = owner->owner;
        (text += '\0') += owner->host;
        (text += '\0') += owner->comment;
        (text += '\0') += owner->group;
        last = owner;
    }
    return text;
}

} // namespace

std::int64_t wall_clock_ms() noexcept
{
    // To within a tick of the kernel, which is all that people need, and a third of the price.
    ::timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void append_value(std::string& to, const claim& of, std::int64_t created)
{
    const auto start = to.size();
    to.resize(start + 2 * token::size + created_digits);
    of.token().hex_to(to.data() + start);
    for (std::size_t i = to.size(); i > start + 2 * token::size; created >>= 4)
        to[--i] = "0123456789abcdef"[created & 15];
    to += written(of.shared_owner());
}

std::optional<record> parse_record(std::string_view text)
{
    if (text.size() < created_digits)
        return std::nullopt;
    record parsed;
    const auto [end, error] = std::from_chars(text.data(), text.data() + created_digits, parsed.created, 16);
    if (error != std::errc() || end != text.data() + created_digits)
        return std::nullopt;
    text.remove_prefix(created_digits);
    for (auto* field : {&parsed.owner.owner, &parsed.owner.host, &parsed.owner.comment, &parsed.owner.group}) {
        const auto stop = text.find('\0');
        field->assign(text.substr(0, stop));
        text.remove_prefix(stop == std::string_view::npos ? text.size() : stop + 1);
    }
    return parsed;
}

void push_all(boost::redis::request& request, const std::vector<std::string_view>& words)
{
    request.push_range(words.front(), words.begin() + 1, words.end());
}

} // namespace colock::redis::detail
