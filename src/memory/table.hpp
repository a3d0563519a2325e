// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "memory/key_queue.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace colock::inline v0::memory {

/// A chained hash table of entries, which recycles removed entries. It is not a standard container, because the sweep
/// needs a cursor (a bucket number) that remains valid while keys are added and removed. When the table grows from n
/// buckets, bucket b is split into b and b + n, and a sweep that continues from b misses nothing. A walk that must not
/// visit an entry twice moves from a bucket to the bucket `behind` it.
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
        free_chain(first_spare_);
    }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bucket_count() const noexcept { return buckets_.size(); }
    /// Returns the first entry of a bucket. The other entries follow by `next`.
    [[nodiscard]] entry* bucket(std::size_t index) const noexcept { return buckets_[index]; }

    /// Returns the next bucket in bit-reversed order, or 0 after the last bucket. In this order, the two buckets that a
    /// split produces follow each other.
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

    /// Adds an entry. The key must not be in the table.
    entry& add(std::size_t hash, std::string_view key)
    {
        if (size_ >= buckets_.size())
            grow();
        if (!first_spare_) {
            first_spare_ = new entry;
            ++spare_count_;
        }
        entry& added = *first_spare_;
        added.hash = hash;
        added.key = key;
        first_spare_ = added.next;
        --spare_count_;
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
        if (spare_count_ == max_spares || removed.holders.capacity() > max_spare_holders) {
            delete &removed;
            return;
        }
        ++spare_count_;
        removed.next = first_spare_;
        first_spare_ = &removed;
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

    /// The number of buckets is a power of two.
    std::vector<entry*> buckets_;
    std::size_t size_ = 0;
    entry* first_spare_ = nullptr;
    std::size_t spare_count_ = 0;
};

} // namespace colock::inline v0::memory
