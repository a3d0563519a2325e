// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/held_operation.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/run_operation.hpp"
#include "core/state/abandon.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace colock::inline v0::detail::operations {

namespace {

/// Returns whether the answer to the release has to be awaited, and stores in `seen` the version at which there was no
/// answer. The mutex must be held.
bool watch_for_answer(core& self, lock_record& record, std::uint32_t& seen)
{
    if (record.current_phase() == phase::ended || record.release_state().answered)
        return false;
    seen = record.version;
    const bool is_first_check = record.release_state().wait_deadline == lease_clock::time_point::max();
    const bool is_first_attempt = record.in_flight == operation::release &&
                                  record.release_state().retries.next_at() == lease_clock::time_point::max();
    // The adapter ends the request in time, so no timer is needed.
    if (is_first_check && is_first_attempt && self.adapter_ends_in_time())
        return true;
    const auto now = lease_clock::now();
    if (is_first_check)
        record.release_state().wait_deadline = saturating_add(now, self.options.operation_timeout);
    if (now >= record.release_state().wait_deadline)
        return false;
    record.lease_state().earliest_wait_deadline =
        std::min(record.lease_state().earliest_wait_deadline, record.release_state().wait_deadline);
    self.timers.schedule(record, record.release_due());
    return true;
}

struct begun_release
{
    /// The lock was held until this release began.
    bool was_held = false;
    /// The answer has to be awaited.
    bool waits = false;
};

/// Begins a release. A second release, or a release of a lock that was lost or detached meanwhile, does not wait.
/// \param seen is set to the version to pass to `async_wait` if the answer has to be awaited
begun_release begin_release(core& self, lock_record& record, std::uint32_t& seen)
{
    begun_release result;
    if (record.current_phase() != phase::held)
        return result;
    self.update([&](deferred_actions& actions) {
        result.was_held = self.end_and_release(record, lost_reason::released, actions);
        result.waits = result.was_held && !self.can.immediate && watch_for_answer(self, record, seen);
    });
    if (result.was_held && self.can.immediate)
        result.waits = must_await_release(self, record, seen);
    return result;
}

/// \param was_held see `begun_release`
void throw_if_release_failed(core& self, lock_record& record, lease_clock::time_point began, bool was_held)
{
    error_code code;
    failure_ptr failure;
    bool is_unanswered = false;
    const unsigned requests_sent = was_held ? 1 : 0;
    auto context = context_of_held(self, record, began, requests_sent);
    {
        const std::lock_guard guard(self.mutex);
        const bool lost = record.end_reason && *record.end_reason != lost_reason::released;
        if (!was_held) {
            // A second release, or a release of a lock whose loss was reported already.
            if (!lost || record.lease_state().loss_thrown)
                return;
            record.lease_state().loss_thrown = true;
            code = errc::not_held;
            context.detail = lease_end_text(*record.end_reason);
        } else if (!record.release_state().answered) {
            is_unanswered = true;
        } else if (record.release_state().status == release_status::failed) {
            failure = record.release_state().error;
        } else if (record.release_state().status == release_status::not_held) {
            code = errc::not_held;
            context.detail = "the backend did not store this handle as the holder any more";
        }
    }
    if (is_unanswered)
        failure = unanswered(self);
    if (failure) {
        code = failure->code;
        context.cause = failure->cause;
        context.detail = failure->detail;
    }
    if (code)
        throw release_error(code, std::move(context));
}

class release_operation : public held_operation
{
public:
    using result_type = void;
    static constexpr bool checks_cancellation = false;

    release_operation(std::shared_ptr<core> self, lock_record::ptr record, on_failure report)
        : held_operation(std::move(self), std::move(record)), report_(report)
    {
        // A quiet release throws no error that would contain this time.
        if (report == on_failure::raise)
            began_at_ = lease_clock::now();
    }
    release_operation(const release_operation&) = delete;
    release_operation& operator=(const release_operation&) = delete;
    /// Keeps the core alive until an unfinished release has ended.
    ~release_operation()
    {
        if (record_->current_phase() == phase::ending)
            release_in_background(*core_, *record_);
    }

    [[nodiscard]] bool begin()
    {
        begun_ = begin_release(*core_, *record_, seen_);
        return !begun_.waits || record_->current_phase() == phase::ended;
    }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        // The first wait uses the version that `begin` has read.
        if (!std::exchange(begun_.waits, false) && !must_await_release(*core_, *record_, seen_))
            return std::nullopt;
        return awaited_change{record_.get(), seen_};
    }

    void result()
    {
        if (report_ == on_failure::raise)
            throw_if_release_failed(*core_, *record_, began_at_, begun_.was_held);
    }

private:
    const on_failure report_;
    lease_clock::time_point began_at_;
    begun_release begun_;
    std::uint32_t seen_ = 0;
};

} // namespace

bool must_await_release(core& self, lock_record& record, std::uint32_t& seen)
{
    if (record.current_phase() == phase::ended)
        return false;
    const std::lock_guard guard(self.mutex);
    return watch_for_answer(self, record, seen);
}

asio::awaitable<void> release(std::shared_ptr<core> self, lock_record::ptr record, on_failure report)
{
    return await_operation<release_operation>(std::move(self), std::move(record), report);
}

void start_release(
    operation_handler<void> handler, std::shared_ptr<core> self, lock_record::ptr record, on_failure report)
{
    start_operation<release_operation>(std::move(handler), std::move(self), std::move(record), report);
}

asio::awaitable<std::vector<error_code>> release_each(std::shared_ptr<core> self, std::vector<lock_record::ptr> records)
{
    const auto began = lease_clock::now();
    std::vector<begun_release> begun(records.size());
    std::vector<std::uint32_t> seen(records.size());
    std::vector<error_code> failures(records.size());
    for (std::size_t i = 0; i < records.size(); ++i)
        begun[i] = begin_release(*self, *records[i], seen[i]);
    for (std::size_t i = 0; i < records.size(); ++i) {
        for (bool waits = begun[i].waits; waits; waits = must_await_release(*self, *records[i], seen[i]))
            co_await self->async_wait(*records[i], seen[i]);
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
        try {
            throw_if_release_failed(*self, *records[i], began, begun[i].was_held);
        } catch (const release_error& failed) {
            failures[i] = failed.code();
        }
    }
    co_return failures;
}

} // namespace colock::inline v0::detail::operations
