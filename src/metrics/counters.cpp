// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "metrics/counters.hpp"

#include "util/option_errors.hpp"
#include "util/text_escaping.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::detail {

namespace {

using bucket_bounds = std::vector<std::chrono::nanoseconds>;

constexpr std::size_t largest_max_prefixes = 10'000;
constexpr std::size_t max_bucket_count = 100;
constexpr std::size_t max_prefix_size = 128;

void check_buckets(const char* name, const bucket_bounds& bounds)
{
    if (bounds.empty() || bounds.size() > max_bucket_count)
        refuse_options({}, std::string(name) + " has " + std::to_string(bounds.size()) + " bounds; give 1 to " +
                               std::to_string(max_bucket_count));
    if (bounds.front() <= bounds.front().zero())
        refuse_options({}, std::string(name) + " starts with a bound that is not positive; give positive bounds");
    if (std::ranges::adjacent_find(bounds, std::greater_equal<>()) != bounds.end())
        refuse_options({}, std::string(name) + " is not ascending; give each bound once, in ascending order");
}

metrics_options checked(metrics_options&& options)
{
    if (options.max_prefixes > largest_max_prefixes)
        refuse_options({}, "max_prefixes is " + std::to_string(options.max_prefixes) + "; give at most " +
                               std::to_string(largest_max_prefixes));
    check_buckets("wait_buckets", options.wait_buckets);
    check_buckets("hold_buckets", options.hold_buckets);
    return std::move(options);
}

/// Returns whether the prefix can be the value of a label. Two values of a label must not look alike, so invalid
/// prefixes are not escaped.
bool can_be_label(std::string_view prefix)
{
    return !prefix.empty() && prefix.size() <= max_prefix_size && prefix != counter_store::other_prefix &&
           printable(prefix) == prefix;
}

} // namespace

void duration_histogram::add(std::chrono::nanoseconds span, const bucket_bounds& bounds) noexcept
{
    ++counts[static_cast<std::size_t>(std::ranges::lower_bound(bounds, span) - bounds.begin())];
    sum_in_seconds += std::chrono::duration<double>(span).count();
}

counter_store::counter_store(metrics_options&& options) : options_(checked(std::move(options))), other_(options_) {}

key_counters& counter_store::counters_of(std::string_view key) noexcept
{
    const auto prefix = key.substr(0, key.find(options_.delimiter));
    auto& prefixes = counted_.prefixes;
    if (const auto found = prefixes.find(prefix); found != prefixes.end())
        return found->second;
    try {
        if (prefixes.size() < options_.max_prefixes && can_be_label(prefix))
            return prefixes.try_emplace(std::string(prefix), options_).first->second;
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): without memory, the key counts as another one
    }
    has_other_ = true;
    return other_;
}

metrics_snapshot counter_store::snapshot() const
{
    const std::lock_guard guard(mutex_);
    metrics_snapshot copy = counted_;
    if (has_other_)
        copy.prefixes.try_emplace(std::string(other_prefix), other_);
    return copy;
}

} // namespace colock::inline v0::detail
