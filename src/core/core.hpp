// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/adapter.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/stats.hpp>

#include "core/context_service.hpp"
#include "core/parking.hpp"
#include "core/record.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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

/// The shared state of a locker: its local queues, its leases with their one timer, and the clean-up of what callers
/// have left behind.
///
/// One mutex guards it all. It is never held while an adapter, an observer or a handler is called, or while anything is
/// destroyed that could own a coroutine.
class core final : public context_member, public session_bound::watcher, public std::enable_shared_from_this<core>
{
public:
    using time_point = lease_clock::time_point;
    using record_ptr = record::ptr;

    /// \throws validation_error
    [[nodiscard]] static std::shared_ptr<core> make(std::shared_ptr<adapter> backend, locker_options options);
    core(std::shared_ptr<adapter> backend, locker_options options);

    [[nodiscard]] asio::any_io_executor executor() const { return backend_->executor(); }
    [[nodiscard]] const locker_options& options() const noexcept { return options_; }
    [[nodiscard]] std::string backend_name() const { return std::string(backend_->name()); }
    [[nodiscard]] capabilities can() const noexcept { return can_; }
    /// No answer will come: the context is gone on which the backend answers.
    [[nodiscard]] bool is_deaf() const noexcept { return dead_ && !can_.immediate; }

    // The verbs. Each is a coroutine that owns what it needs.
    static asio::awaitable<lock> acquire(std::shared_ptr<core> self, record_ptr wanted);
    static asio::awaitable<std::optional<lock>> try_acquire(std::shared_ptr<core> self, record_ptr wanted);
    static asio::awaitable<lock_group> acquire_all(
        std::shared_ptr<core> self, std::vector<std::string> keys, acquire_options options);
    static asio::awaitable<lock> acquire_for_group(
        std::shared_ptr<core> self, std::string group, std::string key, acquire_options options);
    static asio::awaitable<std::vector<lock_report>> extend_each(
        std::vector<lock>& locks, std::chrono::milliseconds ttl);
    static asio::awaitable<std::vector<lock_report>> release_each(std::vector<lock> locks);
    static asio::awaitable<void> release(std::shared_ptr<core> self, record_ptr held, on_failure report);
    /// Quiet, and deaf to the caller's cancellation; bounded by the operation timeout.
    static asio::awaitable<void> release_uncancelled(std::shared_ptr<core> self, record_ptr held);
    static asio::awaitable<void> extend(std::shared_ptr<core> self, record_ptr held, std::chrono::milliseconds ttl);
    static asio::awaitable<bool> is_valid(std::shared_ptr<core> self, record_ptr held);
    static asio::awaitable<lost_reason> lost(std::shared_ptr<core> self, record_ptr held);
    static asio::awaitable<bool> is_locked(std::shared_ptr<core> self, std::string key);
    static asio::awaitable<std::vector<lock_status>> list(std::shared_ptr<core> self, filter which);
    static asio::awaitable<std::vector<lock_status>> purge(std::shared_ptr<core> self, std::size_t limit);
    static asio::awaitable<std::vector<lock_status>> break_lock(std::shared_ptr<core> self, std::string key);
    static asio::awaitable<shutdown_report> shutdown(std::shared_ptr<core> self, std::chrono::milliseconds deadline);

    /// The record of an acquire; bad input is kept in it and thrown when the verb is awaited.
    [[nodiscard]] static record_ptr prepare(const std::shared_ptr<core>& self, std::string&& key,
        acquire_options&& options, renewal by_default, bool queues, std::string_view group = {});
    [[nodiscard]] error_context context_of(const record& wanted) const;

    [[nodiscard]] std::vector<held_lock> held_locks();
    [[nodiscard]] locker_stats stats();
    /// The last locker handle is gone: waiters end, what is held stays.
    void orphan();

    /// Gives a held lock back in the background.
    void let_go(record& held) noexcept;
    /// A frame died before it could hand out what it waited for.
    void depart(const record_ptr& wanted) noexcept;

    // with_lock's own.
    /// Why it may not begin at all, if the lease has ended already.
    [[nodiscard]] std::optional<lost_reason> body_begins(record& held);
    /// Completes when the body of `held` has to stop.
    static asio::awaitable<void> supervise(std::shared_ptr<core> self, record_ptr held);
    /// Why the result of the body cannot stand; nothing if the lease stood until now, or the body itself ended it.
    [[nodiscard]] std::optional<lost_reason> body_ends(record& held);

    // What the adapter tells, through the record, which the caller keeps.
    void on_created(record& wanted, create_outcome&& outcome);
    void on_given_back(record& ending, release_outcome&& outcome);
    void on_handed_over(record& ending, record& next, hand_over_outcome&& outcome);
    void on_extended(const record_ptr& held, extend_outcome outcome);
    void on_woken(const record_ptr& waiting, std::uint32_t wait_number);
    void on_risk(const record_ptr& held);
    void declare_lost(const record_ptr& held, lost_reason reason);

    void on_session_at_risk(const session_bound& session) noexcept override;
    void on_session_ended(const session_bound& session) noexcept override;
    void context_shutdown() noexcept override;
    void context_forked() noexcept override;

    /// Suspends until `source` changes; not at all if it has since `seen`. The caller's frame keeps source, place and
    /// core.
    template <class CompletionToken = asio::deferred_t>
    [[nodiscard]] auto park(
        waitable& source, parked& place, std::uint32_t seen, const CompletionToken& completion_token = {})
    {
        return asio::async_initiate<const CompletionToken, void(error_code)>(
            [](auto handler, core* self, waitable* where, parked* slot, std::uint32_t version) {
                slot->source = where;
                slot->executor = asio::get_associated_executor(handler);
                slot->handler = std::move(handler);
                self->suspend(*slot, version);
            },
            completion_token, this, &source, &place, seen);
    }

private:
    struct work;
    struct departure;
    struct query_state;
    using registry = boost::intrusive::list<record, boost::intrusive::constant_time_size<false>>;
    using heap = boost::intrusive::multiset<waitable,
        boost::intrusive::base_hook<
            boost::intrusive::set_base_hook<boost::intrusive::tag<timer_tag>, boost::intrusive::optimize_size<true>>>>;

    enum class step : unsigned char
    {
        granted,
        again,
        yield,
        /// Until an attempt is answered.
        park,
        /// Until the lock may be free.
        wait,
        /// It would be attempted now, but has no leave.
        turn,
    };

    // parking.cpp
    void suspend(parked& place, std::uint32_t seen);
    void unpark(parked& place);

    // acquire.cpp
    /// `now`, if it was read a moment ago. `wanted` may be another one afterwards: see take_over_from.
    [[nodiscard]] step next_step(
        record_ptr& wanted, retry_schedule& schedule, std::optional<time_point> now, std::uint32_t& seen);
    void judge(const record_ptr& wanted, retry_schedule& schedule, create_outcome outcome);
    class acquire_step;
    [[noreturn]] void give_up(const record& wanted, const retry_schedule& schedule, const last_answer& last) const;
    /// The mutex is held.
    [[nodiscard]] static last_answer answer_to(const record& wanted, time_point now);
    /// The mutex is held.
    [[nodiscard]] static bool asks_beside(const record& wanted, const key_queue& queue);
    /// To those who are queued before it; nothing if there are none. Not under the mutex.
    [[nodiscard]] std::optional<last_answer> answer_ahead(const record& wanted);
    [[noreturn]] void throw_shutting_down(const record& wanted) const;
    /// What is asked for again after a fork would be granted to the parent as well.
    void throw_if_inherited(const record& wanted) const
    {
        if (wanted.inherited())
            throw_inherited(wanted);
    }
    [[noreturn]] void throw_inherited(const record& wanted) const;
    /// What is not set comes from the locker's options, which were checked when it was made.
    [[nodiscard]] std::unique_ptr<const failure> check(std::string_view key, const acquire_options& options) const;
    void throw_refused(const record& wanted) const;
    /// What may fail is done while there is nothing to take back: a backend that does not answer at once needs a token.
    void prepare_token(const record& wanted) const;
    void stops_acquiring(std::atomic<unsigned>& counter) noexcept;
    /// The mutex is held. True if it waits at the adapter, which is to be cancelled.
    [[nodiscard]] bool begin_attempt(record& wanted, time_point now, bool counts);
    /// The mutex is held, and it has not been granted.
    void stop_trying(record& wanted);
    void send_attempt(const record_ptr& wanted, bool waits);
    void start_wait_at_adapter(record& wanted, std::uint32_t number, time_point until);
    [[nodiscard]] step grant_at_once(const record_ptr& wanted, time_point now);
    void take_back_late_grant(const record_ptr& wanted, time_point now);
    /// Another record in the place of one that is spent, which is left to be settled.
    [[nodiscard]] record_ptr take_over_from(const record_ptr& spent);

    // group.cpp
    struct candidate;
    class gathering;

    // queue.cpp; the mutex is held.
    [[nodiscard]] bool may_be_queued(std::size_t hash) const noexcept
    {
        return queued_[hash % queued_.size()].load(std::memory_order_acquire) != 0;
    }
    void count_queue(std::size_t hash, int more) noexcept
    {
        // Written under the mutex alone.
        auto& count = queued_[hash % queued_.size()];
        count.store(
            count.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(more), std::memory_order_release);
    }
    /// Not under the mutex.
    [[nodiscard]] bool is_queued(const record& wanted);
    [[nodiscard]] key_queue* find_queue(const record& wanted);
    void enqueue(record& wanted, bool as_head, work& todo);
    /// True if others remain in it.
    bool leave_queue(record& wanted, work& todo);
    void promote(key_queue& queue, work& todo);
    void wake_heads(const record& ended, work& todo);
    /// For heads that sleep until the expiry that `shortened` had.
    void wake_for_earlier_expiry(const record& shortened, time_point expires, work& todo);
    [[nodiscard]] record_ptr next_for_hand_over(record& held);
    /// `fresh` stands where `waiting` stood.
    void change_places(record& waiting, record& fresh);

    // lease.cpp; the mutex is held.
    void hold(record& wanted, std::uint64_t fence);
    void grant(record& wanted, std::uint64_t fence, work& todo);
    void begin_end(record& held, lost_reason reason, work& todo);
    [[nodiscard]] std::optional<lost_reason> loss_of(record& held, work& todo);
    /// A request with this ttl is about to be sent, or was.
    void may_stand(record& claim, std::chrono::milliseconds ttl) const noexcept;
    [[nodiscard]] time_point unproven_after(const record& ending) const noexcept;
    void reschedule_held(record& held);
    void start_renewal(record& held, time_point now, work& todo);
    [[nodiscard]] bool follow_plan(record& held, time_point now, work& todo);
    void watch_session(record& held);
    void at_risk(record& held, time_point now, work& todo);
    [[nodiscard]] static lost_reason end_of(const record& held, time_point now) noexcept;
    void stop_body(record& held, lost_reason why, work& todo);
    /// The one that was sent last, with that ttl.
    [[nodiscard]] static lease_request request_of(const record& held, std::chrono::milliseconds ttl) noexcept;

    // hold.cpp
    [[nodiscard]] bool release_at_once(const record_ptr& held);
    [[nodiscard]] bool end_watched_release(record& ending, release_outcome&& outcome);
    /// To a shutdown that waits: something that it waits for may have ended.
    void tell_drained();
    /// True if its answer has to be awaited, from what `seen` is set to on.
    bool begin_release(record& held, std::uint32_t* seen = nullptr);
    [[nodiscard]] bool await_answer(record& ending, std::uint32_t& seen);
    /// The mutex is held.
    [[nodiscard]] bool is_unanswered(record& ending, std::uint32_t& seen);
    void raise_failed_release(record& ended, bool was_held);
    void check_extend(const record& held, std::chrono::milliseconds ttl) const;
    [[nodiscard]] bool begin_extend(const record_ptr& held, std::chrono::milliseconds ttl,
        const std::shared_ptr<std::optional<extend_outcome>>& result, std::uint32_t& seen);
    void report_extended(const record& held, const std::optional<extend_outcome>& result);
    enum class query_start : unsigned char
    {
        started,
        busy,
        ended,
    };
    [[nodiscard]] query_start begin_is_valid(
        const record_ptr& held, const std::shared_ptr<std::optional<valid_outcome>>& result, std::uint32_t& seen);
    void on_checked(const record_ptr& held, std::optional<valid_outcome>& result, valid_outcome outcome);
    template <class Outcome>
    [[nodiscard]] bool await_result(
        record& held, const std::optional<Outcome>& result, time_point until, std::uint32_t& seen);

    // settle.cpp; the mutex is held.
    void enter_ending(record& ending);
    void give_back(record& ending, work& todo);
    void retry_later(record& ending, work& todo);
    void end(record& ending, bool proven, work& todo);
    /// Not under the mutex: the last owner of `ending` leaves, and the core must outlive the clean-up.
    void keep_until_ended(record& ending);

    // fork.cpp; the mutex is held.
    void leave_to_parent(record& inherited, work& todo) noexcept;

    // timers.cpp; the mutex is held, except in on_timer.
    void schedule(waitable& source, time_point due);
    void arm_timer();
    void on_timer();
    void on_due(waitable& due, time_point now, work& todo);

    enum class effect : unsigned char
    {
        none,
        writes,
    };
    [[nodiscard]] static asio::awaitable<list_outcome> query(std::shared_ptr<core> self, std::string key, effect what,
        std::function<void(adapter&, completion<list_outcome>)> start);
    /// What is told of a question: one that has changed nothing leaves nothing in doubt. Without an outcome there was
    /// no answer in time.
    [[noreturn]] void throw_unanswered(const failure_ptr& why, effect what, error_context context) const;
    /// Why an operation that has had its time was not answered.
    [[nodiscard]] failure_ptr unanswered() const;
    /// An adapter that ends every operation within the operation timeout knows why better than a timer of ours.
    [[nodiscard]] bool adapter_keeps_time() const noexcept
    {
        return limits_.answers_within > limits_.answers_within.zero() &&
               limits_.answers_within <= options_.operation_timeout;
    }
    [[nodiscard]] time_point answer_deadline(time_point sent) const noexcept
    {
        return adapter_keeps_time() ? time_point::max() : saturating_add(sent, options_.operation_timeout);
    }
    struct unscheduled;
    /// Ends early, with an exception, if the locker does.
    [[nodiscard]] static asio::awaitable<void> pause(
        std::shared_ptr<core> self, const record& wanted, time_point until);
    void begin_shutdown();
    [[nodiscard]] shutdown_report end_shutdown();
    /// The mutex is held.
    void report_undecided(std::vector<std::string>& keys) const;
    [[nodiscard]] std::vector<record_ptr> held_of(const std::string& key);
    [[nodiscard]] static asio::awaitable<void> ask_if_broken(std::shared_ptr<core> self, record_ptr held);
    struct close_state;
    static asio::awaitable<void> close_backend(
        std::shared_ptr<core> self, lease_clock::duration patience, time_point until);
    /// What is still asked of it may take so long.
    void detach_from_backend(lease_clock::duration patience, completion<closed> done);

    const std::shared_ptr<adapter> backend_;
    const capabilities can_;
    const adapter_limits limits_;
    const locker_options options_;
    const lease_plan::margins margins_;
    /// Somebody hears of the end of every lease, or nobody else ends it.
    const bool watches_all_;
    const std::shared_ptr<const owner_data> owner_;

    light_mutex mutex_;
    /// Coroutines that acquire and may have to wait.
    std::atomic<unsigned> acquiring_{0};
    /// Those whose create is being carried out inside the call that another thread has made.
    std::atomic<unsigned> granting_at_once_{0};
    /// Shutting down, orphaned, or without a context: waiters end, and no acquire begins.
    std::atomic<bool> closed_to_new_{false};
    /// The backend was told that this locker needs it no more.
    bool detached_ = false;
    /// The one that is watched already.
    std::weak_ptr<session_bound> session_;
    std::atomic<bool> dead_{false};
    boost::unordered_flat_map<queue_name, std::unique_ptr<key_queue>, queue_name::known_hash> queues_;
    std::vector<std::unique_ptr<key_queue>> spare_queues_;
    /// How many queues there are per hash, so that an uncontended acquire needs neither the mutex nor a look-up.
    std::array<std::atomic<std::uint32_t>, 1024> queued_{};
    registry held_;
    /// Single attempts that are under way; they stand in no queue.
    registry trying_;
    /// Each member is kept alive by a reference of its own.
    registry ending_;
    /// Keys of what a shutdown has given up.
    std::vector<std::string> left_behind_;
    /// Of quick releases: while their backend is being asked, their records are in neither list. The threads that ask
    /// keep the core, and end them without the mutex.
    unsigned quick_releases_begun_ = 0;
    std::atomic<unsigned> quick_releases_ended_{0};
    parking_lot parked_;
    /// Keeps the core while something is being given back that no handle owns any more.
    std::shared_ptr<core> self_;
    notice drained_;
    /// Those that neither hold anything nor stand in a queue.
    notice pausing_;
    heap timers_;
    std::optional<lease_timer> timer_;
    time_point armed_for_ = time_point::max();
    locker_stats stats_;
};

} // namespace colock::detail
