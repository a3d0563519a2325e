// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/node_data.hpp"

#include <charconv>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

std::string format_node_data(const claim& claim, std::chrono::milliseconds ttl)
{
    auto text = std::to_string(ttl.count()) + ' ' + std::to_string(claim.max_holders()) + '\n';
    remote::append_stored_owner(text, claim.owner(), remote::wall_clock_ms());
    return text;
}

std::optional<node_data> parse_node_data(std::string_view text)
{
    node_data result;
    std::chrono::milliseconds::rep ttl = 0;
    const auto* const end = text.data() + text.size();
    auto [at, error] = std::from_chars(text.data(), end, ttl);
    if (error != std::errc() || ttl < 0 || at == end || *at != ' ')
        return std::nullopt;
    const auto limit = std::from_chars(at + 1, end, result.max_holders);
    if (limit.ec != std::errc() || limit.ptr == end || *limit.ptr != '\n')
        return std::nullopt;
    result.ttl = std::chrono::milliseconds(ttl);
    auto owner = remote::parse_stored_owner(text.substr(static_cast<std::size_t>(limit.ptr + 1 - text.data())));
    if (!owner)
        return std::nullopt;
    result.owner = std::move(*owner);
    return result;
}

} // namespace colock::inline v0::zookeeper::detail
