// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/url_option_parser.hpp"

#include "util/option_errors.hpp"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>

namespace colock::inline v0::remote {

namespace {

using std::chrono::milliseconds;

struct unit
{
    std::string_view name;
    milliseconds::rep factor;
};

constexpr unit units[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

/// Parses the digits at the beginning, and returns the text after them.
/// \param wrong the refusal of a text without digits
template <std::unsigned_integral Number>
std::string_view parse_digits(const option_text& from, Number& to, std::string_view wrong)
{
    const std::string_view text = from.value;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (error == std::errc::result_out_of_range)
        from.refuse("is too large");
    if (error != std::errc())
        from.refuse(wrong);
    return text.substr(static_cast<std::size_t>(end - text.data()));
}

} // namespace

void option_text::refuse(std::string_view reason) const
{
    from.refuse("the URL's " + std::string(name) + " " + std::string(reason));
}

void parse(const option_text& from, milliseconds& to)
{
    if (from.value == "max") {
        to = milliseconds::max();
        return;
    }
    constexpr std::string_view wrong = "is not a duration; write a whole number and a unit: 500ms, 2s, 5m or 1h";
    std::uint64_t number = 0;
    const auto name = parse_digits(from, number, wrong);
    if (name.empty())
        from.refuse("has no unit; write 500ms, 2s, 5m or 1h");
    const auto* const found = std::ranges::find(units, name, &unit::name);
    if (found == std::ranges::end(units))
        from.refuse(wrong);
    if (number > static_cast<std::uint64_t>(milliseconds::max().count() / found->factor))
        from.refuse("is too large");
    to = milliseconds(static_cast<milliseconds::rep>(number) * found->factor);
}

void parse(const option_text& from, std::size_t& to)
{
    constexpr std::string_view wrong = "is not a whole number; write digits only";
    if (!parse_digits(from, to, wrong).empty())
        from.refuse(wrong);
}

void parse(const option_text& from, std::string& to)
{
    to = from.value;
}

void use_program_value(
    std::string& in_url, const std::string& in_program, std::string_view name, std::string_view backend)
{
    if (in_program.empty())
        return;
    if (!in_url.empty() && in_url != in_program)
        detail::refuse_options(backend, "the URL's " + std::string(name) + " " + std::string(differs));
    in_url = in_program;
}

std::size_t parse_choice(const option_text& from, std::span<const std::string_view> names)
{
    const auto found = std::ranges::find(names, from.value);
    if (found != names.end())
        return static_cast<std::size_t>(found - names.begin());
    std::string all;
    for (const auto each : names)
        (all += all.empty() ? "" : ", ") += each;
    from.refuse("is none of " + all);
}

} // namespace colock::inline v0::remote
