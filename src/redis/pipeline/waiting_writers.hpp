// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/claim.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

namespace colock::redis::detail {

/// On which keys a reader has met a waiting writer of late. A reader that does not know takes a free lock first and
/// looks for writers in the same breath; many of those, one after the other, keep a writer out for as long as they
/// come.
///
/// By hash, so another key may now and then be taken for one of them: its readers then ask before they take.
///
/// Thread safety: all members may be called from any thread.
class waiting_writers
{
public:
    void saw(const claim& reader) noexcept
    {
        place_of(reader).store((reader.sent() + remembered).time_since_epoch().count(), std::memory_order_relaxed);
    }
    [[nodiscard]] bool may_wait(const claim& reader) noexcept
    {
        return reader.sent().time_since_epoch().count() < place_of(reader).load(std::memory_order_relaxed);
    }

private:
    /// Where one has waited, the next is likely.
    static constexpr lease_clock::duration remembered = std::chrono::minutes(1);

    [[nodiscard]] std::atomic<lease_clock::rep>& place_of(const claim& reader) noexcept
    {
        return until_[reader.key_hash() % until_.size()];
    }

    std::array<std::atomic<lease_clock::rep>, 64> until_{};
};

} // namespace colock::redis::detail
