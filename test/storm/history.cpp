// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "history.hpp"

#include <algorithm>
#include <istream>
#include <ostream>
#include <sstream>

namespace storm {

std::ostream& operator<<(std::ostream& out, const hold& held)
{
    return out << held.key << ' ' << held.shared << ' ' << held.fence << ' ' << held.from << ' ' << held.until;
}

std::istream& operator>>(std::istream& in, hold& held)
{
    return in >> held.key >> held.shared >> held.fence >> held.from >> held.until;
}

std::vector<std::string> check_key(std::vector<hold> holds)
{
    std::ranges::sort(holds, {}, &hold::from);
    std::vector<std::string> violations;
    const auto report = [&](const char* what, const hold& first, const hold& second) {
        std::ostringstream line;
        line << what << ": " << first << " and " << second;
        violations.push_back(line.str());
    };
    // These holds end last, or have the greatest fence, among those that were compared before.
    const hold none;
    const hold* last = &none;
    const hold* last_exclusive = &none;
    const hold* greatest = &none;
    const hold* greatest_exclusive = &none;
    for (const auto& each : holds) {
        const auto& before = each.shared ? *last_exclusive : *last;
        if (each.from < before.until)
            report("two holds at once", before, each);
        const auto& lower = each.shared ? *greatest_exclusive : *greatest;
        if (each.fence <= lower.fence)
            report("fence has not grown", lower, each);
        const auto replace = [&each](const hold*& known, auto member) {
            if (each.*member > known->*member)
                known = &each;
        };
        replace(last, &hold::until);
        replace(greatest, &hold::fence);
        if (!each.shared) {
            replace(last_exclusive, &hold::until);
            replace(greatest_exclusive, &hold::fence);
        }
    }
    return violations;
}

} // namespace storm
