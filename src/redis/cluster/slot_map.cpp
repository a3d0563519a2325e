// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/cluster/slot_map.hpp"

#include <string>

namespace colock::inline v0::redis::detail {

std::optional<std::vector<slot_range>> parse_slots(const reply& answer, const endpoint& replier)
{
    if (!answer.is(reply::kind::array))
        return std::nullopt;
    std::vector<slot_range> ranges;
    for (const auto& row : answer.items) {
        // {first, last, {host, port, id, ...} of the master, the same of each replica...}
        const auto first = row.at(0).number, last = row.at(1).number;
        const auto& host = row.at(2).at(0);
        const auto port = row.at(2).at(1).number;
        if (!row.at(1).is(reply::kind::number) || first < 0 || first > last || last >= slot_count || port < 1 ||
            port > 65535)
            return std::nullopt;
        const bool is_known = host.is(reply::kind::text) && !host.text.empty() && host.text != "?";
        ranges.push_back({static_cast<slot_number>(first), static_cast<slot_number>(last),
            {is_known ? host.text : replier.host, std::to_string(port)}});
    }
    return ranges;
}

} // namespace colock::inline v0::redis::detail
