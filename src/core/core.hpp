// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/adapter.hpp>
#include <colock/context_member.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/stats.hpp>

#include "core/leases.hpp"
#include "core/parking.hpp"
#include "core/record.hpp"
#include "core/settler.hpp"
#include "core/shard.hpp"
#include "core/work.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/intrusive/list.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::detail {

/// The shared state of a locker: its local queues, its leases with their one timer, and the clean-up of what callers
/// have left behind.
///
/// Its parts share a shard, and its mutex.
class core final : private shard,
                   public context_member,
                   public session_bound::watcher,
                   public std::enable_shared_from_this<core>
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
    /// It leaves without having handed out what it waited for: its frame died, or goes on with another claim.
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
    struct departure;
    struct query_state;

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

    // verbs/acquire.cpp, acquire_step.cpp
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
    /// Checks what can be wrong before anything is asked; returns when it began.
    [[nodiscard]] time_point begin_acquire(record& wanted) const;
    void send_single(const record_ptr& wanted, time_point now);
    [[nodiscard]] std::optional<create_outcome> take_answer(record& wanted, std::uint32_t& seen);
    [[nodiscard]] step grant_at_once(const record_ptr& wanted, time_point now);
    void take_back_late_grant(const record_ptr& wanted, time_point now);
    /// Another record in the place of one that is spent, which is left to be settled.
    [[nodiscard]] record_ptr take_over_from(const record_ptr& spent);

    /// Somebody stands before it. Not under the mutex.
    [[nodiscard]] bool is_queued(const record& wanted);

    // verbs/group.cpp
    struct candidate;
    class gathering;

    // departing.cpp, verbs/held.cpp
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

    // fork.cpp; the mutex is held.
    void leave_to_parent(record& inherited, work& todo) noexcept;

    // timers.cpp
    void on_timer();
    /// The mutex is held.
    void on_due(waitable& due, time_point now, work& todo);

    // verbs/admin.cpp
    enum class effect : unsigned char
    {
        none,
        writes,
    };
    [[nodiscard]] std::vector<record_ptr> held_of(const std::string& key);
    [[nodiscard]] static asio::awaitable<void> ask_if_broken(std::shared_ptr<core> self, record_ptr held);
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

    // core.cpp
    /// Ends early, with an exception, if the locker does.
    [[nodiscard]] static asio::awaitable<void> pause(
        std::shared_ptr<core> self, const record& wanted, time_point until);

    // verbs/shutdown.cpp
    void begin_shutdown();
    [[nodiscard]] shutdown_report end_shutdown();
    /// The mutex is held.
    void report_undecided(std::vector<std::string>& keys);
    struct close_state;
    static asio::awaitable<void> close_backend(
        std::shared_ptr<core> self, lease_clock::duration patience, time_point until);
    /// What is still asked of it may take so long.
    void detach_from_backend(lease_clock::duration patience, completion<closed> done);

    const std::shared_ptr<const owner_data> owner_;

    /// Coroutines that acquire and may have to wait.
    std::atomic<unsigned> acquiring_{0};
    /// Those whose create is being carried out inside the call that another thread has made.
    std::atomic<unsigned> granting_at_once_{0};
    /// The backend was told that this locker needs it no more.
    bool detached_ = false;
    settler settler_{*this};
    leases leases_{*this, settler_};
    /// Single attempts that are under way; they stand in no queue.
    registry trying_;
    /// Of quick releases: while their backend is being asked, their records are in neither list. The threads that ask
    /// keep the core, and end them without the mutex.
    unsigned quick_releases_begun_ = 0;
    std::atomic<unsigned> quick_releases_ended_{0};
    /// Those that neither hold anything nor stand in a queue.
    notice pausing_;
};

} // namespace colock::detail
