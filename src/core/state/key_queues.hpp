// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/record.hpp"
#include "core/state/timer_heap.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::detail {

/// What the backend has last said of a key, for one who has to say why it did not get the lock.
struct last_answer
{
    /// The last attempt was answered: with "busy", if there is no error. Else the error is that of one before it.
    bool heard = false;
    /// It is under way.
    bool sent = false;
    /// Another caller of this locker is first, and the backend has not left that one without an answer for long.
    bool is_behind = false;
    failure_ptr error{};
    /// May be empty.
    std::string holder{};
};

/// Those of one locker that want the same key, in arrival order. Only heads speak to the backend: one exclusive claim,
/// or the whole run of shared claims in front.
struct key_queue
{
    std::string key;
    std::size_t hash = 0;
    boost::intrusive::list<record> members;
    std::size_t heads = 0;
    /// Who was granted out of this queue and holds the key exclusively: while it does, no head need ask the backend.
    const record* holder = nullptr;
    /// Hand-overs from one local holder to the next since others had their turn.
    unsigned handed_over = 0;
    /// Until then its heads leave the way to the waiters of other lockers.
    lease_clock::time_point stands_back_until{};
    /// To its heads: those behind them know no more than they do.
    last_answer answer{};
};

/// A key with its hash, which is computed once.
struct queue_name
{
    std::string_view key;
    std::size_t hash;

    friend bool operator==(const queue_name& left, const queue_name& right) noexcept { return left.key == right.key; }
    struct known_hash
    {
        using is_avalanching = void;
        std::size_t operator()(const queue_name& of) const noexcept { return of.hash; }
    };
};

/// The local queues: who wants the same key, who of them speaks to the backend, to whom a lock is handed over, and who
/// is woken when it may be free.
///
/// Thread safety: guarded by the shard's mutex, but for may_have().
class key_queues
{
public:
    /// \param fifo the backend keeps a queue itself.
    /// \param timers kept armed while anybody stands in a queue.
    key_queues(bool fifo, timer_heap& timers) : fifo_(fifo), timers_(timers) {}
    key_queues(const key_queues&) = delete;
    key_queues& operator=(const key_queues&) = delete;

    /// May be called without the mutex; if it is false, nobody waited for a key with that hash a moment ago.
    [[nodiscard]] bool may_have(std::size_t hash) const noexcept
    {
        return counts_[hash % counts_.size()].load(std::memory_order_acquire) != 0;
    }
    /// That of its key; null if nobody waits for it.
    [[nodiscard]] key_queue* find(const record& wanted);

    /// At the end of its key's queue.
    void enter(record& wanted, bool as_head, wake_list& wakes);
    /// True if others remain in it.
    bool leave(record& wanted, wake_list& wakes);
    /// `fresh` stands where `waiting` stood.
    void change_places(record& waiting, record& fresh);

    /// The key of `ended` may be free.
    void wake_heads(const record& ended, wake_list& wakes);
    /// The backend can be reached again: heads whose last attempt failed repeat it. Where the backend keeps no queue,
    /// heads that listen repeat theirs, too: it sends no event again. A backend with a queue looks for what has changed
    /// when it listens again.
    void regained_contact(wake_list& wakes);
    /// The backend has given back `ended`. Where the backend keeps a queue, it wakes those of the heads that listen to
    /// it by itself, and only as many as there is room for.
    void wake_after_release(const record& ended, wake_list& wakes);
    /// For heads that sleep until the expiry that `shortened` had.
    void wake_for_earlier_expiry(const record& shortened, lease_clock::time_point expires, wake_list& wakes);
    /// Who gets the lock that `held` is to give back; nobody, if others are to have their turn. Where the backend keeps
    /// a queue, who follows is to stand in it now: what is asked of the backend for both can travel together.
    [[nodiscard]] record::ptr pick_for_hand_over(record& held, wake_list& wakes);

    template <class Function>
    void for_each(Function function)
    {
        for (auto& table : tables_) {
            for (auto& [name, queue] : table) {
                for (record& member : queue->members)
                    function(member);
            }
        }
    }

private:
    using member_list = boost::intrusive::list<record>;
    static void promote(key_queue& queue, member_list::iterator from, wake_list& wakes);
    void promote_next_but_one(key_queue& queue, wake_list& wakes);
    static void make_head(record& member, key_queue& queue, wake_list& wakes);
    [[nodiscard]] key_queue& make(const record& wanted);
    void drop(key_queue& empty);
    void count(std::size_t hash, int more) noexcept
    {
        // Written under the mutex alone.
        auto& known = counts_[hash % counts_.size()];
        known.store(
            known.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(more), std::memory_order_release);
    }

    const bool fifo_;
    timer_heap& timers_;
    using table = boost::unordered_flat_map<queue_name, std::unique_ptr<key_queue>, queue_name::known_hash>;
    [[nodiscard]] table& table_of(std::size_t hash) noexcept { return tables_[(hash >> 20) % tables_.size()]; }

    /// Several, chosen by bits of the hash: one that grows moves all of it at once, and a hundred thousand keys would
    /// hold up the event loop.
    std::array<table, 64> tables_;
    std::size_t size_ = 0;
    std::vector<std::unique_ptr<key_queue>> spares_;
    /// How many queues there are per hash, so that an uncontended acquire needs neither the mutex nor a look-up.
    std::array<std::atomic<std::uint32_t>, 1024> counts_{};
};

} // namespace colock::detail
