// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/status.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::detail {

/// The data that go from one process to another with a lock.
struct ticket_content
{
    /// Name of the adapter.
    std::string backend{};
    std::string key{};
    /// Id of the lock's group; empty if it has none.
    std::string group{};
    lock_mode mode = lock_mode::exclusive;
    std::size_t max_holders = 0;
    /// 0: until released.
    std::chrono::milliseconds ttl{0};
    /// The data of `export_outcome`.
    std::string backend_ticket{};

    friend bool operator==(const ticket_content&, const ticket_content&) = default;
};

/// Returns the ticket: printable ASCII without blanks, whatever the members contain.
[[nodiscard]] std::string to_ticket(const ticket_content& content);
/// Returns nothing unless `ticket` is exactly the result of `to_ticket`.
[[nodiscard]] std::optional<ticket_content> parse_ticket(std::string_view ticket);

} // namespace colock::inline v0::detail
