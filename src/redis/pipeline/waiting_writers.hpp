// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/claim.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

namespace colock::inline v0::redis::detail {

/// Remembers keys on which a reader has recently met a waiting writer. Without this, a reader acquires a free lock
/// first and checks for waiting writers in the same request. A stream of such readers would keep the writer out.
///
/// Keys are stored by their hashes, so a different key may be mistaken for a remembered one. Its readers then check for
/// writers before they acquire, which is only slower.
///
/// Thread safety: all members may be called from any thread.
class waiting_writers
{
public:
    void note_writer(const claim& reader) noexcept
    {
        expiry_of(reader).store(
            (reader.operation_start() + memory_duration).time_since_epoch().count(), std::memory_order_relaxed);
    }
    [[nodiscard]] bool may_wait(const claim& reader) noexcept
    {
        return reader.operation_start().time_since_epoch().count() < expiry_of(reader).load(std::memory_order_relaxed);
    }

private:
    /// A key that had a waiting writer is likely to have one again.
    static constexpr lease_clock::duration memory_duration = std::chrono::minutes(1);

    [[nodiscard]] std::atomic<lease_clock::rep>& expiry_of(const claim& reader) noexcept
    {
        return expiries_[reader.key_hash() % expiries_.size()];
    }

    std::array<std::atomic<lease_clock::rep>, 64> expiries_{};
};

} // namespace colock::inline v0::redis::detail
