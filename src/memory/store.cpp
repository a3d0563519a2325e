// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "memory/holders.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace colock::inline v0::memory {

namespace {

using time_point = lease_clock::time_point;

/// Returns the time after which the lock may become free by expiry, or zero if it never expires.
lease_clock::duration time_to_expiry(const entry& at, lock_mode claim_mode, time_point now)
{
    auto next = at.holders.front().expires;
    for (const auto& held : at.holders)
        next = claim_mode == lock_mode::exclusive ? std::max(next, held.expires) : std::min(next, held.expires);
    return next == time_point::max() ? lease_clock::duration::zero() : next - now;
}

queue_place* place_of(const claim& claim) noexcept
{
    return static_cast<queue_place*>(claim.slot.get());
}

bool is_queued(const queue_place* place) noexcept
{
    return place && place->is_linked();
}

void drop_wait(queue_place& place, store_actions& after)
{
    if (!place.waiting)
        return;
    after.make_room_for_call();
    after.drop(std::move(place.waiting));
}

/// Returns false if it is certain, without a search of the queue, that no queued claim can be granted.
bool may_hand_off(const entry& at) noexcept
{
    const auto& front = at.queue.front();
    return at.fits(front.mode, front.max_holders) ||
           (front.mode == lock_mode::shared && at.mode == lock_mode::shared && at.holders.size() < at.max_limit);
}

void drop_waits(entry& at, store_actions& after)
{
    for (auto& place : at.queue)
        drop_wait(place, after);
}

} // namespace

queue_place::~queue_place()
{
    store_->remove_place(*this);
}

store::store(const options& settings)
    : sweep_interval_(std::min<std::chrono::milliseconds>(settings.sweep_interval, std::chrono::hours(24 * 3650))),
      sweep_batch_(settings.sweep_batch),
      next_sweep_(saturating_add(lease_clock::now(), sweep_interval_).time_since_epoch().count())
{
}

store::shard& store::shard_of(std::size_t hash) noexcept
{
    // The shard is selected by the highest bits, because the table uses the lowest bits.
    return shards_[hash >> (std::numeric_limits<std::size_t>::digits - shard_bits)];
}

std::uint64_t store::grant(shard& home, entry& at, holder granted, lock_mode mode, std::chrono::milliseconds ttl)
{
    granted.expires = expiry(granted.created, ttl);
    granted.renewed = granted.created;
    granted.fence = ++home.last_fence;
    at.earliest = at.holders.empty() ? granted.expires : std::min(at.earliest, granted.expires);
    at.mode = mode;
    // Memory is reserved before the holder is added to the index, so that a holder is always in both containers or in
    // neither.
    make_room(at.holders);
    home.groups.add(granted.data().group, at);
    at.holders.push_back(std::move(granted));
    return home.last_fence;
}

create_outcome store::create(claim_ptr claim)
{
    const auto now = now_of(*claim);
    store_actions after;
    sweep_if_due(now, after);
    auto& home = shard_of(claim->key_hash());
    const std::lock_guard guard(home.mutex);
    return create_in(home, std::move(claim), now, after);
}

create_outcome store::create_in(shard& home, claim_ptr claim, time_point now, store_actions& after)
{
    auto& subject = *claim;
    const auto grant_now = [&](entry& at) {
        return create_outcome::granted(
            grant(home, at, {.owner = std::move(claim), .created = now}, subject.mode(), subject.ttl()));
    };
    entry* const at = home.entries.find(subject.key_hash(), subject.key());
    if (!at)
        return grant_now(home.entries.add(subject.key_hash(), subject.key()));

    refresh(home, *at, now, after);
    if (holder* const own = at->find(subject)) {
        if (own->handed_to) {
            detach(*own);
            own->owner = std::move(claim);
        }
        own->expires = expiry(now, subject.ttl());
        own->renewed = now;
        at->earliest = std::min(at->earliest, own->expires);
        return create_outcome::granted(own->fence);
    }
    if (at->lets_pass(subject.mode()) && at->fits(subject.mode(), subject.max_holders()))
        return grant_now(*at);
    return refuse_or_enqueue(*at, subject, now);
}

create_outcome make_busy_outcome(const entry& at, const claim& claim, time_point now)
{
    auto outcome = create_outcome::busy(time_to_expiry(at, claim.mode(), now));
    // A single attempt does not report the holder, because that would allocate memory.
    if (claim.keeps_place()) {
        outcome.holder = at.holders.front().data().owner;
        outcome.holder_host = at.holders.front().data().host;
    }
    return outcome;
}

create_outcome store::refuse_or_enqueue(entry& at, claim& claim, time_point now)
{
    if (claim.keeps_place() && !is_queued(place_of(claim)))
        enqueue(at, claim);
    return make_busy_outcome(at, claim, now);
}

void store::enqueue(entry& at, claim& claim)
{
    if (!claim.slot)
        claim.slot = std::make_shared<queue_place>(shared_from_this(), claim);
    at.enqueue(*place_of(claim));
}

release_status store::release(claim& claim)
{
    const auto now = now_of(claim);
    store_actions after;
    sweep_if_due(now, after);
    auto& home = shard_of(claim.key_hash());
    const std::lock_guard guard(home.mutex);
    return release_in(home, claim, now, after);
}

release_status store::release_in(shard& home, claim& claim, time_point now, store_actions& after)
{
    entry* const at = home.entries.find(claim.key_hash(), claim.key());
    if (!at)
        return release_status::not_held;
    auto status = release_status::not_held;
    if (holder* const own = at->find(claim)) {
        if (now < own->expires)
            status = release_status::released;
        remove(home.groups, *at, *own, after);
    } else if (queue_place* const place = place_of(claim); is_queued(place)) {
        drop_wait(*place, after);
        at->dequeue(*place);
    }
    if (at->empty()) {
        home.entries.remove(*at);
        return status;
    }
    // The current time decides whether others have expired, because a fast release carries the time of an earlier
    // operation.
    refresh(home, *at, lease_clock::now(), after);
    remove_if_empty(home, *at);
    return status;
}

hand_over_outcome store::hand_over(claim& held, claim_ptr next)
{
    const auto now = now_of(*next);
    store_actions after;
    sweep_if_due(now, after);
    auto& home = shard_of(held.key_hash());
    const std::lock_guard guard(home.mutex);
    const auto released = release_in(home, held, now_of(held), after);
    return {{released, nullptr}, create_in(home, std::move(next), now, after)};
}

void store::refresh(shard& home, entry& at, time_point now, store_actions& after)
{
    remove_expired(home.groups, at, now, no_removal_limit, after, ignore_holder);
    hand_off(home, at, after);
}

void store::hand_off(shard& home, entry& at, store_actions& after)
{
    if (at.queue.empty() || !may_hand_off(at))
        return;
    // Uses the current time, because the time of the operation that freed the lock may be long ago. The ttl of the next
    // holder starts now.
    const auto now = lease_clock::now();
    std::size_t max_limit = 0;
    for (auto each = at.queue.begin(); each != at.queue.end();) {
        auto& next = *each;
        if (!at.fits(next.mode, next.max_holders)) {
            if (next.mode == lock_mode::exclusive)
                break;
            max_limit = std::max(max_limit, entry::limit_of(next.max_holders));
            ++each;
            continue;
        }
        make_room(at.holders);
        if (next.waiting)
            after.make_room_for_call();
        each = at.dequeue(next);
        next.at = &at;
        grant(home, at, {.handed_to = &next, .created = now}, next.mode, next.ttl);
        if (next.waiting)
            after.wake(std::move(next.waiting));
    }
    at.max_limit = max_limit;
}

void store::remove_if_empty(shard& home, entry& at) noexcept
{
    if (at.empty())
        home.entries.remove(at);
}

extend_status store::extend(claim& claim, std::chrono::milliseconds ttl)
{
    const auto now = now_of(claim);
    store_actions after;
    sweep_if_due(now, after);
    auto& home = shard_of(claim.key_hash());
    const std::lock_guard guard(home.mutex);
    entry* const at = home.entries.find(claim.key_hash(), claim.key());
    if (!at)
        return extend_status::not_held;
    refresh(home, *at, now, after);
    holder* const own = at->find(claim);
    if (!own) {
        remove_if_empty(home, *at);
        return extend_status::not_held;
    }
    const auto expires = expiry(now, ttl);
    if (expires < own->expires)
        wake_all(*at, after);
    own->expires = expires;
    own->renewed = now;
    at->earliest = std::min(at->earliest, own->expires);
    return extend_status::extended;
}

bool store::is_valid(claim& claim)
{
    const auto now = now_of(claim);
    store_actions after;
    sweep_if_due(now, after);
    auto& home = shard_of(claim.key_hash());
    const std::lock_guard guard(home.mutex);
    entry* const at = home.entries.find(claim.key_hash(), claim.key());
    const holder* const own = at ? at->find(claim) : nullptr;
    return own && now < own->expires;
}

void store::wait(claim& claim, completion<wait_outcome> done)
{
    store_actions after;
    auto& home = shard_of(claim.key_hash());
    const std::lock_guard guard(home.mutex);
    queue_place* const place = place_of(claim);
    after.make_room_for_call();
    if (!is_queued(place))
        after.wake(std::move(done));
    else if (auto earlier = std::exchange(place->waiting, std::move(done)))
        after.drop(std::move(earlier));
}

void store::cancel_wait(claim& claim) noexcept
{
    completion<wait_outcome> dropped;
    auto& home = shard_of(claim.key_hash());
    const std::lock_guard guard(home.mutex);
    if (queue_place* const place = place_of(claim))
        dropped.swap(place->waiting);
}

void store::remove_place(queue_place& removed) noexcept
{
    completion<wait_outcome> dropped;
    store_actions after;
    auto& home = shard_of(removed.hash);
    const std::lock_guard guard(home.mutex);
    dropped.swap(removed.waiting);
    entry* const at = removed.at;
    if (!at)
        return;
    if (removed.is_linked()) {
        at->dequeue(removed);
    } else {
        const auto grant = std::find_if(
            at->holders.begin(), at->holders.end(), [&](const holder& held) { return held.handed_to == &removed; });
        remove(home.groups, *at, *grant, after);
    }
    hand_off(home, *at, after);
    remove_if_empty(home, *at);
}

std::size_t store::key_count()
{
    std::size_t keys = 0;
    for (auto& home : shards_) {
        const std::lock_guard guard(home.mutex);
        keys += home.entries.size();
    }
    return keys;
}

void store::clear() noexcept
{
    for (auto& home : shards_) {
        store_actions after;
        const std::lock_guard guard(home.mutex);
        home.groups.clear();
        for (std::size_t bucket = 0; bucket < home.entries.bucket_count(); ++bucket) {
            while (entry* const at = home.entries.bucket(bucket)) {
                for (auto& held : at->holders)
                    after.drop(detach(held));
                at->holders.clear();
                drop_waits(*at, after);
                while (!at->queue.empty())
                    at->dequeue(at->queue.front());
                home.entries.remove(*at);
            }
        }
    }
}

void store::drop_all_waits() noexcept
{
    for (auto& home : shards_) {
        store_actions after;
        const std::lock_guard guard(home.mutex);
        for (std::size_t bucket = 0; bucket < home.entries.bucket_count(); ++bucket) {
            for (entry* at = home.entries.bucket(bucket); at; at = at->next)
                drop_waits(*at, after);
        }
    }
}

void store::sweep_if_due(time_point now, store_actions& after)
{
    if (now.time_since_epoch().count() < next_sweep_.load(std::memory_order_relaxed))
        return;
    const std::unique_lock guard(sweep_mutex_, std::try_to_lock);
    if (guard && sweep(now, after))
        next_sweep_.store(saturating_add(now, sweep_interval_).time_since_epoch().count(), std::memory_order_relaxed);
}

bool store::sweep(time_point now, store_actions& after)
{
    // The number of examined locks is limited too, so that a single operation never pays for a large number of live
    // locks.
    std::size_t to_remove = sweep_batch_;
    std::size_t to_examine = std::max<std::size_t>(1024, sweep_batch_);
    for (; sweep_shard_ < shards_.size(); ++sweep_shard_, sweep_bucket_ = 0) {
        auto& home = shards_[sweep_shard_];
        const std::lock_guard guard(home.mutex);
        for (; sweep_bucket_ < home.entries.bucket_count(); ++sweep_bucket_) {
            if (to_examine == 0)
                return false;
            --to_examine;
            for (entry *at = home.entries.bucket(sweep_bucket_), *next = nullptr; at; at = next) {
                next = at->next;
                if (now < at->earliest)
                    continue;
                if (to_remove == 0)
                    return false;
                to_remove -= remove_expired(home.groups, *at, now, to_remove, after, ignore_holder);
                hand_off(home, *at, after);
                remove_if_empty(home, *at);
            }
        }
    }
    sweep_shard_ = 0;
    return true;
}

} // namespace colock::inline v0::memory
