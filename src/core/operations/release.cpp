// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/held_operation.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/run_operation.hpp"
#include "core/state/begin_release.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace colock::inline v0::detail::operations {

namespace {

/// Leaves an unfinished release to `pending_releases` when the operation ends, for whatever reason.
class background_release_guard
{
public:
    background_release_guard(core& self, lock_record& record) : self_(self), record_(record) {}
    background_release_guard(const background_release_guard&) = delete;
    background_release_guard& operator=(const background_release_guard&) = delete;
    ~background_release_guard() { release_in_background(self_, record_); }

private:
    core& self_;
    lock_record& record_;
};

/// Begins a release. A second release, or a release of a lock that was lost or detached meanwhile, does not wait.
begin_release_result begin_release_if_held(core& self, lock_record& record, std::uint32_t& seen)
{
    const auto start =
        record.current_phase() == phase::held ? begin_release(self, record, &seen) : begin_release_result();
    return start.was_held ? start : begin_release_result();
}

/// \param was_held whether the lock was held until this release began
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

    release_operation(std::shared_ptr<core> owner, lock_record::ptr record, on_failure report)
        : held_operation(std::move(owner), std::move(record)), report_(report)
    {
        // A quiet release throws no error that would contain this time.
        if (report == on_failure::raise)
            began_at_ = lease_clock::now();
    }

    [[nodiscard]] bool begin()
    {
        started_ = begin_release_if_held(*core_, *record_, seen_);
        if (record_->current_phase() != phase::ending)
            return true;
        release_guard_.emplace(*core_, *record_);
        return !started_.waits;
    }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        // `begin` has read the version for the first wait.
        if (!std::exchange(started_.waits, false) && !must_await_answer(*core_, *record_, seen_))
            return std::nullopt;
        return awaited_change{record_.get(), seen_};
    }

    void result()
    {
        release_guard_.reset();
        if (report_ == on_failure::raise)
            throw_if_release_failed(*core_, *record_, began_at_, started_.was_held);
    }

private:
    const on_failure report_;
    lease_clock::time_point began_at_;
    begin_release_result started_;
    std::uint32_t seen_ = 0;
    std::optional<background_release_guard> release_guard_;
};

} // namespace

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
    std::vector<begin_release_result> starts(records.size());
    std::vector<std::uint32_t> seen(records.size());
    std::vector<error_code> failures(records.size());
    for (std::size_t i = 0; i < records.size(); ++i)
        starts[i] = begin_release_if_held(*self, *records[i], seen[i]);
    for (std::size_t i = 0; i < records.size(); ++i) {
        for (bool waits = starts[i].waits; waits; waits = must_await_answer(*self, *records[i], seen[i]))
            co_await self->async_wait(*records[i], seen[i]);
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
        try {
            throw_if_release_failed(*self, *records[i], began, starts[i].was_held);
        } catch (const release_error& failed) {
            failures[i] = failed.code();
        }
    }
    co_return failures;
}

} // namespace colock::inline v0::detail::operations
