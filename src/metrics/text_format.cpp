// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "metrics/text_format.hpp"

#include <charconv>

namespace colock::inline v0::detail {

namespace {

void append_escaped(std::string& to, std::string_view value)
{
    for (const char each : value) {
        if (each == '\n') {
            to += "\\n";
            continue;
        }
        if (each == '"' || each == '\\')
            to += '\\';
        to += each;
    }
}

} // namespace

void text_writer::begin_family(std::string_view name, std::string_view type, std::string_view help)
{
    family_ = name;
    text_.append("# HELP ").append(name).append(" ").append(help).append("\n");
    text_.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void text_writer::add(std::initializer_list<metric_label> labels, std::uint64_t value)
{
    add_part({}, labels, std::to_string(value));
}

void text_writer::add_part(std::string_view suffix, std::initializer_list<metric_label> labels, std::string_view value)
{
    text_.append(family_).append(suffix);
    char before = '{';
    for (const auto& [name, content] : labels) {
        text_.append(1, std::exchange(before, ',')).append(name).append("=\"");
        append_escaped(text_, content);
        text_ += '"';
    }
    if (labels.size() > 0)
        text_ += '}';
    text_.append(" ").append(value).append("\n");
}

std::string in_seconds(double seconds)
{
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, seconds).ptr};
}

std::string in_seconds(std::chrono::nanoseconds span)
{
    return in_seconds(std::chrono::duration<double>(span).count());
}

} // namespace colock::inline v0::detail
