// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace command {

bool use_colours(int descriptor)
{
    const char* const refused = std::getenv("NO_COLOR");
    return ::isatty(descriptor) == 1 && (!refused || *refused == '\0');
}

std::string in_words(std::chrono::nanoseconds span)
{
    struct unit
    {
        std::chrono::seconds length;
        const char* name;
    };
    static constexpr std::array units{unit{std::chrono::hours(24), " d"}, unit{std::chrono::hours(1), " h"},
        unit{std::chrono::minutes(1), " min"}, unit{std::chrono::seconds(1), " s"}};
    auto rest = std::max(std::chrono::duration_cast<std::chrono::seconds>(span), std::chrono::seconds(0));
    const auto* const larger = std::ranges::find_if(units, [rest](const unit& each) { return each.length <= rest; });
    if (larger == units.end())
        return "0 s";
    std::string text = std::to_string(rest / larger->length) + larger->name;
    rest %= larger->length;
    if (const auto* const smaller = larger + 1; smaller != units.end() && rest >= smaller->length)
        (text += ' ') += std::to_string(rest / smaller->length) + smaller->name;
    return text;
}

void progress_line::clear()
{
    if (std::exchange(is_shown_, false))
        static_cast<void>(std::fputs("\r\033[K", stderr));
}

void progress_line::show(const std::string& text)
{
    is_shown_ = true;
    static_cast<void>(std::fputs(("\r\033[K" + text).c_str(), stderr));
}

} // namespace command
