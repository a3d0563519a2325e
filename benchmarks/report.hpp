// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// How a number is determined. A counted number that misses its limit fails a run with `--check` or
/// `--check-counts`, a timed number only with `--check`.
enum class kind : unsigned char
{
    /// A count, which is the same in every run.
    counted,
    /// A ratio of times, or CPU time of the event loop. It needs an idle machine.
    timed,
};

struct measurement
{
    std::string name;
    double value = 0.0;
    std::string unit;
    /// The upper limit.
    std::optional<double> limit{};
    kind type = kind::timed;
    /// The lower limit.
    std::optional<double> lower_limit{};

    [[nodiscard]] bool met() const { return (!limit || value <= *limit) && (!lower_limit || value >= *lower_limit); }
};

struct section
{
    std::string name;
    std::vector<measurement> rows;
};

/// A horizontal bar chart, for the pages of docs/.
struct chart
{
    std::string title;
    /// Name and value of each bar.
    std::vector<std::pair<std::string, double>> bars;
    std::string unit;
    /// Position of a vertical line, if any.
    std::optional<double> limit{};

    [[nodiscard]] std::string svg() const;
};

/// The results of a run. They are printed as a table and written as JSON.
class report
{
public:
    /// Adds a property of the run, for example an option or a property of the machine.
    void fact(std::string name, std::string value) { facts_.emplace_back(std::move(name), std::move(value)); }
    /// Starts a section; `add` adds to the last one.
    void begin(std::string name) { sections_.push_back({std::move(name), {}}); }
    void add(measurement row) { sections_.back().rows.push_back(std::move(row)); }

    void print(std::ostream& out) const;
    [[nodiscard]] std::string json() const;
    [[nodiscard]] std::string markdown() const;
    /// Returns whether a limit of a row of this kind was missed.
    [[nodiscard]] bool missed(kind type) const;
    /// Returns the rows with this unit in sections whose name begins with the prefix.
    [[nodiscard]] std::vector<std::pair<std::string, double>> rows(
        std::string_view section_prefix, std::string_view unit) const;

private:
    std::vector<std::pair<std::string, std::string>> facts_;
    std::vector<section> sections_;
};

} // namespace bench
