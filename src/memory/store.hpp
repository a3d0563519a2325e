// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/memory/adapter.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/context_member.hpp>

#include "memory/group_index.hpp"
#include "memory/table.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::memory {

/// For one more, and for as many again as there are: by one each time would be to move all of them each time.
template <class Sequence>
void make_room(Sequence& in)
{
    if (in.size() == in.capacity())
        in.reserve(2 * in.size() + 1);
}

/// What a call has to do once it holds no mutex any more: to call completions and hooks and to let go of claims, any of
/// which may call back. Declared before the guard of the mutex, so that it is destroyed, and acts, after it.
class aftermath
{
public:
    aftermath() = default;
    aftermath(const aftermath&) = delete;
    aftermath& operator=(const aftermath&) = delete;
    ~aftermath()
    {
        if (!calls_)
            return;
        for (auto& claim : calls_->broken)
            claim->lost(lost_reason::broken);
        for (auto& wake : calls_->to_wake)
            wake(woken{});
    }

    // Room is made before anything is changed, and may throw then. To run out of memory afterwards would destroy, under
    // the mutex, what must not be destroyed there.

    void make_room_for_claim()
    {
        if (claim_)
            make_room(more_claims_);
    }
    void make_room_for_call()
    {
        if (!calls_)
            calls_ = std::make_unique<callbacks>();
        make_room(calls_->dropped);
        make_room(calls_->broken);
        make_room(calls_->to_wake);
    }

    void wake(completion<woken> waiting) noexcept { calls_->to_wake.push_back(std::move(waiting)); }
    void break_claim(claim_ptr claim) noexcept { calls_->broken.push_back(std::move(claim)); }
    void drop(claim_ptr claim) noexcept
    {
        if (claim_)
            more_claims_.push_back(std::move(claim));
        else
            claim_ = std::move(claim);
    }
    void drop(completion<woken> waiting) noexcept { calls_->dropped.push_back(std::move(waiting)); }

private:
    /// What only a contended or a broken lock has.
    struct callbacks
    {
        std::vector<completion<woken>> dropped;
        std::vector<claim_ptr> broken;
        std::vector<completion<woken>> to_wake;
    };
    /// An uncontended release leaves one, and no more.
    claim_ptr claim_;
    std::vector<claim_ptr> more_claims_;
    std::unique_ptr<callbacks> calls_;
};

/// The locks themselves: who holds and who queues for which key, in shards by the key's hash.
///
/// Thread safety: all members may be called from any thread; no mutex is held while anything of others' is called.
class store final : public context_member, public std::enable_shared_from_this<store>
{
public:
    explicit store(const options& settings);

    [[nodiscard]] create_outcome create(claim_ptr claim);
    /// \param claims exclusive ones, of different keys
    [[nodiscard]] create_all_outcome create_all(const std::vector<claim_ptr>& claims);
    /// Takes back a grant or a place in the queue.
    [[nodiscard]] release_status give_back(claim& claim);
    [[nodiscard]] hand_over_outcome hand_over(claim& held, claim_ptr next);
    /// Of a claim that holds.
    [[nodiscard]] std::string export_ticket(const claim& held);
    [[nodiscard]] create_outcome adopt(std::string_view ticket, claim_ptr claim);
    [[nodiscard]] extend_status extend(claim& claim, std::chrono::milliseconds ttl);
    [[nodiscard]] bool is_valid(claim& claim);

    void wait(claim& claim, completion<woken> done);
    void cancel_wait(claim& claim) noexcept;
    /// Called by a ticket that dies.
    void leave(ticket& leaving) noexcept;

    [[nodiscard]] std::vector<lock_status> inspect(const std::string& key);
    [[nodiscard]] std::vector<lock_status> break_key(const std::string& key);
    [[nodiscard]] list_outcome list(const filter& which, std::string_view cursor);
    /// \param limit 0: as many as one step removes
    [[nodiscard]] list_outcome purge(std::size_t limit, std::string_view cursor);

    /// Breaks all locks of a group.
    [[nodiscard]] std::vector<lock_status> release_group(const std::string& id);
    [[nodiscard]] group_outcome extend_group(const std::string& id, std::chrono::milliseconds ttl);

    /// How many keys it knows anything of.
    [[nodiscard]] std::size_t known_keys();
    /// How many groups each shard has holders of, in sum.
    [[nodiscard]] std::size_t known_groups();

    /// Forgets all holders and waiters: the end of the reference cycles that run through claims.
    void clear() noexcept;
    /// Drops the completions of waits, which must not outlive their context; the locks stay.
    void context_shutdown() noexcept override;
    /// The locks are the parent's: here nobody holds or waits for any.
    void context_forked() noexcept override;

private:
    using time_point = lease_clock::time_point;

    struct alignas(64) shard
    {
        detail::light_mutex mutex;
        table entries;
        group_index groups;
        /// Of all its keys, so that a key's fences go on where they were when the key comes back.
        std::uint64_t last_fence = 0;
    };

    [[nodiscard]] shard& shard_of(std::size_t hash) noexcept;
    /// Of all the keys, each once, in the one order in which they are locked.
    [[nodiscard]] std::vector<std::unique_lock<detail::light_mutex>> lock_shards_of(
        const std::vector<claim_ptr>& claims);

    // All of these with the shard's mutex held.
    [[nodiscard]] create_outcome create_in(shard& home, claim_ptr claim, time_point now, aftermath& after);
    /// It keeps a place in the queue, if it is one that queues.
    [[nodiscard]] create_outcome found_busy(entry& at, claim& claim, time_point now);
    /// Why an exclusive claim cannot be granted, if it cannot. It gets no place in the queue.
    [[nodiscard]] std::optional<create_outcome> refuse_in(shard& home, claim& claim, time_point now, aftermath& after);
    [[nodiscard]] release_status give_back_in(shard& home, claim& claim, time_point now, aftermath& after);
    std::uint64_t grant(shard& home, entry& at, holder granted, lock_mode mode, std::chrono::milliseconds ttl);
    void enqueue(entry& at, claim& claim);
    void settle(shard& home, entry& at, time_point now, aftermath& after);
    void hand_off(shard& home, entry& at, aftermath& after);
    static void remove_if_empty(shard& home, entry& at) noexcept;

    void sweep_if_due(time_point now, aftermath& after);
    /// True if the sweep has seen all keys.
    [[nodiscard]] bool sweep(time_point now, aftermath& after);

    /// A walk over all keys, from where the cursor says. \param visit looks at a bucket with its shard's mutex held;
    /// false: that is enough, and it is to be looked at again
    template <class Visit>
    [[nodiscard]] list_outcome walk(std::string_view cursor, Visit visit);

    static constexpr std::size_t shard_bits = 4;
    std::array<shard, std::size_t{1} << shard_bits> shards_;

    const lease_clock::duration sweep_interval_;
    const std::size_t sweep_batch_;
    std::atomic<lease_clock::rep> next_sweep_;

    /// Serialises sweeps and guards the cursor: where the sweep that is under way goes on.
    std::mutex sweep_mutex_;
    std::size_t sweep_shard_ = 0;
    std::size_t sweep_bucket_ = 0;
};

} // namespace colock::memory
