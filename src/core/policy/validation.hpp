// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>

#include <chrono>
#include <memory>
#include <string_view>

namespace colock::inline v0::detail {

// Each `check_` function below, except the last, returns what is wrong, with the value and the remedy. It returns null
// if nothing is wrong.

[[nodiscard]] std::unique_ptr<const failure> check_key(std::string_view key, const adapter_limits& limits);
/// A TTL of 0 is valid if the backend has locks without a TTL.
/// \param max_clock_lead the adapter's `max_clock_lead` for this TTL
[[nodiscard]] std::unique_ptr<const failure> check_ttl(std::chrono::milliseconds ttl, const adapter_limits& limits,
    const capabilities& can, std::chrono::milliseconds max_clock_lead);
[[nodiscard]] std::unique_ptr<const failure> check_retry(const retry_policy& policy);
[[nodiscard]] std::unique_ptr<const failure> check_mode(
    lock_mode mode, std::size_t max_holders, const capabilities& can, std::string_view backend);
/// \param ttl the TTL of the lock; with 0, the lock has no lease that max_hold could end
[[nodiscard]] std::unique_ptr<const failure> check_max_hold(
    std::chrono::milliseconds max_hold, std::chrono::milliseconds ttl, const adapter_limits& limits);
/// Checks whether a lease with this TTL can be long enough for the margins of the locker.
/// \param max_clock_lead the adapter's `max_clock_lead` for this TTL
/// \param default_renewal the default renewal of the operation: automatic for with_lock
[[nodiscard]] std::unique_ptr<const failure> check_margins(std::chrono::milliseconds ttl,
    std::chrono::milliseconds max_clock_lead, const locker_options& options, renewal default_renewal);
[[nodiscard]] std::unique_ptr<const failure> check_label(std::string_view name, std::string_view value);
/// Checks the key and the options of an acquire. Options that are not set come from the locker's options, which were
/// checked when the locker was made.
/// \param default_ttl the TTL of the locker's options
[[nodiscard]] std::unique_ptr<const failure> check_acquire_options(std::string_view key, const acquire_options& options,
    std::chrono::milliseconds default_ttl, const adapter& backend, const adapter_limits& limits,
    const capabilities& can);
/// \throws validation_error
void check_locker_options(const locker_options& options, const adapter& backend);

} // namespace colock::inline v0::detail
