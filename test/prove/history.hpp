// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace prove {

using colock::lease_clock;

/// One line of a history: a JSON object whose member `t` is the time, in nanoseconds of colock::lease_clock, which all
/// processes share.
class entry
{
public:
    entry() : text_("{\"t\":" + std::to_string(lease_clock::now().time_since_epoch().count())) {}

    template <std::integral Number>
    entry& add(std::string_view name, Number number)
    {
        begin(name);
        if constexpr (std::same_as<Number, bool>)
            text_ += number ? "true" : "false";
        else
            text_ += std::to_string(number);
        return *this;
    }
    /// The text must not contain characters that JSON escapes.
    entry& add(std::string_view name, std::string_view text)
    {
        begin(name);
        ((text_ += '"') += text) += '"';
        return *this;
    }
    entry& add(std::string_view name, const char* text) { return add(name, std::string_view(text)); }
    entry& add(std::string_view name, const std::vector<std::string>& texts)
    {
        begin(name);
        text_ += '[';
        for (const auto& each : texts)
            (((text_ += text_.back() == '[' ? "" : ",") += '"') += each) += '"';
        text_ += ']';
        return *this;
    }
    /// Adds the end of a lease; 0 if the lease does not end.
    entry& add(std::string_view name, lease_clock::time_point at)
    {
        return add(name, at == lease_clock::time_point::max() ? 0 : at.time_since_epoch().count());
    }

    [[nodiscard]] std::string line() const { return text_ + "}\n"; }

private:
    void begin(std::string_view name) { ((text_ += ",\"") += name) += "\":"; }

    std::string text_;
};

/// The history of one process: a file that test/prove/check.py reads. Every line is written at once, so that the
/// history is complete when the process is killed.
class history
{
public:
    explicit history(const std::filesystem::path& file) : file_(file) {}

    void write(const entry& written) { file_ << written.line() << std::flush; }

private:
    std::ofstream file_;
};

} // namespace prove
