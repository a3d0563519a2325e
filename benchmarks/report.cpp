// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "report.hpp"

#include <boost/json/src.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace json = boost::json;

namespace bench {

void report::print(std::ostream& out) const
{
    for (const auto& [name, value] : facts_)
        out << name << ": " << value << '\n';
    const auto state = out.flags();
    out << std::fixed;
    for (const section& part : sections_) {
        out << '\n' << part.name << '\n';
        for (const measurement& row : part.rows) {
            const int digits = row.value < 100.0 ? 2 : 0;
            out << "  " << std::left << std::setw(58) << row.name << std::right << std::setprecision(digits)
                << std::setw(12) << row.value << ' ' << std::left << std::setw(8) << row.unit;
            if (row.limit) {
                out << (row.met() ? "within " : "OVER   ") << std::setprecision(*row.limit < 100.0 ? 1 : 0)
                    << *row.limit;
            }
            out << '\n';
        }
    }
    out.flags(state);
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
            rows.push_back(std::move(object));
        }
        sections.push_back(json::object{{"name", part.name}, {"rows", std::move(rows)}});
    }
    return json::serialize(json::object{{"facts", std::move(facts)}, {"sections", std::move(sections)}});
}

bool report::missed(kind how) const
{
    return std::ranges::any_of(sections_, [how](const section& part) {
        return std::ranges::any_of(part.rows, [how](const measurement& row) { return row.how == how && !row.met(); });
    });
}

} // namespace bench
