// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/ticket.hpp"

#include "util/cursor.hpp"

#include <boost/algorithm/hex.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace colock::inline v0::detail {

namespace {

/// Marks a ticket, and ends with the version of the ticket format. Increase the version with each change of the format.
constexpr std::string_view prefix = "colock1";
/// Maximum size of `backend_ticket` in bytes. The key has no such limit, because an adapter may allow any length.
constexpr std::size_t max_proof = 16 * 1024;

void append_hex(std::string& to, std::string_view bytes)
{
    boost::algorithm::hex_lower(bytes, std::back_inserter(to += '.'));
}

bool read_hex(std::string_view from, std::string& to)
{
    try {
        boost::algorithm::unhex(from, std::back_inserter(to));
        return true;
    } catch (const boost::algorithm::hex_decode_error&) {
        return false;
    }
}

} // namespace

std::string to_ticket(const ticket_content& content)
{
    std::string ticket(prefix);
    append_hex(ticket, content.backend);
    append_hex(ticket, content.key);
    append_hex(ticket, content.group);
    (ticket += '.') += content.mode == lock_mode::shared ? 's' : 'x';
    (ticket += '.') += std::to_string(content.max_holders);
    (ticket += '.') += std::to_string(content.ttl.count());
    append_hex(ticket, content.backend_ticket);
    return ticket;
}

std::optional<ticket_content> parse_ticket(std::string_view ticket)
{
    std::array<std::string_view, 8> parts{};
    if (std::ranges::count(ticket, '.') != parts.size() - 1)
        return std::nullopt;
    auto rest = ticket;
    for (auto& part : parts) {
        const auto end = std::min(rest.find('.'), rest.size());
        part = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (parts[7].size() > 2 * max_proof)
        return std::nullopt;
    ticket_content content;
    const auto max_holders = read_number(parts[5]), ttl = read_number(parts[6]);
    const bool is_read = max_holders && ttl && read_hex(parts[1], content.backend) && read_hex(parts[2], content.key) &&
                         read_hex(parts[3], content.group) && read_hex(parts[7], content.backend_ticket);
    if (!is_read)
        return std::nullopt;
    content.mode = parts[4] == "s" ? lock_mode::shared : lock_mode::exclusive;
    content.max_holders = *max_holders;
    content.ttl = std::chrono::milliseconds(*ttl);
    // Accepts only the canonical form, because some fields can be written in several ways.
    return to_ticket(content) == ticket ? std::optional(std::move(content)) : std::nullopt;
}

} // namespace colock::inline v0::detail
