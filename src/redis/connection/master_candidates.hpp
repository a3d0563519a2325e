// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/url.hpp"

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Decides in which order the addresses that Sentinels name are tried. It performs no I/O and reads no clock.
///
/// Thread safety: none.
class master_candidates
{
public:
    explicit master_candidates(std::size_t sentinel_count) : sentinels_(sentinel_count) {}

    /// Stores the address that a Sentinel has named. Sentinels are numbered in the order of the URL.
    void add_address(std::size_t sentinel, endpoint address);
    /// Stores why a Sentinel has named no address.
    void add_failure(std::size_t sentinel, failure_ptr failure);

    /// Returns whether an address may be tried: more than half of all Sentinels name the same one, or each has answered
    /// or failed. A few answers are not enough: the first of them may be that of a Sentinel that was cut off.
    [[nodiscard]] bool is_decided() const noexcept;
    /// Returns whether every Sentinel has answered or failed.
    [[nodiscard]] bool is_complete() const noexcept;
    /// Returns the address that most Sentinels name of those that were not tried yet, and marks it as tried. If several
    /// have the same number of Sentinels, it is the one that the first Sentinel of the URL names. Empty if there is
    /// none.
    [[nodiscard]] std::optional<endpoint> take_next();
    /// Forgets the answers of all Sentinels, because they are asked again. They may name `current` again, but not after
    /// they have named another address.
    void begin_again(const endpoint& current);
    /// Failures of the Sentinels, in the order of the URL.
    [[nodiscard]] std::vector<failure_ptr> failures() const;

private:
    struct sentinel_state
    {
        std::optional<endpoint> address{};
        failure_ptr failure{};
    };

    std::vector<sentinel_state> sentinels_;
    std::vector<endpoint> tried_{};
    /// The `current` of begin_again, until the next address is taken.
    std::optional<endpoint> confirmed_{};
};

} // namespace colock::inline v0::redis::detail
