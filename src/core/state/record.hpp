// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>

#include "core/policy/acquire_plan.hpp"
#include "core/policy/lease_plan.hpp"
#include "core/policy/retry_schedule.hpp"
#include "core/state/waiter.hpp"

#include <boost/assert.hpp>
#include <boost/intrusive/list_hook.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace colock::detail {

class core;
class record;
struct key_queue;

/// Where an acquisition stands. It only ever moves forward.
enum class phase : unsigned char
{
    /// Asked for, not granted: being attempted, or waiting in the local queue.
    acquiring,
    /// Granted; a handle, or a coroutine that is about to return one, owns it.
    held,
    /// Being given back by a quick release, whose end nobody waits for yet. It is in none of the core's lists; the
    /// thread that releases it keeps it, and ends it without the mutex if nobody has looked for its end by then.
    ending_unwatched,
    /// To be given back: a release or abandon is due or under way. Nobody owns it.
    ending,
    /// Of no more concern here: proven to hold nothing, given up unproven, or the parent's after a fork.
    ended,
};

/// The one operation that may be under way per claim.
enum class operation : unsigned char
{
    none,
    create,
    give_back,
    extend,
    query,
};

/// In its key's local queue.
struct place_in_queue
{
    /// Set while it stands in it.
    key_queue* queue = nullptr;
    bool is_head = false;
    /// Its coroutine is suspended as a head that waits, so that a local holder may hand over to it.
    bool open_to_hand_over = false;
    /// The observer was told that it waits.
    bool told_waiting = false;
};

/// An acquire_all that does not hold all of its locks yet. It lives in its coroutine.
///
/// Thread safety: guarded by the shard's mutex.
struct incomplete_group : plain_condition
{
    /// The claim that the coroutine waits for; null while it waits for the group itself.
    record* waits_for = nullptr;
    /// A lease has ended: the group has to start again.
    bool has_lost = false;

    /// Wakes the coroutine.
    void lease_ended(wake_list& wakes);
};

/// An extension that is under way, or a renewal.
struct extension
{
    std::chrono::milliseconds ttl{0};
    /// Where its caller finds the outcome; null for a renewal.
    std::shared_ptr<std::optional<extend_outcome>> result;
};

/// From the moment it is to be given back.
struct release_state
{
    /// Of the first answer to the release. While the lock is held, and after a loss: of the last renewal, if it failed.
    failure_ptr error{};
    /// When coroutines that wait for it give up on it.
    lease_clock::time_point answer_deadline = lease_clock::time_point::max();
    lease_clock::time_point retry_at = lease_clock::time_point::max();
    /// When the latest expiry that the backend may know of this claim has passed.
    lease_clock::time_point may_stand_until{};
    std::chrono::duration<std::uint32_t, std::milli> backoff{0};
    /// Ended in the background: its caller had left, or its lease was lost.
    bool settles = false;
    bool answered = false;
    /// The observer was told of the release before the backend was asked for it.
    bool told_early = false;
    release_status status = release_status::released;
};

/// One acquisition, from the call to the end of its clean-up: the claim that the adapter sees, and what the core knows
/// about it. Shared by the handle, the operation that is under way and the core's lists; a frame that dies leaves it
/// behind, and the core brings it to its end.
///
/// It stands in one list of the core at a time: its key's queue, the held, or the ending.
///
/// Thread safety: all that has no other note is guarded by the shard's mutex; the retry fields belong to the coroutine
/// that acquires.
class record final : public claim, public condition, public boost::intrusive::list_base_hook<>
{
public:
    using ptr = boost::intrusive_ptr<record>;
    using list_hook = boost::intrusive::list_base_hook<>;

    record(const std::shared_ptr<core>& owner, claim_request request);
    ~record() override;

    static void* operator new(std::size_t size);
    static void operator delete(void* memory, std::size_t size) noexcept;

    [[nodiscard]] static record& of(const claim_ptr& lock) noexcept { return static_cast<record&>(*lock); }
    [[nodiscard]] static ptr from(claim_ptr&& lock) noexcept { return {static_cast<record*>(lock.detach()), false}; }
    [[nodiscard]] static lock make_lock(ptr&& granted, std::shared_ptr<core>&& owner) noexcept
    {
        return lock(std::move(granted), std::move(owner));
    }

    /// Called before a create, or a request that includes one, is sent. Discards reports about an earlier grant,
    /// because they do not concern the grant that this create may bring. The mutex is held.
    void sends_create() noexcept
    {
        under_way = operation::create;
        is_to_be_verified = false;
        loss_before_grant.reset();
    }
    /// Takes over the acquire of one that asks for the same, as far as it has come, but for its place in the queue.
    void go_on_for(record& spent) noexcept;

    // What the adapter tells.
    void lost(lost_reason reason) noexcept override;
    void on_created(create_outcome&& outcome);
    void on_refused(create_outcome* busy);
    void on_given_back(release_outcome&& outcome);
    void on_extended(extend_outcome outcome);
    void on_verified(valid_outcome outcome);

    [[nodiscard]] phase where() const noexcept { return phase_.load(std::memory_order_acquire); }
    void move_to(phase next) noexcept { phase_.store(next, std::memory_order_release); }
    /// From a quick release: whoever waits for the end of it is told from now on. The mutex is held.
    void watch_end() noexcept
    {
        auto unwatched = phase::ending_unwatched;
        if (phase_.compare_exchange_strong(unwatched, phase::ending))
            back().answered = false;
    }
    /// Ends a quick release, unless somebody has begun to wait for that. Not under the mutex.
    [[nodiscard]] bool end_unwatched() noexcept
    {
        if (is_single_threaded() && where() == phase::ending_unwatched) {
            move_to(phase::ended);
            return true;
        }
        auto unwatched = phase::ending_unwatched;
        return phase_.compare_exchange_strong(unwatched, phase::ended);
    }

    // What it knows by where it stands, in one place: ten thousand waiters need no room for what comes later. (A
    // std::variant costs two indirect calls each time.)
    /// While it is acquiring: the answer to the last attempt; once judged, what is left of it for messages: the holder
    /// and the error.
    [[nodiscard]] const create_outcome& outcome() const noexcept
    {
        BOOST_ASSERT(!has_acquired_);
        return outcome_;
    }
    [[nodiscard]] create_outcome& outcome() noexcept
    {
        return const_cast<create_outcome&>(std::as_const(*this).outcome());
    }
    /// From the moment it is held, or is to be given back without ever having been.
    [[nodiscard]] detail::extension& extension() noexcept
    {
        BOOST_ASSERT(has_acquired_);
        return after_.extension;
    }
    [[nodiscard]] const release_state& back() const noexcept
    {
        BOOST_ASSERT(has_acquired_);
        return after_.back;
    }
    [[nodiscard]] release_state& back() noexcept { return const_cast<release_state&>(std::as_const(*this).back()); }
    /// Once.
    void has_acquired() noexcept;

    /// Alive until the record has ended: it is kept by the acquiring coroutine, by the handle, or by itself while
    /// anything is being given back.
    detail::core* const owner_core;
    /// For calls from the adapter, which may come at any time.
    const std::weak_ptr<detail::core> weak_core;
    // Sizes are in order within each group: ten thousand waiters have ten thousand of these.

    // The acquire.
    /// Bad input, thrown when the verb is awaited.
    std::unique_ptr<const failure> refused;
    std::unique_ptr<const retry_policy> own_policy;
    place_in_queue place;
    /// The group that it belongs to, until that is complete or has given it back.
    incomplete_group* incomplete = nullptr;
    time_point started{};
    acquire_plan acquire;

    // The lease.
    std::uint64_t fence = 0;
    lease_plan plan;
    /// When the timer is to tell the first of those that wait for an answer.
    time_point answer_by = time_point::max();

    // Small ones together.
    /// Atomic, because an acquire that ends while an attempt is under way tells how many there were.
    std::atomic<std::uint32_t> attempts_made{0};
    std::optional<lost_reason> end_reason;
    operation under_way = operation::none;
    /// The backend answers inside the calls of the core: whoever makes them keeps it.
    const bool answered_at_once;

    // Of the acquire.
    /// Some create may have left a place in the backend's queue, a grant, or an unknown state.
    bool left_trace = false;
    bool outcome_ready = false;
    bool gives_back_late_grant = false;
    /// The locks of the key or group may have been broken while an operation of this one was unanswered. Once it is
    /// answered and the lock is held, the backend is asked about it.
    bool is_to_be_verified = false;
    /// The adapter has said that the grant has ended, before the core has heard of the grant: it ends once it is held.
    std::optional<lost_reason> loss_before_grant;

    // Of the lease.
    bool granted = false;
    /// A release was told of the loss already.
    bool loss_reported = false;
    /// It was told of the shutdown.
    bool told_of_shutdown = false;

private:
    struct afterwards
    {
        detail::extension extension;
        release_state back;
    };

    std::atomic<phase> phase_{phase::acquiring};
    bool has_acquired_ = false;
    union
    {
        create_outcome outcome_;
        afterwards after_;
    };
};

/// The core of a record, for as long as an adapter's answer is looked at; none if the record needs no more answers. An
/// answer that comes on a thread of the adapter's own may meet the last owner leaving.
class pinned_core
{
public:
    explicit pinned_core(const record& asked)
    {
        if (asked.where() == phase::ended)
            return;
        if (!asked.answered_at_once)
            kept_ = asked.weak_core.lock();
        core_ = asked.answered_at_once ? asked.owner_core : kept_.get();
    }

    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }
    [[nodiscard]] core* operator->() const noexcept { return core_; }
    [[nodiscard]] core& operator*() const noexcept { return *core_; }

private:
    std::shared_ptr<core> kept_;
    core* core_ = nullptr;
};

/// For an adapter that says that it failed, but not why.
void must_be_said(failure_ptr& why);

/// Whether a failed attempt counts under the retry policy instead of ending the acquire.
[[nodiscard]] inline bool may_be_tried_again(const error_code& code) noexcept
{
    return code == errc::unavailable || code == errc::outcome_unknown;
}

} // namespace colock::detail
