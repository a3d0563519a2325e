// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/detail/async_functions.hpp>
#include <colock/detail/body.hpp>
#include <colock/detail/election_operations.hpp>
#include <colock/detail/locker_operations.hpp>
#include <colock/leadership.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/stats.hpp>

#include "core/state/lock_record.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The operations of lockers, locks and groups; those that colock/locker.hpp and colock/election.hpp
/// use are declared in colock/detail/locker_operations.hpp and colock/detail/election_operations.hpp. Each coroutine
/// owns what it needs, so the handle it was called on may be destroyed. The `start_` functions do the same for a
/// completion handler; see run_operation.hpp.
namespace colock::inline v0::detail::operations {

// prepare.cpp
/// Makes the record of an acquire. The record stores the error of invalid input, which is thrown when the operation is
/// awaited.
/// \param keeps_place false for a single attempt
[[nodiscard]] lock_record::ptr prepare(const std::shared_ptr<core>& self, std::string&& key, acquire_options&& options,
    renewal default_renewal, bool keeps_place, std::string_view group = {});
/// Adds a limit to the retry policy of an acquire.
/// \param within zero or less: a single attempt
void limit_wait(const core& self, acquire_options& options, lease_clock::duration within);

// acquire.cpp
[[nodiscard]] asio::awaitable<lock> acquire(std::shared_ptr<core> self, lock_record::ptr record);
void start_prepared_acquire(operation_handler<lock> handler, std::shared_ptr<core> self, lock_record::ptr record);

// group.cpp
/// \param id if empty, an id is generated
[[nodiscard]] lock_group group(std::shared_ptr<core> self, std::string id);

// transfer.cpp
[[nodiscard]] asio::awaitable<std::string> detach(std::shared_ptr<core> self, lock_record::ptr record);

// release.cpp
[[nodiscard]] asio::awaitable<void> release(std::shared_ptr<core> self, lock_record::ptr record, on_failure report);
void start_release(
    operation_handler<void> handler, std::shared_ptr<core> self, lock_record::ptr record, on_failure report);
/// Releases several locks at once. Returns an error code for each: empty, or why the release failed. The caller keeps
/// the handles, so that the core completes the releases if the coroutine ends early.
[[nodiscard]] asio::awaitable<std::vector<error_code>> release_each(
    std::shared_ptr<core> self, std::vector<lock_record::ptr> records);

/// Returns whether the answer to a release that has begun has to be awaited, and stores in `seen` the version to pass
/// to `async_wait`. If not, the release has ended, or its caller has waited for the operation timeout.
[[nodiscard]] bool must_await_release(core& self, lock_record& record, std::uint32_t& seen);

// extend.cpp
[[nodiscard]] asio::awaitable<void> extend(
    std::shared_ptr<core> self, lock_record::ptr record, std::chrono::milliseconds ttl);
void start_extend(operation_handler<void> handler, std::shared_ptr<core> self, lock_record::ptr record,
    std::chrono::milliseconds ttl);
/// Extends several locks at once, with results as in `release_each`.
[[nodiscard]] asio::awaitable<std::vector<error_code>> extend_each(
    std::shared_ptr<core> self, std::vector<lock_record::ptr> records, std::chrono::milliseconds ttl);
/// \throws validation_error if no lock can be extended to that TTL
void check_new_ttl(const core& self, std::chrono::milliseconds ttl, error_context context);
/// \throws validation_error if `record` can never be extended to that TTL
void check_extend(const core& self, const lock_record& record, std::chrono::milliseconds ttl);

// held_queries.cpp
[[nodiscard]] asio::awaitable<bool> is_valid(std::shared_ptr<core> self, lock_record::ptr record);
void start_is_valid(operation_handler<bool> handler, std::shared_ptr<core> self, lock_record::ptr record);
[[nodiscard]] asio::awaitable<lost_reason> lost(std::shared_ptr<core> self, lock_record::ptr record);
void start_lost(operation_handler<lost_reason> handler, std::shared_ptr<core> self, lock_record::ptr record);

/// Waits until the first of these leases has ended. `record` is not empty.
[[nodiscard]] asio::awaitable<lost_lock> first_lost(std::shared_ptr<core> self, std::vector<lock_record::ptr> records);
void start_first_lost(
    operation_handler<lost_lock> handler, std::shared_ptr<core> self, std::vector<lock_record::ptr> records);

// listing.cpp
/// Asks the backend for the holders of a key.
[[nodiscard]] asio::awaitable<std::vector<lock_status>> holders(std::shared_ptr<core> self, std::string key);
/// \returns the cursor of the next step; empty after the last one
[[nodiscard]] asio::awaitable<std::string> purge_step(
    std::shared_ptr<core> self, std::size_t limit, std::string cursor);

// stats.cpp
[[nodiscard]] std::vector<held_lock> held_locks(core& self);
[[nodiscard]] std::vector<waiting_acquire> waiting_acquires(core& self);
[[nodiscard]] locker_stats stats(core& self);
[[nodiscard]] locker_options defaults(const core& self);

// with_lock.cpp
/// Campaigns, and runs `body` while this process leads, as `run_with_lock` does under a lock.
[[nodiscard]] asio::awaitable<bool> run_term(
    std::shared_ptr<core> self, std::string key, acquire_options options, body_ref<leadership> body);

// shutdown.cpp
/// Called when the last locker handle is destroyed. Ends the waiters; held locks stay.
void on_last_handle_destroyed(core& self) noexcept;

} // namespace colock::inline v0::detail::operations
