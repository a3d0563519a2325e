// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace colock::inline v0::redis::detail {

/// Decides how many operations are sent in one batch. A large load is sent in several batches, so that the server works
/// on some of them while the client works on others.
///
/// Thread safety: none.
class batch_size
{
public:
    static constexpr std::size_t max = 128;
    /// Maximum number of batches in flight. Further operations stay in the queue, where they are known to be unsent. A
    /// higher limit would not be faster.
    static constexpr std::size_t max_in_flight = 8;

    /// Returns the size of the next batch.
    /// \param waiting number of operations that wait to be sent
    /// \param in_flight number of operations that have been sent or are being completed
    [[nodiscard]] std::size_t next(std::size_t waiting, std::size_t in_flight) noexcept;
    /// Number of operations that are sent in one batch at the current load.
    [[nodiscard]] std::size_t current() const noexcept;

private:
    /// Recent load: number of operations that wait or are in flight, which decays slowly.
    std::size_t load_ = 0;
};

} // namespace colock::inline v0::redis::detail
