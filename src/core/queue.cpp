// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/work.hpp"

#include <algorithm>

namespace colock::detail {

namespace {

/// How often in a row a local holder hands over to the next local waiter where the backend keeps no queue, so that
/// other processes get their turn.
constexpr unsigned hand_overs_in_a_row = 16;

constexpr std::size_t most_spare_queues = 64;

bool is_shared(const record& member)
{
    return member.mode() == lock_mode::shared;
}

} // namespace

key_queue* core::find_queue(const record& wanted)
{
    if (!may_be_queued(wanted.key_hash()))
        return nullptr;
    const auto found = queues_.find(queue_name{wanted.key(), wanted.key_hash()});
    return found == queues_.end() ? nullptr : found->second.get();
}

bool core::is_queued(const record& wanted)
{
    if (!may_be_queued(wanted.key_hash()))
        return false;
    const std::lock_guard guard(mutex_);
    return find_queue(wanted) != nullptr;
}

void core::enqueue(record& wanted, bool as_head, work& todo)
{
    key_queue* queue = find_queue(wanted);
    if (!queue) {
        // On a remote backend every acquire passes through a queue: recycled, it costs no memory of its own.
        std::unique_ptr<key_queue> made;
        if (spare_queues_.empty()) {
            made = std::make_unique<key_queue>();
        } else {
            made = std::move(spare_queues_.back());
            spare_queues_.pop_back();
        }
        made->key = wanted.key();
        made->hash = wanted.key_hash();
        queue = made.get();
        queues_.emplace(queue_name{queue->key, queue->hash}, std::move(made));
        count_queue(queue->hash, 1);
    }
    queue->members.push_back(wanted);
    wanted.queue = queue;
    if (as_head) {
        // It has spoken to the backend already and may have a place there: it must go on listening.
        wanted.is_head = true;
        ++queue->heads;
        queue->answer = {.heard = true, .error = wanted.outcome.error};
    } else if (queue->heads == 0) {
        promote(*queue, todo);
    } else if (is_shared(wanted) && queue->heads + 1 == queue->members.size() && is_shared(queue->members.front())) {
        wanted.is_head = true;
        ++queue->heads;
    }
}

void core::promote(key_queue& queue, work& todo)
{
    for (record& member : queue.members) {
        if (member.is_head && is_shared(member))
            continue;
        if (queue.heads > 0 && (member.is_head || !is_shared(member)))
            return;
        member.is_head = true;
        ++queue.heads;
        member.notify(todo.wakes);
        if (!is_shared(member))
            return;
    }
}

bool core::leave_queue(record& wanted, work& todo)
{
    key_queue* queue = std::exchange(wanted.queue, nullptr);
    if (!queue)
        return false;
    queue->members.erase(queue->members.iterator_to(wanted));
    const bool was_head = std::exchange(wanted.is_head, false);
    if (was_head)
        --queue->heads;
    if (queue->members.empty()) {
        const auto found = queues_.find(queue_name{queue->key, queue->hash});
        count_queue(queue->hash, -1);
        auto done = std::move(found->second);
        queues_.erase(found);
        if (spare_queues_.size() < most_spare_queues) {
            done->holder = nullptr;
            done->handed_over = 0;
            done->stands_back_until = {};
            done->answer = {};
            spare_queues_.push_back(std::move(done));
        }
        if (queues_.empty())
            arm_timer();
        return false;
    }
    if (queue->heads == 0 || !was_head)
        promote(*queue, todo);
    return true;
}

void core::change_places(record& waiting, record& fresh)
{
    key_queue& queue = *std::exchange(waiting.queue, nullptr);
    queue.members.insert(queue.members.iterator_to(waiting), fresh);
    queue.members.erase(queue.members.iterator_to(waiting));
    fresh.queue = &queue;
    fresh.is_head = std::exchange(waiting.is_head, false);
}

/// A local release is known here before any event of the backend can tell, and to a head whose create is still under
/// way no event may come at all.
void core::wake_heads(const record& ended, work& todo)
{
    key_queue* queue = find_queue(ended);
    // After a hand-over the key is held by the next one already.
    if (!queue || (queue->holder && !can_.fifo))
        return;
    for (record& member : queue->members) {
        if (!member.is_head)
            break;
        member.attempting.told();
        member.notify(todo.wakes);
    }
}

void core::wake_for_earlier_expiry(const record& shortened, time_point expires, work& todo)
{
    key_queue* queue = find_queue(shortened);
    if (!queue)
        return;
    for (record& member : queue->members) {
        if (!member.is_head)
            break;
        member.attempting.hears_of_expiry(expires);
        member.notify(todo.wakes);
    }
}

core::record_ptr core::next_for_hand_over(record& held)
{
    if (is_shared(held) || held.tainted())
        return {};
    key_queue* queue = find_queue(held);
    if (!queue || queue->heads != 1)
        return {};
    record& next = queue->members.front();
    if (!next.open_to_hand_over || is_shared(next) || next.under_way != operation::none || next.tainted())
        return {};
    if (!can_.fifo && queue->handed_over++ >= hand_overs_in_a_row) {
        queue->handed_over = 0;
        return {};
    }
    return record_ptr(&next);
}

} // namespace colock::detail
