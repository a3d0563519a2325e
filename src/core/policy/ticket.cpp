// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/ticket.hpp"

#include "util/cursor.hpp"

#include <boost/algorithm/hex.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace colock::detail {

namespace {

/// Its number grows with each change of what follows.
constexpr std::string_view prefix = "colock1";
/// An adapter's part, in bytes. Its keys may be of any length.
constexpr std::size_t longest_proof = 16 * 1024;

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

std::string to_ticket(const moving_lock& moving)
{
    std::string ticket(prefix);
    append_hex(ticket, moving.backend);
    append_hex(ticket, moving.key);
    append_hex(ticket, moving.group);
    (ticket += '.') += moving.mode == lock_mode::shared ? 's' : 'x';
    (ticket += '.') += std::to_string(moving.max_holders);
    (ticket += '.') += std::to_string(moving.ttl.count());
    append_hex(ticket, moving.proof);
    return ticket;
}

std::optional<moving_lock> parse_ticket(std::string_view ticket)
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
    if (parts[7].size() > 2 * longest_proof)
        return std::nullopt;
    moving_lock moving;
    const auto max_holders = read_number(parts[5]), ttl = read_number(parts[6]);
    const bool is_read = max_holders && ttl && read_hex(parts[1], moving.backend) && read_hex(parts[2], moving.key) &&
                         read_hex(parts[3], moving.group) && read_hex(parts[7], moving.proof);
    if (!is_read)
        return std::nullopt;
    moving.mode = parts[4] == "s" ? lock_mode::shared : lock_mode::exclusive;
    moving.max_holders = *max_holders;
    moving.ttl = std::chrono::milliseconds(*ttl);
    // Whatever else may be read in two ways is written in one.
    return to_ticket(moving) == ticket ? std::optional(std::move(moving)) : std::nullopt;
}

} // namespace colock::detail
