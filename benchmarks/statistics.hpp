// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

namespace bench {

/// Returns the CPU time of the calling thread. Other processes of the machine hardly affect this time.
[[nodiscard]] inline std::chrono::nanoseconds thread_cpu_time() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

[[nodiscard]] inline double median(std::vector<double> values)
{
    if (values.empty())
        return 0.0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Histogram of durations with 16 buckets per power of two. Quantiles are exact to 7 %. Does not allocate.
class histogram
{
public:
    void record(std::chrono::nanoseconds value) noexcept
    {
        const auto count = static_cast<std::uint64_t>(std::max<std::chrono::nanoseconds::rep>(value.count(), 0));
        ++buckets_[index_of(count)];
        ++total_;
    }
    [[nodiscard]] std::uint64_t total() const noexcept { return total_; }

    /// Returns the upper bound of the bucket that contains the quantile.
    [[nodiscard]] std::chrono::nanoseconds quantile(double fraction) const noexcept
    {
        auto left = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(total_)));
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            if (left <= buckets_[i])
                return std::chrono::nanoseconds(upper_edge(i));
            left -= buckets_[i];
        }
        return {};
    }

private:
    static constexpr unsigned step_bits = 4;
    static constexpr std::size_t steps = 1U << step_bits;

    static std::size_t index_of(std::uint64_t value) noexcept
    {
        if (value < steps)
            return value;
        const auto octave = static_cast<unsigned>(std::bit_width(value)) - 1 - step_bits;
        return (octave + 1) * steps + ((value >> octave) & (steps - 1));
    }
    static std::int64_t upper_edge(std::size_t index) noexcept
    {
        if (index < steps)
            return static_cast<std::int64_t>(index);
        const auto octave = index / steps - 1;
        return static_cast<std::int64_t>(((steps + index % steps + 1) << octave) - 1);
    }

    std::array<std::uint64_t, 61 * steps> buckets_{};
    std::uint64_t total_ = 0;
};

} // namespace bench
