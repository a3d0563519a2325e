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
#include <string_view>
#include <vector>

namespace colock {
struct woken;
}

namespace colock::memory {

class store;
struct entry;

/// A claim's place in the queue of its key. Lives in `claim::slot` and is known to the queue by address only, so that a
/// claim which dies without having been abandoned takes its place, or its unclaimed grant, with it.
class ticket : public boost::intrusive::list_base_hook<>
{
public:
    ticket(std::shared_ptr<store> home, const claim& holder)
        : owner(holder.shared_owner()), hash(holder.key_hash()), max_holders(holder.max_holders()), ttl(holder.ttl()),
          mode(holder.mode()), home_(std::move(home))
    {
    }
    ticket(const ticket&) = delete;
    ticket& operator=(const ticket&) = delete;
    ~ticket();

    // What the queue needs of the claim: a claim that is known by address may be half destroyed.
    const std::shared_ptr<const owner_data> owner;
    const std::size_t hash;
    const std::size_t max_holders;
    const std::chrono::milliseconds ttl;
    const lock_mode mode;

    // Guarded by the shard's mutex.
    /// Where it is queued (then it is linked) or granted; else null.
    entry* at = nullptr;
    completion<woken> waiting;

private:
    const std::shared_ptr<store> home_;
};

/// One grant.
struct holder
{
    /// Null for a grant that was handed to a queued claim and not fetched by its next create.
    claim_ptr owner{};
    /// That claim's; null otherwise.
    ticket* handed = nullptr;
    /// `time_point::max()`: never.
    lease_clock::time_point expires{};
    lease_clock::time_point created{};
    lease_clock::time_point renewed{};
    std::uint64_t fence = 0;

    [[nodiscard]] bool belongs_to(const claim& candidate) const noexcept
    {
        return handed ? handed == candidate.slot.get() : owner.get() == &candidate;
    }
    [[nodiscard]] const owner_data& data() const noexcept { return handed ? *handed->owner : owner->owner(); }
};

/// What is known of one key: never without a holder once a call has ended. Who queues has somebody to wait for, because
/// whatever frees the lock grants it to the front of the queue in the same breath.
///
/// A shared claim passes others in the queue whose limits are reached, but no exclusive one.
struct entry
{
    entry* next = nullptr;
    std::size_t hash = 0;
    std::string key;
    /// Of all holders.
    lock_mode mode = lock_mode::exclusive;
    /// No holder expires before.
    lease_clock::time_point earliest = lease_clock::time_point::max();
    boost::container::small_vector<holder, 1> holders;
    using ticket_list = boost::intrusive::list<ticket, boost::intrusive::constant_time_size<false>>;
    ticket_list queue;
    /// Exclusive claims in the queue.
    std::size_t writer_count = 0;
    /// No limit in front of the first exclusive claim is greater. Spares walks over the queue.
    std::size_t max_limit = 0;

    static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
    [[nodiscard]] static std::size_t limit_of(std::size_t max_holders) noexcept
    {
        return max_holders == 0 ? no_limit : max_holders;
    }

    void enqueue(ticket& last) noexcept
    {
        queue.push_back(last);
        last.at = this;
        if (last.mode == lock_mode::exclusive)
            ++writer_count;
        else if (writer_count == 0)
            max_limit = std::max(max_limit, limit_of(last.max_holders));
    }
    /// Returns the place behind the one that has left.
    ticket_list::iterator dequeue(ticket& leaving) noexcept
    {
        if (leaving.mode == lock_mode::exclusive) {
            --writer_count;
            // Those behind it may come next.
            max_limit = no_limit;
        }
        leaving.at = nullptr;
        return queue.erase(queue.iterator_to(leaving));
    }
    [[nodiscard]] bool empty() const noexcept { return holders.empty() && queue.empty(); }
    /// Next to the holders. Says nothing about the queue.
    [[nodiscard]] bool fits(lock_mode wanted, std::size_t max_holders) const noexcept
    {
        return holders.empty() ||
               (wanted == lock_mode::shared && mode == lock_mode::shared && holders.size() < limit_of(max_holders));
    }
    /// Those in the queue let a claim of that mode, which fits, go first: they fit themselves, or are to be passed.
    [[nodiscard]] bool lets_pass(lock_mode wanted) const noexcept
    {
        return queue.empty() || (wanted == lock_mode::shared && writer_count == 0);
    }
    [[nodiscard]] holder* find(const claim& owner) noexcept
    {
        for (auto& candidate : holders) {
            if (candidate.belongs_to(owner))
                return &candidate;
        }
        return nullptr;
    }
};

/// A chained hash table of entries that recycles them. Its own because the sweep needs a cursor, a bucket's number,
/// that stays good while keys come and go: growing splits bucket b into b and b + n, and a sweep that goes on from b
/// misses nothing. A walk that is not to see anything twice, either, goes from a bucket to the one `behind` it.
class table
{
public:
    table() : buckets_(16) {}
    table(const table&) = delete;
    table& operator=(const table&) = delete;
    ~table()
    {
        for (auto& bucket : buckets_)
            free_chain(bucket);
        free_chain(spare_);
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bucket_count() const noexcept { return buckets_.size(); }
    /// The first entry of a bucket; the others follow `next`.
    [[nodiscard]] entry* bucket(std::size_t index) const noexcept { return buckets_[index]; }

    /// In the order of the numbers read backwards, bit by bit, in which those that a bucket is split into follow each
    /// other; 0 behind the last.
    [[nodiscard]] std::size_t behind(std::size_t index) const noexcept
    {
        std::size_t bit = buckets_.size() / 2;
        for (; index & bit; bit /= 2)
            index ^= bit;
        return index | bit;
    }

    [[nodiscard]] entry* find(std::size_t hash, std::string_view key) const noexcept
    {
        entry* candidate = buckets_[hash & (buckets_.size() - 1)];
        while (candidate && (candidate->hash != hash || candidate->key != key))
            candidate = candidate->next;
        return candidate;
    }

    /// The key must be absent.
    entry& add(std::size_t hash, std::string_view key)
    {
        if (size_ >= buckets_.size())
            grow();
        if (!spare_) {
            spare_ = new entry;
            ++spares_;
        }
        entry& added = *spare_;
        added.hash = hash;
        added.key = key;
        spare_ = added.next;
        --spares_;
        link(buckets_, added);
        ++size_;
        return added;
    }

    void remove(entry& removed) noexcept
    {
        entry** link = &buckets_[removed.hash & (buckets_.size() - 1)];
        while (*link != &removed)
            link = &(*link)->next;
        *link = removed.next;
        --size_;
        if (spares_ == max_spares || removed.holders.capacity() > max_spare_holders) {
            delete &removed;
            return;
        }
        ++spares_;
        removed.next = spare_;
        spare_ = &removed;
    }

private:
    static constexpr std::size_t max_spares = 64;
    static constexpr std::size_t max_spare_holders = 16;

    static void link(std::vector<entry*>& buckets, entry& linked) noexcept
    {
        entry*& first = buckets[linked.hash & (buckets.size() - 1)];
        linked.next = first;
        first = &linked;
    }
    static void free_chain(entry* first) noexcept
    {
        while (first) {
            entry* const next = first->next;
            delete first;
            first = next;
        }
    }
    void grow()
    {
        std::vector<entry*> larger(2 * buckets_.size());
        for (entry* first : buckets_) {
            while (first) {
                entry* const next = first->next;
                link(larger, *first);
                first = next;
            }
        }
        buckets_.swap(larger);
    }

    /// Their number is a power of two.
    std::vector<entry*> buckets_;
    std::size_t size_ = 0;
    entry* spare_ = nullptr;
    std::size_t spares_ = 0;
};

} // namespace colock::memory
