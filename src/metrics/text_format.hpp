// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::detail {

/// Name and value of a label of a sample.
using metric_label = std::pair<std::string_view, std::string_view>;

/// Writes metrics in the text format of Prometheus, version 0.0.4. The samples of a family follow its header.
class text_writer
{
public:
    /// Writes the header of a family.
    /// \param type `counter`, `gauge` or `histogram`
    void begin_family(std::string_view name, std::string_view type, std::string_view help);
    /// Writes a sample of the current family.
    void add(std::initializer_list<metric_label> labels, std::uint64_t value);
    /// Writes a sample of the current histogram, whose name has this suffix.
    void add_part(std::string_view suffix, std::initializer_list<metric_label> labels, std::string_view value);

    [[nodiscard]] std::string finish() && { return std::move(text_); }

private:
    std::string text_;
    std::string family_;
};

/// Returns a duration in seconds, as the text format writes numbers. Does not depend on the locale.
[[nodiscard]] std::string in_seconds(double seconds);
[[nodiscard]] std::string in_seconds(std::chrono::nanoseconds span);

} // namespace colock::inline v0::detail
