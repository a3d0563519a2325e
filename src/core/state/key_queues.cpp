// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/key_queues.hpp"

#include "core/state/run_in_batches.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <iterator>

namespace colock::inline v0::detail {

namespace {

/// Maximum number of consecutive hand-overs between local holders if the backend keeps no queue, so that other
/// processes get the lock, too.
constexpr unsigned max_consecutive_hand_overs = 16;

bool is_shared(const lock_record& member)
{
    return member.mode() == lock_mode::shared;
}

/// Calls `function` for each head. Heads are at the front, with one exception: an acquire that asked the backend before
/// it entered the queue is a head, although members that entered meanwhile are in front of it.
template <class Function>
void for_each_head(key_queue& queue, Function function)
{
    auto remaining = queue.heads;
    for (auto each = queue.members.begin(); remaining > 0; ++each) {
        if (!each->acquire_state().is_head)
            continue;
        --remaining;
        function(*each);
    }
}

/// Whether the member at `position` may become a head, because the member before it was removed: only heads with shared
/// locks are in front of it. Does not iterate over the heads, because there may be ten thousand.
bool may_become_head(const key_queue& queue, boost::intrusive::list<lock_record>::const_iterator position)
{
    if (position == queue.members.begin())
        return true;
    const lock_record& previous = *std::prev(position);
    return previous.acquire_state().is_head && is_shared(previous);
}

} // namespace

key_queue* key_queues::find(const lock_record& record)
{
    if (!may_have(record.key_hash()))
        return nullptr;
    const auto found = table_.find(record);
    return found == table_.end() ? nullptr : &found->second;
}

/// Makes the queue of the key of `record`. Queues are recycled, because on a remote backend every acquire needs one.
key_queue& key_queues::make(const lock_record& record)
{
    key_queue* queue = nullptr;
    if (spares_.empty()) {
        queue = &table_.try_emplace(hashed_key{record.key(), record.key_hash()}).first->second;
    } else {
        auto& spare = spares_.back();
        spare.key().text = record.key();
        spare.key().hash = record.key_hash();
        queue = &table_.insert(std::move(spare)).position->second;
        spares_.pop_back();
    }
    all_.push_back(*queue);
    change_count(record.key_hash(), 1);
    timers_.keep_armed(true);
    return *queue;
}

void key_queues::drop(const lock_record& last_member)
{
    auto done = table_.extract(table_.find(last_member));
    key_queue& queue = done.mapped();
    BOOST_ASSERT(queue.heads == 0);
    const auto following = all_.erase(all_.iterator_to(queue));
    if (next_after_contact_ != all_.end() && &*next_after_contact_ == &queue)
        next_after_contact_ = following;
    change_count(last_member.key_hash(), -1);
    if (spares_.size() < spares_.capacity()) {
        queue.holder = nullptr;
        queue.hand_over_count = 0;
        queue.leave_to_others_until = {};
        queue.answer = {};
        spares_.push_back(std::move(done));
    }
    if (table_.empty())
        timers_.keep_armed(false);
}

void key_queues::enter(lock_record& record, bool as_head, wake_list& wakes)
{
    key_queue* const known = find(record);
    key_queue& queue = known ? *known : make(record);
    auto& acquire = record.acquire_state();
    queue.members.push_back(record);
    acquire.queue = &queue;
    if (as_head) {
        // The record has sent a request to the backend already and may have a place in the backend's queue, so it must
        // continue to listen.
        acquire.is_head = true;
        ++queue.heads;
        add_to_wake_on_release(record);
        queue.answer = last_answer::from(acquire.outcome, acquire.plan.holder_expires());
    } else if (queue.heads == 0) {
        promote(queue, queue.members.begin(), wakes);
    } else if (is_shared(record) && queue.heads + 1 == queue.members.size() && is_shared(queue.members.front())) {
        acquire.is_head = true;
        ++queue.heads;
        add_to_wake_on_release(record);
    }
}

bool key_queues::prepare_attempt(lock_record& record, lease_clock::time_point now, bool counts)
{
    record.prepare_create();
    record.set_operation_start(now);
    add_to_wake_on_release(record);
    return record.acquire_state().plan.on_sent(counts);
}

void key_queues::add_to_wake_on_release(lock_record& record) noexcept
{
    if (record.acquire_state().is_head && !record.release_hook::is_linked())
        record.acquire_state().queue->wake_on_release.push_back(record);
}

void key_queues::on_listening(lock_record& record) const noexcept
{
    if (fifo_)
        remove_from_wake_on_release(record);
}

void key_queues::remove_from_wake_on_release(lock_record& record) noexcept
{
    if (record.release_hook::is_linked())
        record.release_hook::unlink();
}

/// Makes heads of the members, from `from` on, that may be heads now. Only shared heads are in front of `from`.
void key_queues::promote(key_queue& queue, member_list::iterator from, wake_list& wakes)
{
    for (; from != queue.members.end(); ++from) {
        lock_record& member = *from;
        if (member.acquire_state().is_head && is_shared(member))
            continue;
        if (queue.heads > 0 && (member.acquire_state().is_head || !is_shared(member)))
            return;
        make_head(member, queue, wakes);
        if (!is_shared(member))
            return;
    }
}

/// Makes heads of the members that can be heads once the first member has left.
void key_queues::promote_behind_first(key_queue& queue, wake_list& wakes)
{
    const auto second = std::next(queue.members.begin());
    for (auto each = second; each != queue.members.end(); ++each) {
        if (each->acquire_state().is_head || (each != second && !is_shared(*each)))
            return;
        make_head(*each, queue, wakes);
        if (!is_shared(*each))
            return;
    }
}

void key_queues::make_head(lock_record& member, key_queue& queue, wake_list& wakes)
{
    member.acquire_state().is_head = true;
    ++queue.heads;
    add_to_wake_on_release(member);
    member.notify(wakes);
}

bool key_queues::leave(lock_record& record, wake_list& wakes)
{
    auto& acquire = record.acquire_state();
    key_queue* const queue = std::exchange(acquire.queue, nullptr);
    if (!queue)
        return false;
    remove_from_wake_on_release(record);
    const auto following = queue->members.erase(queue->members.iterator_to(record));
    const bool was_head = std::exchange(acquire.is_head, false);
    if (was_head)
        --queue->heads;
    if (queue->members.empty()) {
        drop(record);
        return false;
    }
    if (queue->heads == 0)
        promote(*queue, queue->members.begin(), wakes);
    else if (!was_head && may_become_head(*queue, following))
        promote(*queue, following, wakes);
    return true;
}

void key_queues::replace(lock_record& member, lock_record& successor)
{
    key_queue& queue = *std::exchange(member.acquire_state().queue, nullptr);
    queue.members.insert(queue.members.iterator_to(member), successor);
    queue.members.erase(queue.members.iterator_to(member));
    remove_from_wake_on_release(member);
    successor.acquire_state().queue = &queue;
    successor.acquire_state().is_head = std::exchange(member.acquire_state().is_head, false);
    add_to_wake_on_release(successor);
}

/// Events of the backend do not replace this: they come later, and a head whose create is still in flight may get none.
void key_queues::wake_if_free(const lock_record& record, wake_list& wakes)
{
    key_queue* queue = find(record);
    // After a hand-over the next holder has the key already.
    if (!queue || (queue->holder && !fifo_))
        return;
    // Called with a queue in the backend only after a loss or an unproven release, which is rare. So every head may be
    // visited, also those that listen.
    if (fifo_)
        for_each_head(*queue, add_to_wake_on_release);
    wake_listed(*queue, wakes);
}

void key_queues::wake_listed(key_queue& queue, wake_list& wakes)
{
    while (!queue.wake_on_release.empty()) {
        lock_record& head = queue.wake_on_release.front();
        queue.wake_on_release.pop_front();
        head.acquire_state().plan.on_release();
        head.notify(wakes);
    }
}

bool key_queues::wake_after_contact(wake_list& wakes)
{
    for (std::size_t visited = 0; visited < max_items_per_handler && next_after_contact_ != all_.end();
        ++next_after_contact_)
    {
        for_each_head(*next_after_contact_, [&](lock_record& head) {
            ++visited;
            // A request in flight was sent, or will be sent, on the new connection.
            if (head.in_flight == operation::none && head.acquire_state().plan.on_contact_regained(!fifo_))
                head.notify(wakes);
        });
    }
    return next_after_contact_ != all_.end();
}

void key_queues::wake_after_release(const lock_record& record, wake_list& wakes)
{
    if (!fifo_)
        return wake_if_free(record, wakes);
    if (key_queue* queue = find(record))
        wake_listed(*queue, wakes);
}

void key_queues::wake_for_earlier_expiry(
    const lock_record& shortened, lease_clock::time_point expires, wake_list& wakes)
{
    key_queue* queue = find(shortened);
    if (!queue)
        return;
    for_each_head(*queue, [&](lock_record& head) {
        head.acquire_state().plan.on_earlier_expiry(expires);
        head.notify(wakes);
    });
}

lock_record::ptr key_queues::pick_for_hand_over(lock_record& holder, wake_list& wakes)
{
    if (is_shared(holder) || holder.in_doubt())
        return {};
    key_queue* queue = find(holder);
    if (!queue || queue->heads != 1)
        return {};
    auto& next = queue->members.front();
    if (!next.acquire_state().open_to_hand_over || is_shared(next) || next.in_flight != operation::none ||
        next.in_doubt())
        return {};
    if (!fifo_ && queue->hand_over_count++ >= max_consecutive_hand_overs) {
        queue->hand_over_count = 0;
        return {};
    }
    if (fifo_) {
        // If the waiter does not get the lock, it has a place in the backend's queue, and must listen.
        if (!next.acquire_state().is_head)
            make_head(next, *queue, wakes);
        promote_behind_first(*queue, wakes);
    }
    return lock_record::ptr(&next);
}

} // namespace colock::inline v0::detail
