// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/status.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace colock::detail {

/// What goes from one process to another with a lock.
struct moving_lock
{
    /// Its adapter's name.
    std::string backend{};
    std::string key{};
    /// Of which group it is; empty: of none.
    std::string group{};
    lock_mode mode = lock_mode::exclusive;
    std::size_t max_holders = 0;
    /// 0: until released.
    std::chrono::milliseconds ttl{0};
    /// The adapter's part.
    std::string proof{};

    friend bool operator==(const moving_lock&, const moving_lock&) = default;
};

/// Of printable ASCII, without blanks, whatever the parts contain.
[[nodiscard]] std::string to_ticket(const moving_lock& moving);
/// Nothing, unless it is what `to_ticket` makes of the result, to the letter.
[[nodiscard]] std::optional<moving_lock> parse_ticket(std::string_view ticket);

} // namespace colock::detail
