// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/memory/adapter.hpp>
#include <colock/spi/adapter.hpp>

#include "memory/group_index.hpp"
#include "memory/store_actions.hpp"
#include "memory/table.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::memory {

/// The holders and the queues of all keys, divided into shards by the hash of the key.
///
/// Thread safety: all members may be called from any thread. No mutex is held while a completion or a claim is called.
class store final : public std::enable_shared_from_this<store>
{
public:
    explicit store(const options& settings);

    [[nodiscard]] create_outcome create(claim_ptr claim);
    /// \param claims exclusive claims of different keys
    [[nodiscard]] create_all_outcome create_all(const std::vector<claim_ptr>& claims);
    /// Removes the grant of the claim, or its place in the queue.
    [[nodiscard]] release_status release(claim& claim);
    [[nodiscard]] hand_over_outcome hand_over(claim& held, claim_ptr next);
    /// Returns a ticket for a claim that holds its lock.
    [[nodiscard]] std::string export_ticket(const claim& held);
    [[nodiscard]] create_outcome adopt(std::string_view ticket, claim_ptr claim);
    [[nodiscard]] extend_status extend(claim& claim, std::chrono::milliseconds ttl);
    [[nodiscard]] bool is_valid(claim& claim);

    void wait(claim& claim, completion<wait_outcome> done);
    void cancel_wait(claim& claim) noexcept;
    /// Called by the destructor of a queue_place.
    void remove_place(queue_place& removed) noexcept;

    [[nodiscard]] list_outcome listing(const listing_request& request);

    /// Breaks all locks of a group.
    [[nodiscard]] std::vector<lock_status> release_group(const std::string& id);
    [[nodiscard]] group_outcome extend_group(const std::string& id, std::chrono::milliseconds ttl);

    /// Returns the number of keys with an entry.
    [[nodiscard]] std::size_t key_count();
    /// Returns the number of groups with holders, summed over the shards.
    [[nodiscard]] std::size_t group_count();

    /// Removes all holders and waiters. This breaks the reference cycles that run through claims.
    void clear() noexcept;
    /// Destroys the completions of waits, which must not outlive their context. The locks remain.
    void drop_all_waits() noexcept;

private:
    using time_point = lease_clock::time_point;

    struct alignas(64) shard
    {
        detail::light_mutex mutex;
        table entries;
        group_index groups;
        /// The last fence of all keys of the shard. A key that is removed and added again therefore never repeats a
        /// fence.
        std::uint64_t last_fence = 0;
    };

    [[nodiscard]] shard& shard_of(std::size_t hash) noexcept;
    /// Locks the shards of all keys, each once, always in the same order.
    [[nodiscard]] std::vector<std::unique_lock<detail::light_mutex>> lock_shards_of(
        const std::vector<claim_ptr>& claims);

    // The following functions require that the shard's mutex is locked.
    [[nodiscard]] create_outcome create_in(shard& home, claim_ptr claim, time_point now, store_actions& after);
    /// Returns the busy outcome. The claim gets a place in the queue if its `keeps_place()` is true.
    [[nodiscard]] create_outcome refuse_or_enqueue(entry& at, claim& claim, time_point now);
    /// Returns the outcome of an exclusive claim that cannot be granted, or an empty optional if it can. The claim gets
    /// no place in the queue.
    [[nodiscard]] std::optional<create_outcome> refuse_in(
        shard& home, claim& claim, time_point now, store_actions& after);
    [[nodiscard]] release_status release_in(shard& home, claim& claim, time_point now, store_actions& after);
    std::uint64_t grant(shard& home, entry& at, holder granted, lock_mode mode, std::chrono::milliseconds ttl);
    void enqueue(entry& at, claim& claim);
    /// Brings an entry up to date: removes the expired holders, and grants the lock to queued claims.
    void refresh(shard& home, entry& at, time_point now, store_actions& after);
    /// Grants the lock to all queued claims that can be granted now, and wakes their waiters.
    void hand_off(shard& home, entry& at, store_actions& after);
    static void remove_if_empty(shard& home, entry& at) noexcept;

    /// Continues the removal of expired locks of all keys, if it is due.
    void sweep_if_due(time_point now, store_actions& after);
    /// Returns true if the sweep has examined all keys.
    [[nodiscard]] bool sweep(time_point now, store_actions& after);

    /// Visits the buckets from the cursor on, until all are visited or the step is full. Returns the collected locks,
    /// with the cursor of the next step.
    /// \param visit examines a bucket while its shard's mutex is locked; returns false if the step is full and the
    ///     bucket must be visited again
    template <class Visit>
    [[nodiscard]] list_outcome walk(std::string_view cursor, Visit visit);
    [[nodiscard]] list_outcome list(std::string_view cursor);
    [[nodiscard]] list_outcome purge(std::size_t limit, std::string_view cursor);
    [[nodiscard]] list_outcome list_key(const std::string& key, listing_action action);

    static constexpr std::size_t shard_bits = 4;
    std::array<shard, std::size_t{1} << shard_bits> shards_;

    const lease_clock::duration sweep_interval_;
    const std::size_t sweep_batch_;
    std::atomic<lease_clock::rep> next_sweep_;

    /// Serializes sweeps and guards the position at which the current sweep continues.
    std::mutex sweep_mutex_;
    std::size_t sweep_shard_ = 0;
    std::size_t sweep_bucket_ = 0;
};

} // namespace colock::inline v0::memory
