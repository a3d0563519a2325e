// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/lock_rows.hpp"

#include "redis/failures.hpp"
#include "remote/adapter/stored_owner.hpp"

#include <colock/token.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// Turns {key, 'x' or 's', value, remaining} into a status.
std::optional<lock_status> status_from(const settings& config, const reply& row)
{
    if (row.items.size() != 4 || !row.at(0).text.starts_with(config.prefix))
        return std::nullopt;
    lock_status status;
    status.key = row.at(0).text.substr(config.prefix.size());
    if (row.at(3).number >= 0)
        status.remaining = std::chrono::milliseconds(row.at(3).number);
    // Another library's token may begin with any letter, and be of any length.
    if (config.plain())
        return status;
    status.mode = row.at(1).text == "s" ? lock_mode::shared : lock_mode::exclusive;
    const std::size_t before_owner = 2 * token::size + (status.mode == lock_mode::shared ? 1 : 0);
    const std::string_view value = row.at(2).text;
    if (auto owner =
            value.size() > before_owner ? remote::parse_stored_owner(value.substr(before_owner)) : std::nullopt)
        remote::fill(status, std::move(*owner));
    return status;
}

} // namespace

failure_ptr add_rows(const settings& config, const reply& answer, std::vector<lock_status>& to)
{
    if (!answer.is(reply::kind::array))
        return refusal(answer);
    for (const auto& row : answer.items) {
        if (auto status = status_from(config, row))
            to.push_back(std::move(*status));
    }
    return nullptr;
}

} // namespace colock::inline v0::redis::detail
