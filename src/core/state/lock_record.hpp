// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>

#include "core/policy/acquire_plan.hpp"
#include "core/policy/lease_plan.hpp"
#include "core/policy/release_retries.hpp"
#include "core/policy/retry_schedule.hpp"
#include "core/state/condition.hpp"

#include <boost/assert.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/list_hook.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace colock::inline v0::detail {

class core;
class lock_record;
struct key_queue;

/// The phase of an acquisition. It only ever moves forward.
enum class phase : unsigned char
{
    /// Requested, but not granted: an attempt is in flight, or the record waits in the local queue.
    acquiring,
    /// Granted. A handle, or a coroutine that is about to return a handle, owns the record.
    held,
    /// To be released: a release is due or in flight. No handle owns the record.
    ending,
    /// Finished: proven to hold nothing, or given up unproven.
    ended,
};

/// The operation of a claim that is in flight. A claim has at most one.
enum class operation : unsigned char
{
    none,
    create,
    release,
    extend,
    /// An is_valid or an export.
    query,
};

/// Records which events the observer has received for an acquire, because each is reported once.
struct reported_events
{
    bool waiting = false;
    bool possible_deadlock = false;
};

/// The data of an acquire.
struct acquire_state
{
    /// The answer to the last attempt. Once the answer has been processed, only its holder and its error are kept.
    create_outcome outcome{};
    acquire_plan plan;
    /// The local queue of the key, while the record is in it.
    key_queue* queue = nullptr;
    /// Invalid input, reported when the operation is awaited; null if the input is valid.
    std::unique_ptr<const failure> input_failure;
    /// Options of the lease that a grant begins.
    std::chrono::milliseconds max_hold{0};
    bool renews = false;
    /// The record is one of the first in the queue, which send requests.
    bool is_head = false;
    /// Whether a holder in this locker may hand over the lock to this record: true while the coroutine is suspended in
    /// the queue.
    bool open_to_hand_over = false;
    /// The answer has not been processed yet.
    bool outcome_ready = false;
    /// The reason of a loss that the adapter has reported before the core has processed the grant. The lock is lost as
    /// soon as the grant is processed.
    std::optional<lost_reason> loss_before_grant;
};

/// An `acquire_all` that does not hold all of its locks yet. The object lives in the frame of its coroutine.
///
/// Thread safety: guarded by the mutex of the core.
struct group_progress : condition
{
    /// The claim that the coroutine waits for; null while it waits for the group itself.
    lock_record* awaited_claim = nullptr;
    /// A lease has ended, so the group has to start again.
    bool has_lost_lease = false;

    /// Records the end of a lease, and wakes the coroutine.
    void lease_ended(wake_list& wakes);
};

/// An extension or a renewal that is in flight.
struct extension
{
    std::chrono::milliseconds ttl{0};
    /// Receives the outcome for the caller; null for a renewal.
    std::shared_ptr<std::optional<extend_outcome>> result;

    [[nodiscard]] bool is_renewal() const noexcept { return !result; }
};

/// Measures for how long a lock is held. Takes one word of memory, because there is one in each record.
class hold_timer
{
public:
    using time_point = lease_clock::time_point;

    void start(time_point now) noexcept { span_ -= now.time_since_epoch(); }
    void stop(time_point now) noexcept { span_ += now.time_since_epoch(); }
    /// Returns the time since `start`. Requires that the timer runs.
    [[nodiscard]] lease_clock::duration elapsed(time_point now) const noexcept
    {
        return span_ + now.time_since_epoch();
    }
    /// Returns the time from `start` to `stop`.
    [[nodiscard]] lease_clock::duration span() const noexcept { return span_; }

private:
    /// The result after `stop`. Before, the negative start time, to which the current time is added.
    lease_clock::duration span_{0};
};

struct release_tag;

/// Notifies a condition when the lease of a record ends. Guarded by the mutex of the core.
struct end_listener : boost::intrusive::list_base_hook<auto_unlink>
{
    condition* target = nullptr;
};

/// The state of a release. `time_held` and `retries` are used from the grant on, the rest from the moment the lock is
/// to be released.
struct release_state
{
    /// Error of the first answer to the release.
    failure_ptr error{};
    /// When the coroutine that waits for the answer to this release stops waiting; max until it begins.
    lease_clock::time_point wait_deadline = lease_clock::time_point::max();
    release_retries retries;
    /// How long the lock was held. Measured only if there is an observer.
    hold_timer time_held;
    /// No caller reports this release: the caller is gone, the lease was lost, or the first request has failed. Such a
    /// lock is not handed over.
    bool is_in_background = false;
    bool answered = false;
    /// The observer has received `released` for this lock already.
    bool release_reported = false;
    release_status status = release_status::released;
};

/// The data of a lease and of its release.
struct lease_state
{
    lease_plan plan;
    std::uint64_t fence = 0;
    /// Notified when the lease ends, in addition to the record's own condition.
    boost::intrusive::list<end_listener, boost::intrusive::constant_time_size<false>> end_listeners{};
    /// The earliest time at which a coroutine stops waiting for an answer: of an extend, a query, an export or the
    /// release. The timer resumes it then.
    lease_clock::time_point earliest_wait_deadline = lease_clock::time_point::max();
    detail::extension extension{};
    /// Error of the last renewal, if it failed.
    failure_ptr renewal_error{};
    detail::release_state release{};
    /// Whether a `release` has already failed with `not_held` because of the loss of this lock.
    bool loss_thrown = false;
    /// Whether the shutdown has ended this lock or stopped its body.
    bool shutdown_notified = false;
};

/// One acquisition, from the call to the end of its cleanup: the claim that the adapter sees, and the core's data about
/// it. The handle, the operation in flight and the core's lists share its ownership. If the owning frame is destroyed,
/// the core completes the release.
///
/// `list_hook` links a record into at most one list of the core at a time: the queue of its key, the single attempts,
/// the held locks, or the claims that end.
///
/// Thread safety: members without another note are guarded by the mutex of the core. `own_policy` belongs to the
/// acquiring coroutine.
class lock_record final : public claim,
                          public condition,
                          public boost::intrusive::list_base_hook<>,
                          public boost::intrusive::list_base_hook<boost::intrusive::tag<release_tag>, auto_unlink>
{
public:
    using ptr = boost::intrusive_ptr<lock_record>;
    using list_hook = boost::intrusive::list_base_hook<>;
    /// Links the record into key_queue::wake_on_release.
    using release_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<release_tag>, auto_unlink>;

    lock_record(const std::shared_ptr<core>& self, claim_request request);
    ~lock_record() override;

    static void* operator new(std::size_t size);
    static void operator delete(void* memory, std::size_t size) noexcept;

    [[nodiscard]] static lock_record& from_claim(const claim_ptr& claim) noexcept
    {
        return static_cast<lock_record&>(*claim);
    }
    [[nodiscard]] static ptr take_from_claim(claim_ptr&& claim) noexcept
    {
        return {static_cast<lock_record*>(claim.detach()), false};
    }
    [[nodiscard]] static lock_record& from_lock(const lock& handle) noexcept { return from_claim(handle.record_); }
    [[nodiscard]] static lock make_lock(ptr&& record, std::shared_ptr<core>&& self) noexcept
    {
        return lock(std::move(record), std::move(self));
    }

    /// Must be called before a create, or a request that includes one, is sent. Discards reports about an earlier
    /// grant, because they do not concern the grant that this create may bring. The mutex must be held.
    void prepare_create() noexcept
    {
        in_flight = operation::create;
        is_to_be_queried = false;
        acquire_state().loss_before_grant.reset();
    }
    /// Continues the acquire of `replaced`, another record with the same request: takes over its progress, but not its
    /// place in the queue.
    void take_progress_from(lock_record& replaced) noexcept;

    // Reports of the adapter.
    void lost(lost_reason reason) noexcept override;
    void on_created(create_outcome&& outcome);
    /// A create of several locks was refused, because one of them is busy.
    /// \param busy the answer for this lock, if this lock is busy; null if another one is
    void on_refused(create_outcome* busy);
    void on_released(release_outcome&& outcome);
    void on_extended(extend_outcome outcome);
    void on_queried(valid_outcome outcome);

    [[nodiscard]] phase current_phase() const noexcept { return phase_.load(std::memory_order_acquire); }

    // The data of the acquire and the data of the lease share their memory, because ten thousand waiters do not need
    // the latter. (A std::variant costs two indirect calls per access.)
    /// Valid until `begin_lease_state()`.
    [[nodiscard]] const detail::acquire_state& acquire_state() const noexcept
    {
        BOOST_ASSERT(!has_lease_state_);
        return acquire_state_;
    }
    [[nodiscard]] detail::acquire_state& acquire_state() noexcept
    {
        return const_cast<detail::acquire_state&>(std::as_const(*this).acquire_state());
    }
    /// Valid from `begin_lease_state()` on.
    [[nodiscard]] const detail::lease_state& lease_state() const noexcept
    {
        BOOST_ASSERT(has_lease_state_);
        return lease_state_;
    }
    [[nodiscard]] detail::lease_state& lease_state() noexcept
    {
        return const_cast<detail::lease_state&>(std::as_const(*this).lease_state());
    }
    [[nodiscard]] const detail::release_state& release_state() const noexcept { return lease_state().release; }
    [[nodiscard]] detail::release_state& release_state() noexcept { return lease_state().release; }
    /// Returns when a record that is being released is due in the timer queue.
    [[nodiscard]] time_point release_due() const noexcept
    {
        return std::min(release_state().retries.next_at(), lease_state().earliest_wait_deadline);
    }
    /// Called when an extend, an is_valid or an export was answered. If a release waits for this answer, its own
    /// deadline applies from now on.
    void end_operation_in_flight() noexcept
    {
        in_flight = operation::none;
        lease_state().earliest_wait_deadline =
            current_phase() == phase::ending ? release_state().wait_deadline : time_point::max();
    }
    /// Replaces the data of the acquire by the data of the lease. Must be called once.
    void begin_lease_state() noexcept;

    /// Valid until the record has ended. The core is kept alive by the acquiring coroutine, by the handle, or by itself
    /// while a lock is being released.
    detail::core* const owner_core;
    /// For calls from the adapter, which may come at any time.
    const std::weak_ptr<detail::core> weak_core;
    /// The retry policy of the call; null if that of the locker applies.
    std::unique_ptr<const retry_policy> own_policy;
    // The other members are used in several phases. They are ordered by size, because ten thousand waiters have ten
    // thousand of these records.
    /// The group that the record belongs to, until the group is complete or has released the record.
    group_progress* group_in_progress = nullptr;
    time_point started{};
    /// Atomic, because an acquire that ends while an attempt is in flight reports the number of attempts.
    std::atomic<std::uint32_t> attempts_made{0};
    std::optional<lost_reason> end_reason;
    operation in_flight = operation::none;
    reported_events reported;
    /// The backend answers inside the calls of the core, so the caller keeps the core alive.
    const bool is_immediate;
    /// A create may have left something in the backend: a place in its queue, a grant, or an unknown state.
    bool may_exist_in_backend = false;
    /// The release in flight is that of a grant that arrived too late. The acquire continues.
    bool releases_late_grant = false;
    /// A break may have removed the lock while an operation of this record was unanswered. Once the answer has arrived
    /// and the lock is held, the core asks the backend whether it still exists.
    bool is_to_be_queried = false;
    /// Whether the backend has granted the lock. Remains true while the lock is being released.
    bool granted = false;
    /// The lock of an election: its events are reported as those of a leader, too.
    bool is_leadership = false;

private:
    friend class core;
    /// Called only in transitions.cpp.
    void move_to(phase next) noexcept { phase_.store(next, std::memory_order_release); }

    std::atomic<phase> phase_{phase::acquiring};
    bool has_lease_state_ = false;
    union
    {
        detail::acquire_state acquire_state_;
        detail::lease_state lease_state_;
    };
};

using record_list = boost::intrusive::list<lock_record, boost::intrusive::constant_time_size<false>>;

// The allocator rounds sizes up to a multiple of 64 bytes, and there may be ten thousand records.
static_assert(sizeof(lock_record) <= 512);

/// Pins the core of a record while an adapter's answer is processed. Empty if the record needs no more answers. An
/// answer may arrive on a thread of the adapter while the last owner of the core is being destroyed.
class pinned_core
{
public:
    explicit pinned_core(const lock_record& record)
    {
        if (record.current_phase() == phase::ended)
            return;
        if (!record.is_immediate)
            kept_ = record.weak_core.lock();
        core_ = record.is_immediate ? record.owner_core : kept_.get();
    }

    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }
    [[nodiscard]] core* operator->() const noexcept { return core_; }
    [[nodiscard]] core& operator*() const noexcept { return *core_; }

private:
    std::shared_ptr<core> kept_;
    core* core_ = nullptr;
};

/// Returns when the conflicting lock expires, according to an answer that arrived at `now`; max if that is not known.
[[nodiscard]] inline lease_clock::time_point holder_expiry(
    const create_outcome& answer, lease_clock::time_point now) noexcept
{
    return answer.retry_after > lease_clock::duration::zero() ? saturating_add(now, answer.retry_after)
                                                              : lease_clock::time_point::max();
}

} // namespace colock::inline v0::detail
