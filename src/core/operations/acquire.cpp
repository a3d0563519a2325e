// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/acquire_guard.hpp"
#include "core/operations/acquire_step.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/run_operation.hpp"
#include "core/state/core.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

namespace colock::inline v0::detail::operations {

namespace {

/// Throws errors that are known before a request is sent. Stores the start time of the acquire.
void begin_acquire(const core& self, lock_record& record)
{
    throw_if_invalid(self, record);
    prepare_token(self, record);
    record.started = lease_clock::now();
}

/// Whether a try_acquire may send its request although others wait for the key. Shared locks do not exclude each other,
/// so a shared lock may be requested while those before it wait for their first answer. Waiters that have received an
/// answer are not overtaken.
bool may_ask_in_parallel(const lock_record& record, const key_queue& queue)
{
    const auto awaits_first_answer = [](const auto& member) {
        return member.mode() == lock_mode::shared && member.in_flight == operation::create && member.attempts_made == 0;
    };
    return record.mode() == lock_mode::shared && !queue.holder &&
           std::all_of(queue.members.begin(), queue.members.end(), awaits_first_answer);
}

/// Returns the last answer to the members of the queue. Returns nothing if there is no queue, or if `record` may ask
/// the backend in parallel.
std::optional<last_answer> answer_to_queue(core& self, const lock_record& record, lease_clock::time_point now)
{
    if (!self.queues.may_have(record.key_hash()))
        return std::nullopt;
    const std::lock_guard guard(self.mutex);
    const key_queue* const queue = self.queues.find(record);
    if (!queue || may_ask_in_parallel(record, *queue))
        return std::nullopt;
    return answer_to_heads(self, *queue, now);
}

void send_single(core& self, const lock_record::ptr& record, lease_clock::time_point now)
{
    {
        const std::lock_guard guard(self.mutex);
        static_cast<void>(key_queues::prepare_attempt(*record, now, true));
        self.unqueued_acquires.push_back(*record);
    }
    send_attempt(self, record, false);
}

/// Returns the pending answer, if any. Otherwise stores in `seen` the version at which there was no answer.
std::optional<create_outcome> take_answer(core& self, lock_record& record, std::uint32_t& seen)
{
    const std::lock_guard guard(self.mutex);
    seen = record.version;
    if (record.current_phase() != phase::acquiring || !std::exchange(record.acquire_state().outcome_ready, false))
        return std::nullopt;
    return std::move(record.acquire_state().outcome);
}

/// The common part of an acquire and a single attempt.
class acquiring_operation
{
public:
    static constexpr bool checks_cancellation = true;

    acquiring_operation(const acquiring_operation&) = delete;
    acquiring_operation& operator=(const acquiring_operation&) = delete;

    [[nodiscard]] core& owner_core() const noexcept { return *core_; }
    void failed(const std::exception_ptr& failure) noexcept { on_exit_.failure = failure; }

protected:
    acquiring_operation(std::shared_ptr<core>&& self, lock_record::ptr&& record)
        : core_(std::move(self)), record_(std::move(record))
    {
    }

    ~acquiring_operation() = default;

    /// Sends one request to a backend that answers inside the call. If the lock is not granted, the operation may wait
    /// from here on.
    [[nodiscard]] step try_at_once()
    {
        // The operation is counted before the first check whether the locker is closed. A shutdown that begins after
        // that check therefore waits for this operation.
        on_exit_.begin(record_);
        begin_acquire(*core_, *record_);
        const step next = grant_at_once(*core_, record_, record_->started);
        if (next != step::granted) {
            throw_if_closed();
            on_exit_.enter_slow_path();
        }
        return next;
    }
    void throw_if_closed() const
    {
        if (core_->closed_to_new.load())
            throw_shutting_down(*core_, *record_);
    }
    [[nodiscard]] lock make_handle() noexcept
    {
        on_exit_.dismiss();
        return lock_record::make_lock(std::move(record_), std::move(core_));
    }

    std::shared_ptr<core> core_;
    /// May be replaced by another claim that continues the acquire. Null once the lock was handed out.
    lock_record::ptr record_;
    acquire_guard on_exit_;
};

/// An acquire that waits until its retry policy ends.
class acquire_operation : public acquiring_operation
{
public:
    using result_type = lock;
    static constexpr on_close closing = on_close::end_wait;

    acquire_operation(std::shared_ptr<core> self, lock_record::ptr record)
        : acquiring_operation(std::move(self), std::move(record))
    {
    }

    [[nodiscard]] bool begin()
    {
        next_ = try_at_once();
        if (next_ == step::granted)
            return true;
        schedule_.emplace(record_->own_policy ? *record_->own_policy : core_->options.retry, record_->started);
        has_just_begun_ = true;
        return false;
    }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        for (;;) {
            std::uint32_t seen = 0;
            std::optional<lease_clock::time_point> now;
            if (std::exchange(has_just_begun_, false))
                now = schedule_->start();
            if (next_ == step::again)
                next_ = next_step(*core_, record_, *schedule_, now, seen);
            switch (std::exchange(next_, step::again)) {
            case step::granted:
                return std::nullopt;
            case step::again:
                break;
            case step::yield:
                return awaited_change{record_.get(), condition::outdated};
            case step::await_answer:
            case step::wait:
                return awaited_change{record_.get(), seen};
            }
        }
    }

    [[nodiscard]] lock result() noexcept { return make_handle(); }

protected:
    std::optional<retry_schedule> schedule_;

private:
    step next_ = step::again;
    /// The first call of `advance` uses the start time as the current time.
    bool has_just_begun_ = false;
};

/// An acquire with a time limit: the result is empty if the lock is busy when the policy ends.
class limited_acquire_operation : public acquire_operation
{
public:
    using result_type = std::optional<lock>;
    using acquire_operation::acquire_operation;

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        try {
            return acquire_operation::advance();
        } catch (const retry_error&) {
            if (!schedule_->has_ended_busy())
                throw;
            on_exit_.is_busy = true;
            return std::nullopt;
        }
    }

    [[nodiscard]] std::optional<lock> result() noexcept
    {
        if (on_exit_.is_busy)
            return std::nullopt;
        return make_handle();
    }
};

/// A single attempt.
class try_acquire_operation : public acquiring_operation
{
public:
    using result_type = std::optional<lock>;
    static constexpr on_close closing = on_close::keep_waiting;

    try_acquire_operation(std::shared_ptr<core> self, lock_record::ptr record)
        : acquiring_operation(std::move(self), std::move(record))
    {
    }

    [[nodiscard]] bool begin()
    {
        const step next = try_at_once();
        is_granted_ = next != step::again;
        must_yield_ = next == step::yield;
        return next == step::granted;
    }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        if (is_granted_) {
            if (std::exchange(must_yield_, false))
                return awaited_change{record_.get(), condition::outdated};
            return std::nullopt;
        }
        if (!std::exchange(is_started_, true)) {
            if (const auto ahead = answer_to_queue(*core_, *record_, record_->started)) {
                if (const auto failure =
                        failure_unless_busy(*core_, *ahead, "the backend does not answer the caller that is first"))
                    throw_failed(*failure, context_of(*core_, *record_));
                return std::nullopt;
            }
            // A backend that answers at once has been asked already.
            if (!record_->acquire_state().plan.was_sent())
                send_single(*core_, record_, record_->started);
        }
        std::uint32_t seen = 0;
        const auto answer = take_answer(*core_, *record_, seen);
        // `take_answer` has read the version before this check, so a later grant changes it.
        is_granted_ = record_->current_phase() != phase::acquiring;
        if (is_granted_)
            return std::nullopt;
        throw_if_closed();
        if (!answer)
            return awaited_change{record_.get(), seen};
        // The destructor of `on_exit_` releases a grant that arrived too late.
        if (answer->status != create_status::busy)
            throw_failed(answer->status == create_status::failed ? *answer->error : *make_late_grant_failure(),
                context_of(*core_, *record_));
        return std::nullopt;
    }

    [[nodiscard]] std::optional<lock> result() noexcept
    {
        if (is_granted_)
            return make_handle();
        on_exit_.is_busy = true;
        return std::nullopt;
    }

private:
    bool is_granted_ = false;
    bool must_yield_ = false;
    bool is_started_ = false;
};

} // namespace

asio::awaitable<lock> acquire(std::shared_ptr<core> self, lock_record::ptr record)
{
    return await_operation<acquire_operation>(std::move(self), std::move(record));
}

void start_prepared_acquire(operation_handler<lock> handler, std::shared_ptr<core> self, lock_record::ptr record)
{
    start_operation<acquire_operation>(std::move(handler), std::move(self), std::move(record));
}

void start_acquire(
    const std::shared_ptr<core>& self, std::string&& key, acquire_options&& options, operation_handler<lock> handler)
{
    auto record = prepare(self, std::move(key), std::move(options), renewal::manual, true);
    start_prepared_acquire(std::move(handler), self, std::move(record));
}

asio::awaitable<std::optional<lock>> try_acquire(const std::shared_ptr<core>& self, std::string&& key,
    lease_clock::duration within, acquire_options&& options, renewal default_renewal)
{
    const bool waits = within > within.zero();
    if (waits)
        limit_wait(*self, options, within);
    auto record = prepare(self, std::move(key), std::move(options), default_renewal, waits);
    return waits ? await_operation<limited_acquire_operation>(self, std::move(record))
                 : await_operation<try_acquire_operation>(self, std::move(record));
}

void start_try_acquire(const std::shared_ptr<core>& self, std::string&& key, lease_clock::duration within,
    acquire_options&& options, operation_handler<std::optional<lock>> handler)
{
    const bool waits = within > within.zero();
    if (waits)
        limit_wait(*self, options, within);
    auto record = prepare(self, std::move(key), std::move(options), renewal::manual, waits);
    if (waits)
        start_operation<limited_acquire_operation>(std::move(handler), self, std::move(record));
    else
        start_operation<try_acquire_operation>(std::move(handler), self, std::move(record));
}

} // namespace colock::inline v0::detail::operations
