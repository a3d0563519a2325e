// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// How a number comes about, and so when it may fail a run.
enum class kind : unsigned char
{
    /// Counted: the same in every run.
    counted,
    /// Timed: a ratio, or the loop's own CPU time; wants a quiet machine.
    timed,
};

struct measurement
{
    std::string name;
    double value = 0.0;
    std::string unit;
    /// The largest that it should be.
    std::optional<double> limit{};
    kind how = kind::timed;
    /// The smallest that it should be.
    std::optional<double> least{};

    [[nodiscard]] bool met() const { return (!limit || value <= *limit) && (!least || value >= *least); }
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
    /// Name and length of each bar.
    std::vector<std::pair<std::string, double>> bars;
    std::string unit;
    /// Where a line is drawn, if anywhere.
    std::optional<double> limit{};

    [[nodiscard]] std::string svg() const;
};

/// What a run found: printed as a table, written as JSON.
class report
{
public:
    /// A fact about the run: an option, the machine.
    void fact(std::string name, std::string value) { facts_.emplace_back(std::move(name), std::move(value)); }
    /// Starts a section; `add` adds to the last one.
    void begin(std::string name) { sections_.push_back({std::move(name), {}}); }
    void add(measurement row) { sections_.back().rows.push_back(std::move(row)); }

    void print(std::ostream& out) const;
    [[nodiscard]] std::string json() const;
    [[nodiscard]] std::string markdown() const;
    /// Whether a limit of a row of that kind was missed.
    [[nodiscard]] bool missed(kind how) const;
    /// The rows of a unit in sections whose name begins so.
    [[nodiscard]] std::vector<std::pair<std::string, double>> rows(
        std::string_view section_prefix, std::string_view unit) const;

private:
    std::vector<std::pair<std::string, std::string>> facts_;
    std::vector<section> sections_;
};

} // namespace bench
