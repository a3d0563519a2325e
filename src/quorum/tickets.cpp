// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/tickets.hpp"

#include <charconv>
#include <system_error>
#include <utility>

namespace colock::inline v0::quorum {

std::string join_tickets(const std::vector<std::string>& parts)
{
    std::string joined;
    for (const auto& each : parts)
        ((joined += std::to_string(each.size())) += ':') += each;
    return joined;
}

std::optional<std::vector<std::string>> split_tickets(std::string_view joined, std::size_t nodes)
{
    std::vector<std::string> parts;
    while (!joined.empty() && parts.size() < nodes) {
        std::size_t size = 0;
        const auto [end, error] = std::from_chars(joined.data(), joined.data() + joined.size(), size);
        joined.remove_prefix(static_cast<std::size_t>(end - joined.data()));
        if (error != std::errc() || !joined.starts_with(':') || size >= joined.size())
            return std::nullopt;
        parts.emplace_back(joined.substr(1, size));
        joined.remove_prefix(1 + size);
    }
    return joined.empty() && parts.size() == nodes ? std::optional(std::move(parts)) : std::nullopt;
}

} // namespace colock::inline v0::quorum
