// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/detail/async_functions.hpp>
#include <colock/detail/export.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/stats.hpp>
#include <colock/status.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The operations of `locker`. Each one shares the state of the locker, so the locker may be destroyed while it runs.
/// They are defined in src/core/operations.
namespace colock::inline v0::detail::operations {

COLOCK_EXPORT void start_acquire(
    const std::shared_ptr<core>& self, std::string&& key, acquire_options&& options, operation_handler<lock> handler);
/// \param within zero or less: a single attempt
COLOCK_EXPORT [[nodiscard]] asio::awaitable<std::optional<lock>> try_acquire(const std::shared_ptr<core>& self,
    std::string&& key, lease_clock::duration within, acquire_options&& options,
    renewal default_renewal = renewal::manual);
COLOCK_EXPORT void start_try_acquire(const std::shared_ptr<core>& self, std::string&& key, lease_clock::duration within,
    acquire_options&& options, operation_handler<std::optional<lock>> handler);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<lock_group> acquire_all(
    std::shared_ptr<core> self, group_members keys, acquire_options options);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<std::optional<lock_group>> try_acquire_all(
    std::shared_ptr<core> self, group_members keys, lease_clock::duration within, acquire_options options);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<lock> adopt(
    std::shared_ptr<core> self, std::string ticket, acquire_options options);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<bool> is_locked(std::shared_ptr<core> self, std::string key);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<std::vector<lock_status>> list(
    std::shared_ptr<core> self, filter which, list_order order);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<lock_page> list_page(
    std::shared_ptr<core> self, filter which, std::string cursor);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<std::vector<lock_status>> purge(
    std::shared_ptr<core> self, std::size_t limit);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<std::vector<lock_status>> break_lock(
    std::shared_ptr<core> self, std::string key);
COLOCK_EXPORT [[nodiscard]] asio::awaitable<shutdown_report> shutdown(
    std::shared_ptr<core> self, std::chrono::milliseconds deadline);

} // namespace colock::inline v0::detail::operations
