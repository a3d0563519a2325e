// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/claim.hpp>
#include <colock/spi/completion.hpp>

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace colock::inline v0 {
struct wait_outcome;
}

namespace colock::inline v0::memory {

class store;
struct entry;

/// A claim's place in the queue of its key. Stored in `claim::slot`; the queue holds only its address. If a claim is
/// destroyed without having been abandoned, this object is destroyed with it, and removes the claim from the queue, or
/// its grant that was not fetched.
class queue_place : public boost::intrusive::list_base_hook<>
{
public:
    queue_place(std::shared_ptr<store> store, const claim& claim)
        : owner(claim.shared_owner()), hash(claim.key_hash()), max_holders(claim.max_holders()), ttl(claim.ttl()),
          mode(claim.mode()), store_(std::move(store))
    {
    }
    queue_place(const queue_place&) = delete;
    queue_place& operator=(const queue_place&) = delete;
    ~queue_place();

    // Copies of the claim's data that the queue needs. The claim itself cannot be used, because it may be partly
    // destroyed.
    const std::shared_ptr<const owner_data> owner;
    const std::size_t hash;
    const std::size_t max_holders;
    const std::chrono::milliseconds ttl;
    const lock_mode mode;

    // Guarded by the shard's mutex.
    /// The entry in which the claim is queued (the place is then linked) or granted; else null.
    entry* at = nullptr;
    completion<wait_outcome> waiting;

private:
    const std::shared_ptr<store> store_;
};

/// One grant.
struct holder
{
    /// Null for a grant that was handed to a queued claim and has not been fetched by the claim's next create.
    claim_ptr owner{};
    /// The place of the claim whose grant has not been fetched; null otherwise.
    queue_place* handed_to = nullptr;
    /// `time_point::max()`: the grant never expires.
    lease_clock::time_point expires{};
    lease_clock::time_point created{};
    lease_clock::time_point renewed{};
    std::uint64_t fence = 0;

    [[nodiscard]] bool belongs_to(const claim& candidate) const noexcept
    {
        return handed_to ? handed_to == candidate.slot.get() : owner.get() == &candidate;
    }
    [[nodiscard]] const owner_data& data() const noexcept { return handed_to ? *handed_to->owner : owner->owner(); }
};

/// The state of one key: its holders, and its queue in the order of the requests. Has at least one holder whenever no
/// call is in progress. A queue therefore never exists without a holder: the call that frees the lock also grants it to
/// the front of the queue.
///
/// A shared claim may overtake shared claims in the queue whose limits are reached, but not an exclusive claim.
struct entry
{
    entry* next = nullptr;
    std::size_t hash = 0;
    std::string key;
    /// The mode of all holders.
    lock_mode mode = lock_mode::exclusive;
    /// Lower bound of the expiry times of the holders.
    lease_clock::time_point earliest = lease_clock::time_point::max();
    boost::container::small_vector<holder, 1> holders;
    using place_list = boost::intrusive::list<queue_place, boost::intrusive::constant_time_size<false>>;
    place_list queue;
    /// Number of exclusive claims in the queue.
    std::size_t writer_count = 0;
    /// Upper bound of the limits of the shared claims in front of the first exclusive claim. Avoids searches of the
    /// queue.
    std::size_t max_limit = 0;
    /// Index of the holder at which the next search begins. May be out of range.
    std::size_t search_start = 0;

    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
    [[nodiscard]] static std::size_t limit_of(std::size_t max_holders) noexcept
    {
        return max_holders == 0 ? no_limit : max_holders;
    }

    void enqueue(queue_place& last) noexcept
    {
        queue.push_back(last);
        last.at = this;
        if (last.mode == lock_mode::exclusive)
            ++writer_count;
        else if (writer_count == 0)
            max_limit = std::max(max_limit, limit_of(last.max_holders));
    }
    /// Removes a place from the queue, and returns an iterator to the place behind it.
    place_list::iterator dequeue(queue_place& removed) noexcept
    {
        if (removed.mode == lock_mode::exclusive) {
            --writer_count;
            // The claims behind the removed exclusive claim may be next, and their limits are unknown.
            max_limit = no_limit;
        }
        removed.at = nullptr;
        return queue.erase(queue.iterator_to(removed));
    }
    [[nodiscard]] bool empty() const noexcept { return holders.empty() && queue.empty(); }
    /// Returns whether a claim is compatible with the holders. Ignores the queue.
    [[nodiscard]] bool fits(lock_mode claim_mode, std::size_t max_holders) const noexcept
    {
        return holders.empty() ||
               (claim_mode == lock_mode::shared && mode == lock_mode::shared && holders.size() < limit_of(max_holders));
    }
    /// Returns whether a claim that is compatible with the holders may be granted before the claims in the queue. This
    /// is the case if all of these are compatible too, or may be overtaken.
    [[nodiscard]] bool lets_pass(lock_mode claim_mode) const noexcept
    {
        return queue.empty() || (claim_mode == lock_mode::shared && writer_count == 0);
    }
    /// Begins with the last holder, and then where the previous search has ended. A removed holder is replaced by the
    /// last one. So holders that leave in the order of their grants, or in the opposite order, are found at once.
    [[nodiscard]] holder* find(const claim& owner) noexcept
    {
        if (holders.empty())
            return nullptr;
        if (holders.back().belongs_to(owner))
            return &holders.back();
        for (std::size_t left = holders.size(); left > 0; --left, ++search_start) {
            if (search_start >= holders.size())
                search_start = 0;
            if (holders[search_start].belongs_to(owner))
                return &holders[search_start];
        }
        return nullptr;
    }
};

} // namespace colock::inline v0::memory
