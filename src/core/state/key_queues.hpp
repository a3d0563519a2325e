// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/lock_record.hpp"
#include "core/state/timer_queue.hpp"

#include <boost/container/static_vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_node_map.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace colock::inline v0::detail {

/// The last answer of the backend about a key, which explains to a caller why the lock was not granted.
struct last_answer
{
    /// Whether `error` belongs to the last attempt. If so, null means "busy". Otherwise the last attempt is unanswered,
    /// and `error` is that of an earlier attempt, or null.
    bool is_answered = false;
    /// An attempt is in flight.
    bool is_in_flight = false;
    /// The caller waits behind another caller of this locker, for which no answer of the backend is overdue.
    bool waits_behind_local_caller = false;
    failure_ptr error{};
    /// The owner of the conflicting lock, if it is known.
    std::string holder{};
    std::string holder_host{};
    /// A caller of this locker holds the conflicting lock.
    bool is_held_here = false;
    /// When the conflicting lock expires; max if that is not known.
    lease_clock::time_point holder_expires = lease_clock::time_point::max();

    /// Returns what an answer has reported.
    [[nodiscard]] static last_answer from(const create_outcome& answer, lease_clock::time_point holder_expires)
    {
        return {.is_answered = true,
            .error = answer.error,
            .holder = answer.holder,
            .holder_host = answer.holder_host,
            .holder_expires = holder_expires};
    }
};

/// The acquires of one locker that want the same key, in arrival order. Only heads send requests to the backend: one
/// exclusive claim, or all consecutive shared claims at the front.
struct key_queue : boost::intrusive::list_base_hook<>
{
    boost::intrusive::list<lock_record> members;
    std::size_t heads = 0;
    /// The record that was granted out of this queue and holds the key exclusively. While it holds the key, no head
    /// asks the backend, unless the backend keeps a queue itself.
    const lock_record* holder = nullptr;
    /// Number of hand-overs since the lock was last left to other lockers.
    unsigned hand_over_count = 0;
    /// Until this time the heads send no create, so that other lockers can take the lock.
    lease_clock::time_point leave_to_others_until{};
    /// The heads that the next release in this locker wakes. A head is added when it becomes a head or sends a request,
    /// and removed when it is woken, so a release visits it at most once per request. If the backend keeps a queue,
    /// the heads that listen for its events are not in this list, because the backend wakes them.
    boost::intrusive::list<lock_record, boost::intrusive::base_hook<lock_record::release_hook>,
        boost::intrusive::constant_time_size<false>>
        wake_on_release;
    /// The last answer to a head. It is also what the members behind the heads report, because they ask nothing.
    last_answer answer{};
};

/// The local queues. They decide which waiters of a key send requests to the backend, to which waiter a lock is handed
/// over, and which waiters are woken when a key may be free.
///
/// Thread safety: guarded by the mutex of the core, except for may_have().
class key_queues
{
public:
    /// \param fifo the backend keeps a queue itself
    /// \param timers kept armed while a queue has members
    key_queues(bool fifo, timer_queue& timers) : fifo_(fifo), timers_(timers) {}
    key_queues(const key_queues&) = delete;
    key_queues& operator=(const key_queues&) = delete;

    /// Returns false if nobody waits for a key with this hash. True does not prove that somebody does, because hashes
    /// collide. May be called without the mutex.
    [[nodiscard]] bool may_have(std::size_t hash) const noexcept
    {
        return counts_[hash % counts_.size()].load(std::memory_order_acquire) != 0;
    }
    /// Returns the queue of the key of `record`; null if nobody waits for the key.
    [[nodiscard]] key_queue* find(const lock_record& record);

    /// Appends `record` to the queue of its key.
    /// \param as_head `record` becomes a head in any case, because it has sent a request to the backend already
    void enter(lock_record& record, bool as_head, wake_list& wakes);
    /// Removes `record` from its queue. Returns true if the queue has other members.
    bool leave(lock_record& record, wake_list& wakes);
    /// Replaces `member` by `successor`, at the same position.
    void replace(lock_record& member, lock_record& successor);

    /// Prepares a create of `record`, which is sent next. Returns whether `record` still has a wait at the adapter,
    /// which the caller must cancel.
    /// \param counts the attempt counts for the retry policy
    [[nodiscard]] static bool prepare_attempt(lock_record& record, lease_clock::time_point now, bool counts);
    /// Called when `record` sends a request or becomes a head: if it is a head, adds it to `wake_on_release`.
    static void add_to_wake_on_release(lock_record& record) noexcept;
    /// Called when `record` begins to listen for an event of the backend. If the backend keeps a queue, it wakes the
    /// record from now on, and a release in this locker does not.
    void on_listening(lock_record& record) const noexcept;
    /// Called when an event of the backend has woken `record`: it sends a request anyway, so no release has to wake it.
    static void remove_from_wake_on_release(lock_record& record) noexcept;

    /// Called when the key of `record` may be free without a release by the backend. Wakes all heads if the backend
    /// keeps a queue. Otherwise wakes those in `wake_on_release`, and none while the key has a holder in this locker.
    void wake_if_free(const lock_record& record, wake_list& wakes);
    /// Called when the backend can be reached again. `wake_after_contact` then wakes the heads whose last attempt
    /// failed. If the backend keeps no queue, it also wakes the heads that listen, because events may be lost. With a
    /// queue, the adapter checks for changes when it listens again.
    void on_contact_regained() noexcept { next_after_contact_ = all_.begin(); }
    /// Wakes the next batch of heads after `on_contact_regained`. Returns false if there are no more.
    [[nodiscard]] bool wake_after_contact(wake_list& wakes);
    /// Called when the backend has released `record`, or may have: wakes the heads that the backend does not wake. A
    /// backend with a queue wakes the heads that listen, and only as many as can get the lock.
    void wake_after_release(const lock_record& record, wake_list& wakes);
    /// Wakes the heads that sleep until the old expiry of `shortened`.
    void wake_for_earlier_expiry(const lock_record& shortened, lease_clock::time_point expires, wake_list& wakes);
    /// Returns the waiter that gets the lock of `holder`. Null if none can take it, or if the lock is left to other
    /// lockers. If the backend keeps a queue, the waiter after the returned one becomes a head now, so that its create
    /// can be sent together with the hand-over.
    [[nodiscard]] lock_record::ptr pick_for_hand_over(lock_record& holder, wake_list& wakes);

    template <class Function>
    void for_each(Function function)
    {
        for (key_queue& queue : all_) {
            for (lock_record& member : queue.members)
                function(member);
        }
    }

private:
    using member_list = boost::intrusive::list<lock_record>;
    static void promote(key_queue& queue, member_list::iterator from, wake_list& wakes);
    void promote_behind_first(key_queue& queue, wake_list& wakes);
    static void make_head(lock_record& member, key_queue& queue, wake_list& wakes);
    static void wake_listed(key_queue& queue, wake_list& wakes);
    [[nodiscard]] key_queue& make(const lock_record& record);
    void drop(const lock_record& last_member);
    void change_count(std::size_t hash, int change) noexcept
    {
        // Written under the mutex only.
        auto& counter = counts_[hash % counts_.size()];
        counter.store(
            counter.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(change), std::memory_order_release);
    }

    using queue_list = boost::intrusive::list<key_queue, boost::intrusive::constant_time_size<false>>;
    /// A key with its hash, which is computed once.
    struct hashed_key
    {
        std::string text;
        std::size_t hash;
    };
    struct known_hash
    {
        using is_avalanching = void;
        using is_transparent = void;
        std::size_t operator()(const hashed_key& key) const noexcept { return key.hash; }
        std::size_t operator()(const lock_record& record) const noexcept { return record.key_hash(); }
    };
    struct same_key
    {
        using is_transparent = void;
        bool operator()(const hashed_key& left, const hashed_key& right) const noexcept
        {
            return left.text == right.text;
        }
        bool operator()(const lock_record& left, const hashed_key& right) const noexcept
        {
            return left.key() == right.text;
        }
        bool operator()(const hashed_key& left, const lock_record& right) const noexcept
        {
            return left.text == right.key();
        }
    };
    using queue_table = boost::unordered_node_map<hashed_key, key_queue, known_hash, same_key>;

    const bool fifo_;
    timer_queue& timers_;
    queue_table table_;
    /// The queues of the table, the newest one last.
    queue_list all_;
    /// The next queue whose heads have to be woken because the backend can be reached again.
    queue_list::iterator next_after_contact_ = all_.end();
    /// Empty queues for reuse. A `static_vector`, because functions that must not throw add to it.
    boost::container::static_vector<queue_table::node_type, 64> spares_;
    /// Number of queues per hash. With it, an uncontended acquire needs neither the mutex nor a look-up.
    std::array<std::atomic<std::uint32_t>, 1024> counts_{};
};

} // namespace colock::inline v0::detail
