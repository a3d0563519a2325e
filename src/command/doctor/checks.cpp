// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/checks.hpp"

#include <charconv>
#include <cstddef>
#include <system_error>

namespace command {

namespace {

std::string find_text(const std::map<std::string, std::string, std::less<>>& texts, std::string_view name)
{
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
}

finding examine_row(const check& row, const server_values& values, const std::string* warning, bool is_connected)
{
    finding line{.check = std::string(row.name)};
    const bool is_known = row.value_name.empty() || values.has(row.value_name);
    if (is_known && !row.value_name.empty())
        (line.value = values.text(row.value_name)) += row.unit;
    if (warning) {
        line.result = row.if_warned;
        line.remedy = *warning;
    } else if (!row.warning.empty() && !is_connected) {
        line.result = verdict::warn;
        line.remedy = "not checked, because the adapter could not connect";
    } else if (!is_known) {
        const auto reason = values.reason(row.value_name);
        line.result = verdict::warn;
        line.remedy = "not checked" + (reason.empty() ? "" : " (" + reason + ")") + "; run " + std::string(row.command);
    } else if (row.judge) {
        auto [result, remedy] = row.judge(values);
        line.result = result;
        line.remedy = std::move(remedy);
    }
    if (line.value.empty() && line.result == verdict::ok)
        line.value = "allowed";
    return line;
}

} // namespace

std::string server_values::text(std::string_view name) const
{
    return find_text(values_, name);
}

std::string server_values::reason(std::string_view name) const
{
    return find_text(reasons_, name);
}

std::optional<std::int64_t> server_values::number(std::string_view name) const
{
    const auto value = text(name);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    return error == std::errc() ? std::optional(number) : std::nullopt;
}

version version::parse(std::string_view text)
{
    version result;
    const char* const end = text.data() + text.size();
    const auto [point, error] = std::from_chars(text.data(), end, result.major);
    if (error == std::errc() && point != end && *point == '.')
        std::from_chars(point + 1, end, result.minor);
    return result;
}

std::vector<finding> examine(
    std::string_view server, std::span<const check> rows, const server_values& values, const adapter_warnings& warnings)
{
    std::vector<finding> lines;
    std::vector<bool> is_reported(warnings.texts.size());
    const bool is_silent = values.text("answer") == "no";
    for (const check& row : rows) {
        if (is_silent && row.value_name != "answer")
            continue;
        if (row.applies && !row.applies(values))
            continue;
        const std::string* warning = nullptr;
        for (std::size_t i = 0; i < warnings.texts.size() && !row.warning.empty(); ++i) {
            if (warnings.texts[i].find(row.warning) == std::string::npos)
                continue;
            warning = &warnings.texts[i];
            is_reported[i] = true;
        }
        if (warning || row.value_name.empty() || values.has(row.value_name) || !row.command.empty())
            lines.push_back(examine_row(row, values, warning, warnings.are_complete));
    }
    for (std::size_t i = 0; i < warnings.texts.size(); ++i) {
        if (!is_reported[i])
            lines.push_back({.result = verdict::warn, .check = "warning", .remedy = warnings.texts[i]});
    }
    for (finding& each : lines)
        each.server = server;
    return lines;
}

} // namespace command
