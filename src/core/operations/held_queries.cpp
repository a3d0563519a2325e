// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/held_operation.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/run_operation.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace colock::inline v0::detail::operations {

namespace {

enum class query_start : unsigned char
{
    started,
    no_context,
    busy,
    ended,
};

query_start begin_is_valid(core& self, const lock_record::ptr& record,
    const std::shared_ptr<std::optional<valid_outcome>>& result, std::uint32_t& seen)
{
    {
        const std::lock_guard guard(self.mutex);
        if (self.is_backend_gone())
            return query_start::no_context;
        if (record->current_phase() != phase::held)
            return query_start::ended;
        seen = record->version;
        if (record->in_flight != operation::none)
            return query_start::busy;
        record->in_flight = operation::query;
        record->set_operation_start(lease_clock::now());
    }
    const auto answered = [record, result](valid_outcome outcome) {
        if (const pinned_core alive{*record})
            alive->on_queried(*record, std::move(outcome), result.get());
    };
    self.start_request(
        *record, [&](adapter& backend) { backend.start_is_valid(record, answered); },
        [&](const failure_ptr& failure) { answered({.error = failure}); });
    return query_start::started;
}

class is_valid_operation : public held_operation
{
public:
    using result_type = bool;
    static constexpr bool checks_cancellation = false;

    is_valid_operation(std::shared_ptr<core> self, lock_record::ptr record)
        : held_operation(std::move(self), std::move(record))
    {
    }

    [[nodiscard]] static bool begin() noexcept { return false; }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        std::uint32_t seen = 0;
        if (!until_) {
            switch (begin_is_valid(*core_, record_, result_, seen)) {
            case query_start::no_context:
                throw error(errc::shutting_down, context_of_held(*core_, *record_, began_, 0));
            case query_start::ended:
                return std::nullopt;
            case query_start::busy:
                return awaited_change{record_.get(), seen};
            case query_start::started:
                until_ = core_->answer_deadline(lease_clock::now());
                break;
            }
        }
        if (!must_await_result(*core_, *record_, *result_, *until_, seen))
            return std::nullopt;
        return awaited_change{record_.get(), seen};
    }

    [[nodiscard]] bool result()
    {
        if (!until_)
            return false;
        std::optional<valid_outcome> answer;
        bool still_held = false;
        {
            const std::lock_guard guard(core_->mutex);
            answer = *result_;
            still_held = record_->current_phase() == phase::held;
        }
        if (!answer || answer->error)
            throw_unanswered(
                *core_, answer ? answer->error : nullptr, effect::none, context_of_held(*core_, *record_, began_, 1));
        return still_held && answer->valid;
    }

private:
    const lease_clock::time_point began_ = lease_clock::now();
    const std::shared_ptr<std::optional<valid_outcome>> result_ = std::make_shared<std::optional<valid_outcome>>();
    /// When the operation stops waiting for the answer; set once the query has been sent.
    std::optional<lease_clock::time_point> until_;
};

/// Keeps the timer watching a lease while an operation waits for its end.
class lease_listener
{
public:
    /// \param notified a condition that is notified of the end, in addition to that of `record`; may be null
    lease_listener(core& self, lock_record::ptr record, condition* notified = nullptr)
        : core_(self), record_(std::move(record))
    {
        const std::lock_guard guard(core_.mutex);
        if (notified) {
            on_end_.target = notified;
            record_->lease_state().end_listeners.push_back(on_end_);
        }
        record_->lease_state().plan.add_listener();
        reschedule();
    }
    lease_listener(const lease_listener&) = delete;
    lease_listener& operator=(const lease_listener&) = delete;
    ~lease_listener()
    {
        const std::lock_guard guard(core_.mutex);
        if (on_end_.is_linked())
            on_end_.unlink();
        record_->lease_state().plan.remove_listener();
        reschedule();
    }

    [[nodiscard]] lock_record& held() const noexcept { return *record_; }
    /// Returns why the lease has ended, if it has. The mutex must be held.
    [[nodiscard]] std::optional<lost_reason> end_reason() const noexcept
    {
        // Without the adapter's context there is no timer that detects the end.
        return !record_->end_reason && core_.dead ? lost_reason::shutting_down : record_->end_reason;
    }

private:
    void reschedule()
    {
        if (record_->current_phase() == phase::held)
            core_.leases.reschedule(*record_);
    }

    core& core_;
    lock_record::ptr record_;
    end_listener on_end_;
};

/// Waits for the end of the lease.
class lost_operation : public held_operation
{
public:
    using result_type = lost_reason;
    static constexpr bool checks_cancellation = true;

    lost_operation(std::shared_ptr<core> self, lock_record::ptr record)
        : held_operation(std::move(self), std::move(record))
    {
    }

    [[nodiscard]] static bool begin() noexcept { return false; }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        const std::lock_guard guard(core_->mutex);
        reason_ = listener_.end_reason();
        if (reason_)
            return std::nullopt;
        return awaited_change{record_.get(), record_->version};
    }

    [[nodiscard]] lost_reason result() const { return *reason_; }

private:
    lease_listener listener_{*core_, record_};
    std::optional<lost_reason> reason_;
};

/// Waits for the end of the first of several leases.
class first_lost_operation
{
public:
    using result_type = lost_lock;
    static constexpr on_close closing = on_close::keep_waiting;
    static constexpr bool checks_cancellation = true;

    first_lost_operation(std::shared_ptr<core> self, std::vector<lock_record::ptr> records) : core_(std::move(self))
    {
        for (auto& each : records)
            listeners_.emplace_back(*core_, std::move(each), &first_end_);
    }
    first_lost_operation(const first_lost_operation&) = delete;
    first_lost_operation& operator=(const first_lost_operation&) = delete;

    [[nodiscard]] core& owner_core() const noexcept { return *core_; }
    [[nodiscard]] static bool begin() noexcept { return false; }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        const std::lock_guard guard(core_->mutex);
        for (const auto& each : listeners_) {
            if (const auto reason = each.end_reason()) {
                lost_record_ = &each.held();
                reason_ = *reason;
                return std::nullopt;
            }
        }
        return awaited_change{&first_end_, first_end_.version};
    }

    [[nodiscard]] lost_lock result() const { return {.key = lost_record_->key(), .reason = reason_}; }

private:
    const std::shared_ptr<core> core_;
    condition first_end_;
    std::deque<lease_listener> listeners_;
    const lock_record* lost_record_ = nullptr;
    lost_reason reason_ = lost_reason::released;
};

} // namespace

asio::awaitable<bool> is_valid(std::shared_ptr<core> self, lock_record::ptr record)
{
    return await_operation<is_valid_operation>(std::move(self), std::move(record));
}

void start_is_valid(operation_handler<bool> handler, std::shared_ptr<core> self, lock_record::ptr record)
{
    start_operation<is_valid_operation>(std::move(handler), std::move(self), std::move(record));
}

asio::awaitable<lost_reason> lost(std::shared_ptr<core> self, lock_record::ptr record)
{
    return await_operation<lost_operation>(std::move(self), std::move(record));
}

void start_lost(operation_handler<lost_reason> handler, std::shared_ptr<core> self, lock_record::ptr record)
{
    start_operation<lost_operation>(std::move(handler), std::move(self), std::move(record));
}

asio::awaitable<lost_lock> first_lost(std::shared_ptr<core> self, std::vector<lock_record::ptr> records)
{
    return await_operation<first_lost_operation>(std::move(self), std::move(records));
}

void start_first_lost(
    operation_handler<lost_lock> handler, std::shared_ptr<core> self, std::vector<lock_record::ptr> records)
{
    start_operation<first_lost_operation>(std::move(handler), std::move(self), std::move(records));
}

} // namespace colock::inline v0::detail::operations
