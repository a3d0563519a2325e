// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/adapter/stored_owner.hpp"

#include "remote/adapter/stored_time.hpp"
#include "util/cursor.hpp"

#include <chrono>
#include <ctime>
#include <utility>

namespace colock::inline v0::remote {

namespace {

constexpr std::size_t created_digits = 11;

} // namespace

std::int64_t wall_clock_ms() noexcept
{
    // The coarse clock has the resolution of a kernel tick, which is sufficient for people, and costs a third of the
    // exact clock.
    ::timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

std::size_t stored_owner_size(const owner_data& owner) noexcept
{
    return created_digits + owner.owner.size() + owner.host.size() + owner.comment.size() + owner.group.size() + 3;
}

void append_stored_owner(std::string& to, const owner_data& owner, std::int64_t created)
{
    const auto start = to.size();
    to.resize(start + created_digits);
    for (std::size_t i = to.size(); i > start; created >>= 4)
        to[--i] = "0123456789abcdef"[created & 15];
    to += owner.owner;
    (to += '\0') += owner.host;
    (to += '\0') += owner.comment;
    (to += '\0') += owner.group;
}

std::optional<stored_owner> parse_stored_owner(std::string_view text)
{
    if (text.size() < created_digits)
        return std::nullopt;
    const auto created = detail::read_number(text.substr(0, created_digits), 16);
    if (!created)
        return std::nullopt;
    stored_owner parsed{.created = static_cast<std::int64_t>(*created)};
    text.remove_prefix(created_digits);
    for (auto* field : {&parsed.owner.owner, &parsed.owner.host, &parsed.owner.comment, &parsed.owner.group}) {
        const auto stop = text.find('\0');
        field->assign(text.substr(0, stop));
        text.remove_prefix(stop == std::string_view::npos ? text.size() : stop + 1);
    }
    return parsed;
}

void fill(lock_status& status, stored_owner from)
{
    status.owner = std::move(from.owner.owner);
    status.host = std::move(from.owner.host);
    status.comment = std::move(from.owner.comment);
    status.group = std::move(from.owner.group);
    status.created = stored_time(from.created);
}

} // namespace colock::inline v0::remote
