// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/held_operation.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/run_operation.hpp"
#include "core/policy/validation.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace colock::inline v0::detail::operations {

void check_extend(const core& self, const lock_record& record, std::chrono::milliseconds ttl)
{
    using namespace std::chrono_literals;
    error_context context{.key = record.key(), .backend = self.backend_name()};
    if (record.ttl() == 0ms) {
        context.detail = "the lock has no ttl, there is nothing to extend; acquire it with one";
        throw validation_error(errc::invalid_ttl, std::move(context));
    }
    check_new_ttl(self, ttl, std::move(context));
}

void check_new_ttl(const core& self, std::chrono::milliseconds ttl, error_context context)
{
    if (ttl == ttl.zero()) {
        context.detail = "the ttl is 0 ms; the ttl of a lock cannot be removed, give a positive one";
        throw validation_error(errc::invalid_ttl, std::move(context));
    }
    if (const auto refused = check_ttl(ttl, self.limits, self.can, self.backend->max_clock_lead(ttl))) {
        context.detail = refused->detail;
        throw validation_error(refused->code, std::move(context));
    }
}

namespace {

/// Sends the extension. Returns false, without an effect, if an operation in flight has to end first; `seen` is then
/// the version to wait for.
/// \param began when the call began
bool begin_extend(core& self, const lock_record::ptr& record, std::chrono::milliseconds ttl,
    lease_clock::time_point began, const std::shared_ptr<std::optional<extend_outcome>>& result, std::uint32_t& seen)
{
    const auto throw_not_held = [&](lost_reason reason) {
        auto context = context_of_held(self, *record, began, 0);
        context.detail = lease_end_text(reason);
        throw extend_error(errc::not_held, std::move(context));
    };
    deferred_actions actions;
    {
        std::unique_lock guard(self.mutex);
        if (self.is_backend_gone()) {
            guard.unlock();
            throw extend_error(errc::shutting_down, context_of_held(self, *record, began, 0));
        }
        if (record->current_phase() != phase::held) {
            const auto reason = record->end_reason.value_or(lost_reason::released);
            guard.unlock();
            throw_not_held(reason);
        }
        const auto now = lease_clock::now();
        if (record->lease().has_ended(now)) {
            guard.unlock();
            const auto reason = lease_table::end_reason_of(*record, now);
            self.declare_lost(record, reason);
            throw_not_held(reason);
        }
        seen = record->version;
        if (record->in_flight != operation::none)
            return false;
        actions.add_request(deferred_actions::action::extend, *record);
        record->set_operation_start(now);
        self.leases.apply_requested_ttl(*record, ttl, actions);
        record->in_flight = operation::extend;
        record->lease_state().extension.ttl = ttl;
        record->lease_state().extension.result = result;
        self.leases.reschedule(*record);
    }
    actions.run(self);
    return true;
}

void throw_if_not_extended(
    core& self, const lock_record& record, lease_clock::time_point began, const std::optional<extend_outcome>& result)
{
    auto context = context_of_held(self, record, began, 1);
    error_code code;
    failure_ptr failure;
    {
        const std::lock_guard guard(self.mutex);
        if (result && result->status == extend_status::extended && record.current_phase() == phase::held)
            return;
        if (result && result->status == extend_status::failed) {
            failure = result->error;
        } else if (result) {
            code = errc::not_held;
            if (record.end_reason)
                context.detail = lease_end_text(*record.end_reason);
        }
    }
    if (!code) {
        failure = failure ? failure : unanswered(self);
        code = failure->code;
        context.cause = failure->cause;
        context.detail = failure->detail;
    }
    throw extend_error(code, std::move(context));
}

class extend_operation : public held_operation
{
public:
    using result_type = void;
    static constexpr bool checks_cancellation = false;

    extend_operation(std::shared_ptr<core> self, lock_record::ptr record, std::chrono::milliseconds ttl)
        : held_operation(std::move(self), std::move(record)), ttl_(ttl)
    {
    }

    [[nodiscard]] bool begin()
    {
        check_extend(*core_, *record_, ttl_);
        return false;
    }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        std::uint32_t seen = 0;
        if (!until_) {
            // A renewal or another extend may be in flight.
            if (!begin_extend(*core_, record_, ttl_, began_, result_, seen))
                return awaited_change{record_.get(), seen};
            until_ = core_->answer_deadline(lease_clock::now());
        }
        if (!must_await_result(*core_, *record_, *result_, *until_, seen))
            return std::nullopt;
        return awaited_change{record_.get(), seen};
    }

    void result() { throw_if_not_extended(*core_, *record_, began_, *result_); }

private:
    const std::chrono::milliseconds ttl_;
    const lease_clock::time_point began_ = lease_clock::now();
    const std::shared_ptr<std::optional<extend_outcome>> result_ = std::make_shared<std::optional<extend_outcome>>();
    /// When the operation stops waiting for the answer; set once the extend has been sent.
    std::optional<lease_clock::time_point> until_;
};

} // namespace

asio::awaitable<void> extend(std::shared_ptr<core> self, lock_record::ptr record, std::chrono::milliseconds ttl)
{
    return await_operation<extend_operation>(std::move(self), std::move(record), ttl);
}

void start_extend(
    operation_handler<void> handler, std::shared_ptr<core> self, lock_record::ptr record, std::chrono::milliseconds ttl)
{
    start_operation<extend_operation>(std::move(handler), std::move(self), std::move(record), ttl);
}

asio::awaitable<std::vector<error_code>> extend_each(
    std::shared_ptr<core> self, std::vector<lock_record::ptr> records, std::chrono::milliseconds ttl)
{
    const auto began = lease_clock::now();
    std::vector<error_code> failures(records.size());
    struct extend_request
    {
        std::shared_ptr<std::optional<extend_outcome>> result = std::make_shared<std::optional<extend_outcome>>();
        std::uint32_t seen = 0;
        bool is_started = false;
    };
    std::vector<extend_request> requests(records.size());
    const auto begin = [&](std::size_t i) {
        try {
            requests[i].is_started = begin_extend(*self, records[i], ttl, began, requests[i].result, requests[i].seen);
        } catch (const extend_error& failed) {
            failures[i] = failed.code();
        }
    };
    // Locks that have ended come last: their loss is reported inside the call, and a slow observer must not delay the
    // extension of the others.
    std::vector<std::size_t> expired;
    for (std::size_t i = 0; i < records.size(); ++i) {
        if (records[i]->lease().has_ended(began))
            expired.push_back(i);
        else
            begin(i);
    }
    std::ranges::for_each(expired, begin);
    const auto until = self->answer_deadline(lease_clock::now());
    for (std::size_t i = 0; i < records.size(); ++i) {
        auto deadline = until;
        for (; !requests[i].is_started && !failures[i]; begin(i)) {
            co_await self->async_wait(*records[i], requests[i].seen);
            deadline = self->answer_deadline(lease_clock::now());
        }
        if (failures[i])
            continue;
        while (must_await_result(*self, *records[i], *requests[i].result, deadline, requests[i].seen))
            co_await self->async_wait(*records[i], requests[i].seen);
        try {
            throw_if_not_extended(*self, *records[i], began, *requests[i].result);
        } catch (const extend_error& failed) {
            failures[i] = failed.code();
        }
    }
    co_return failures;
}

} // namespace colock::inline v0::detail::operations
