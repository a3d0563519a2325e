// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "report.hpp"

#include <boost/json/src.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace json = boost::json;

namespace bench {

namespace {

/// Formats a number with three significant digits, or as a whole number.
std::string formatted(double value)
{
    const int decimals = value < 10.0 ? 2 : value < 100.0 ? 1 : 0;
    std::ostringstream text;
    text << std::fixed << std::setprecision(decimals) << value;
    return text.str();
}

std::string with_unit(double value, const std::string& unit)
{
    return unit.empty() ? formatted(value) : formatted(value) + ' ' + unit;
}

} // namespace

void report::print(std::ostream& out) const
{
    for (const auto& [name, value] : facts_)
        out << name << ": " << value << '\n';
    const auto state = out.flags();
    for (const section& part : sections_) {
        out << '\n' << part.name << '\n';
        for (const measurement& row : part.rows) {
            out << "  " << std::left << std::setw(58) << row.name << std::right << std::setw(10) << formatted(row.value)
                << ' ' << std::left << std::setw(7) << row.unit;
            if (row.limit)
                out << (row.met() ? "within " : "OVER   ") << formatted(*row.limit);
            if (row.lower_limit)
                out << (row.met() ? "at least " : "BELOW    ") << formatted(*row.lower_limit);
            out << '\n';
        }
    }
    out.flags(state);
}

std::string report::markdown() const
{
    std::ostringstream out;
    for (const auto& [name, value] : facts_)
        out << (&name == &facts_.front().first ? "" : "; ") << name << ": " << value;
    out << '\n';
    for (const section& part : sections_) {
        out << "\n| " << part.name << " | measured | limit |\n|---|---:|---:|\n";
        for (const measurement& row : part.rows)
            out << "| " << row.name << " | " << with_unit(row.value, row.unit) << " | "
                << (row.limit ? with_unit(*row.limit, row.unit) : "")
                << (row.lower_limit ? "at least " + with_unit(*row.lower_limit, row.unit) : "") << " |\n";
    }
    return out.str();
}

std::string chart::svg() const
{
    constexpr int label_width = 350, bar_width = 330, line = 26, top = 44;
    double longest = limit.value_or(0.0);
    for (const auto& [name, value] : bars)
        longest = std::max(longest, value);
    const auto scaled = [&](double value) { return static_cast<int>(value / std::max(longest, 1e-9) * bar_width); };

    const int height = top + line * static_cast<int>(bars.size()) + 10;
    std::ostringstream out;
    out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << label_width + bar_width + 90 << "\" height=\""
        << height << "\" font-family=\"sans-serif\" font-size=\"13\">\n"
        << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        << "<text x=\"12\" y=\"24\" font-weight=\"bold\">" << title << "</text>\n";
    int y = top;
    for (const auto& [name, value] : bars) {
        out << "<text x=\"" << label_width - 8 << "\" y=\"" << y + 14 << "\" text-anchor=\"end\">" << name
            << "</text>\n<rect x=\"" << label_width << "\" y=\"" << y << "\" width=\"" << scaled(value)
            << "\" height=\"18\" fill=\"#3b6ea5\"/>\n<text x=\"" << label_width + bar_width + 8 << "\" y=\"" << y + 14
            << "\">" << formatted(value) << ' ' << unit << "</text>\n";
        y += line;
    }
    if (limit) {
        const int x = label_width + scaled(*limit);
        out << "<line x1=\"" << x << "\" y1=\"" << top - 6 << "\" x2=\"" << x << "\" y2=\"" << height - 8
            << "\" stroke=\"#b03030\" stroke-dasharray=\"4 3\"/>\n";
    }
    out << "</svg>\n";
    return out.str();
}

std::vector<std::pair<std::string, double>> report::rows(std::string_view section_prefix, std::string_view unit) const
{
    std::vector<std::pair<std::string, double>> found;
    for (const section& part : sections_) {
        if (!part.name.starts_with(section_prefix))
            continue;
        for (const measurement& row : part.rows)
            if (row.unit == unit)
                found.emplace_back(row.name, row.value);
    }
    return found;
}

std::string report::json() const
{
    json::object facts;
    for (const auto& [name, value] : facts_)
        facts[name] = value;
    json::array sections;
    for (const section& part : sections_) {
        json::array rows;
        for (const measurement& row : part.rows) {
            json::object object{{"name", row.name}, {"value", row.value}, {"unit", row.unit}};
            if (row.limit)
                object["limit"] = *row.limit;
            if (row.lower_limit)
                object["least"] = *row.lower_limit;
            rows.push_back(std::move(object));
        }
        sections.push_back(json::object{{"name", part.name}, {"rows", std::move(rows)}});
    }
    return json::serialize(json::object{{"facts", std::move(facts)}, {"sections", std::move(sections)}});
}

bool report::missed(kind type) const
{
    return std::ranges::any_of(sections_, [type](const section& part) {
        return std::ranges::any_of(
            part.rows, [type](const measurement& row) { return row.type == type && !row.met(); });
    });
}

} // namespace bench
