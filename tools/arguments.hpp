// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace tools {

/// The command line of the examples and the benchmark: `--name value`, `--name=value` and `--flag`.
class arguments
{
public:
    explicit arguments(std::string summary) : summary_(std::move(summary)) {}

    arguments& flag(std::string name, bool& target, std::string help)
    {
        return add({std::move(name), {}, std::move(help), [&target](std::string_view) { return target = true; }});
    }
    arguments& value(std::string name, std::string& target, std::string placeholder, std::string help)
    {
        return add({std::move(name), std::move(placeholder), std::move(help), [&target](std::string_view text) {
                        target = text;
                        return true;
                    }});
    }
    template <class Number>
        requires std::integral<Number> || std::floating_point<Number>
    arguments& value(std::string name, Number& target, std::string placeholder, std::string help,
        std::type_identity_t<Number> smallest, std::type_identity_t<Number> largest)
    {
        return add({std::move(name), std::move(placeholder), std::move(help),
            [&target, smallest, largest](std::string_view text) {
                const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), target);
                return problem == std::errc() && end == text.data() + text.size() && target >= smallest &&
                       target <= largest;
            }});
    }

    /// What the program should exit with at once, if anything: after --help, or after a mistake, which is explained.
    [[nodiscard]] std::optional<int> parse(int count, char** words) const
    {
        for (int i = 1; i < count; ++i) {
            const std::string_view word = words[i];
            if (word == "--help") {
                print_help();
                return 0;
            }
            const auto equals = word.find('=');
            const auto* known = find(word.substr(0, equals));
            if (!known)
                return mistake("unknown option " + std::string(word));
            std::optional<std::string_view> text;
            if (equals != word.npos)
                text = word.substr(equals + 1);
            else if (!known->placeholder.empty() && i + 1 < count)
                text = words[++i];
            if (text.has_value() == known->placeholder.empty() || !known->store(text.value_or("")))
                return mistake("bad value for --" + known->name + (text ? ": " + std::string(*text) : ""));
        }
        return std::nullopt;
    }

private:
    struct option
    {
        std::string name;
        std::string placeholder;
        std::string help;
        std::function<bool(std::string_view)> store;
    };

    arguments& add(option added)
    {
        options_.push_back(std::move(added));
        return *this;
    }
    [[nodiscard]] const option* find(std::string_view word) const
    {
        for (const option& each : options_)
            if (word == "--" + each.name)
                return &each;
        return nullptr;
    }
    void print_help() const
    {
        std::cout << summary_ << "\n\n";
        for (const option& each : options_) {
            std::string line = "  --" + each.name + (each.placeholder.empty() ? "" : " " + each.placeholder);
            line.resize(std::max<std::size_t>(line.size() + 1, 24), ' ');
            std::cout << line << each.help << '\n';
        }
    }
    static int mistake(const std::string& what)
    {
        std::cerr << "error: " << what << "; --help lists the options\n";
        return 2;
    }

    std::string summary_;
    std::vector<option> options_;
};

} // namespace tools
