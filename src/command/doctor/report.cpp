// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/report.hpp"

#include "util/text_escaping.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iomanip>
#include <string>
#include <string_view>

namespace command {

namespace {

struct style
{
    std::string_view word;
    std::string_view name;
    std::string_view colour;
};

constexpr std::array<style, 3> styles{{
    {"OK  ", "ok", "\033[32m"},
    {"WARN", "warn", "\033[33m"},
    {"FAIL", "fail", "\033[31m"},
}};

const style& style_of(verdict result)
{
    return styles[static_cast<std::size_t>(result)];
}

std::size_t longest(std::span<const finding> lines, std::string finding::* member)
{
    std::size_t size = 0;
    for (const finding& each : lines)
        size = std::max(size, (each.*member).size());
    return size;
}

} // namespace

void print_table(std::ostream& out, std::span<const finding> lines, bool with_colours)
{
    const int server_width = static_cast<int>(longest(lines, &finding::server)) + 2;
    const int check_width = static_cast<int>(longest(lines, &finding::check)) + 2;
    const bool has_one_server =
        std::ranges::all_of(lines, [&lines](const finding& each) { return each.server == lines.front().server; });
    out << std::left;
    for (const finding& each : lines) {
        const style& line_style = style_of(each.result);
        if (with_colours)
            out << line_style.colour << line_style.word << "\033[0m";
        else
            out << line_style.word;
        out << "  ";
        if (!has_one_server)
            out << std::setw(server_width) << each.server;
        out << std::setw(check_width) << each.check << colock::detail::printable(each.value);
        if (!each.remedy.empty())
            out << (each.value.empty() ? "" : ": ") << colock::detail::printable(each.remedy);
        out << '\n';
    }
}

void print_json(std::ostream& out, std::span<const finding> lines)
{
    using colock::detail::json_string;
    for (const finding& each : lines) {
        out << R"({"result":")" << style_of(each.result).name << R"(","server":)" << json_string(each.server)
            << R"(,"check":)" << json_string(each.check) << R"(,"value":)" << json_string(each.value) << R"(,"remedy":)"
            << json_string(each.remedy) << "}\n";
    }
}

} // namespace command
