// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace colock::inline v0::remote {

/// Reason for the rejection of an option that both the URL and the program give.
inline constexpr std::string_view differs =
    "differs from the value that the program has set; give it in one of the two places";

/// Value that the query of a URL gives to an option.
struct option_text
{
    const url& from;
    std::string_view name;
    /// Decoded. Never shown in an error message, because it may be a password.
    std::string value;

    /// \param reason continues the sentence "the URL's <name> ..."
    [[noreturn]] void refuse(std::string_view reason) const;
};

// Each overload of parse() reads the value, and throws `validation_error` if its form is wrong. The range is checked
// later, together with the ranges of the options that are given in the program.

/// A whole number with a unit (`ms`, `s`, `m` or `h`), or `max` for the longest duration.
void parse(const option_text& from, std::chrono::milliseconds& to);
void parse(const option_text& from, std::size_t& to);
void parse(const option_text& from, std::string& to);
template <class Value>
void parse(const option_text& from, std::optional<Value>& to)
{
    parse(from, to.emplace());
}
/// Returns the index of the value in `names`.
[[nodiscard]] std::size_t parse_choice(const option_text& from, std::span<const std::string_view> names);

/// Uses the value that the program has set, if there is one. Rejects a value that differs from that of the URL.
/// \param in_url the value of the URL, or empty
void use_program_value(
    std::string& in_url, const std::string& in_program, std::string_view name, std::string_view backend);

/// Rejects an option that the program has set to another value than the URL.
template <class Value>
void store(const option_text& from, Value& to, const Value& unset, Value value)
{
    if (to != unset && to != value)
        from.refuse(differs);
    to = std::move(value);
}

/// Stores the value in the member that `Path` leads to, such as `&options::tls, &tls_options::ca_file`.
template <auto... Path, class Options>
void set_member(Options& to, const option_text& from)
{
    const Options unset;
    auto value = (unset.*....*Path);
    parse(from, value);
    store(from, (to.*....*Path), (unset.*....*Path), std::move(value));
}

/// Stores the value of an enumeration in a member. `Names` contains the names of its enumerators in the order of their
/// values, from 0.
template <const auto& Names, auto Member, class Options>
void set_choice(Options& to, const option_text& from)
{
    const Options unset;
    using choice = std::remove_cvref_t<decltype(to.*Member)>;
    store(from, to.*Member, unset.*Member, static_cast<choice>(parse_choice(from, Names)));
}

/// An option that the query of a URL can give. Its name is that of the member of the backend's options.
template <class Options>
struct url_option
{
    std::string_view name;
    void (*set)(Options& to, const option_text& from);
};

/// Returns the names of the options, for messages.
template <class Options, std::size_t Count>
[[nodiscard]] std::string names_of(const url_option<Options> (&known)[Count])
{
    std::string names;
    for (const auto& each : known)
        (names += names.empty() ? "" : ", ") += each.name;
    return names;
}

/// Stores the options that the query of a URL gives, and returns the URL without them. Parameters that are not in
/// `known` stay in the URL. Options that the URL does not give keep their values.
/// \throws validation_error `invalid_options` if an option is given twice, if its value cannot be parsed, or if it
///     differs from a value in `to` other than the default
template <class Options, std::size_t Count>
[[nodiscard]] std::string take_url_options(const url& from, const url_option<Options> (&known)[Count], Options& to)
{
    std::vector<std::string_view> taken;
    std::string others;
    for (const auto& each : from.query()) {
        const auto* const option = std::ranges::find(known, each.name, &url_option<Options>::name);
        if (option == std::ranges::end(known)) {
            ((((others += others.empty() ? '?' : '&') += each.name) += '=') += each.value);
            continue;
        }
        const option_text text{from, option->name, from.decode(each.value, option->name)};
        if (std::ranges::find(taken, option->name) != taken.end())
            text.refuse("is given twice");
        option->set(to, text);
        taken.push_back(option->name);
    }
    return from.with_query(others);
}

} // namespace colock::inline v0::remote
