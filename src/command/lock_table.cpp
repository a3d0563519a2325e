// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/lock_table.hpp"

#include "command/terminal.hpp"
#include "util/text_escaping.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <tuple>

namespace command {

namespace {

using colock::lock_status;
using colock::detail::json_string;
using colock::detail::printable;

constexpr std::size_t column_count = 8;
using row = std::array<std::string, column_count>;
constexpr std::array<std::string_view, column_count> headings{
    "KEY", "MODE", "OWNER", "HOST", "GROUP", "AGE", "REMAINING", "FENCE"};
/// Maximum number of characters of each column on a terminal.
constexpr std::array<std::size_t, column_count> max_widths{40, 9, 20, 20, 8, 12, 12, 20};

/// Number of characters, counting the first byte of each UTF-8 sequence.
std::size_t width_of(std::string_view text)
{
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Returns the text with at most this number of characters, and "..." if it was longer.
std::string cut(const std::string& text, std::size_t max_width)
{
    if (width_of(text) <= max_width)
        return text;
    std::size_t bytes = text.size();
    while (bytes > 0 && (width_of(std::string_view(text).substr(0, bytes)) > max_width))
        --bytes;
    return text.substr(0, bytes) + "...";
}

row row_of(const lock_status& lock, std::chrono::system_clock::time_point now)
{
    const auto or_dash = [](std::string text) { return text.empty() ? "-" : text; };
    return {printable(lock.key), colock::to_string(lock.mode), or_dash(printable(lock.owner)),
        or_dash(printable(lock.host)), or_dash(printable(lock.group)),
        lock.created ? in_words(now - *lock.created) : "-", lock.remaining ? in_words(*lock.remaining) : "-",
        lock.fence != 0 ? std::to_string(lock.fence) : "-"};
}

std::string utc(std::chrono::system_clock::time_point time)
{
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text.data(), size};
}

} // namespace

void sort_by_key(std::vector<lock_status>& locks)
{
    std::ranges::sort(locks, {}, [](const lock_status& each) { return std::tie(each.key, each.created, each.fence); });
}

void print_table(std::ostream& out, const std::vector<lock_status>& locks, bool terminal)
{
    if (locks.empty())
        return;
    const auto now = std::chrono::system_clock::now();
    std::vector<row> rows;
    for (const lock_status& each : locks) {
        rows.push_back(row_of(each, now));
        for (std::size_t column = 0; terminal && column < column_count; ++column)
            rows.back()[column] = cut(rows.back()[column], max_widths[column]);
    }
    std::array<std::size_t, column_count> widths{};
    for (std::size_t column = 0; column < column_count; ++column) {
        widths[column] = headings[column].size();
        for (const row& each : rows)
            widths[column] = std::max(widths[column], width_of(each[column]));
    }
    const auto print_row = [&](const auto& cells) {
        for (std::size_t column = 0; column < column_count; ++column) {
            out << cells[column];
            if (column + 1 < column_count)
                out << std::string(widths[column] - width_of(cells[column]) + 2, ' ');
        }
    };
    const bool bold = terminal && use_colours(STDOUT_FILENO);
    out << (bold ? "\033[1m" : "");
    print_row(headings);
    out << (bold ? "\033[0m" : "") << '\n';
    for (const row& each : rows) {
        print_row(each);
        out << '\n';
    }
}

void print_json(std::ostream& out, const std::vector<lock_status>& locks)
{
    for (const lock_status& each : locks) {
        out << "{\"key\":" << json_string(each.key) << ",\"mode\":" << json_string(colock::to_string(each.mode))
            << ",\"owner\":" << json_string(each.owner) << ",\"host\":" << json_string(each.host)
            << ",\"comment\":" << json_string(each.comment) << ",\"group\":" << json_string(each.group)
            << ",\"created\":" << (each.created ? json_string(utc(*each.created)) : "null")
            << ",\"renewed\":" << (each.renewed ? json_string(utc(*each.renewed)) : "null")
            << ",\"remaining_ms\":" << (each.remaining ? std::to_string(each.remaining->count()) : "null")
            << ",\"fence\":" << (each.fence != 0 ? std::to_string(each.fence) : "null") << "}\n";
    }
}

} // namespace command
