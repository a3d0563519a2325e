// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/held_operation.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/run_operation.hpp"
#include "core/state/background_release.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace colock::inline v0::detail::operations {

namespace {

/// Continues the release in the background if the operation is destroyed before the answer.
class background_release_guard
{
public:
    background_release_guard(core& self, record& ending) : self_(self), ending_(ending) {}
    background_release_guard(const background_release_guard&) = delete;
    background_release_guard& operator=(const background_release_guard&) = delete;
    ~background_release_guard() { release_in_background(self_, ending_); }

private:
    core& self_;
    record& ending_;
};

/// Begins a release. A second release, or a release of a lock that was lost or detached meanwhile, does not wait.
release_start begin_release_if_held(core& self, record& held, std::uint32_t& seen)
{
    const auto begun = held.current_phase() == phase::held ? begin_release(self, held, &seen) : release_start();
    return begun.was_held ? begun : release_start();
}

/// \param was_held whether the lock was held until this release began
void throw_if_release_failed(core& self, record& ended, lease_clock::time_point began, bool was_held)
{
    error_code code;
    failure_ptr why;
    bool is_unanswered = false;
    auto context = context_of_held(self, ended, began, was_held ? 1 : 0);
    {
        const std::lock_guard guard(self.mutex);
        const bool lost = ended.end_reason && *ended.end_reason != lost_reason::released;
        if (!was_held) {
            // A second release, or a release of a lock whose loss was reported already.
            if (!lost || ended.lease_state().loss_reported)
                return;
            ended.lease_state().loss_reported = true;
            code = errc::not_held;
            context.detail = lease_end_text(*ended.end_reason);
        } else if (!ended.release_state().answered) {
            is_unanswered = true;
        } else if (ended.release_state().status == release_status::failed) {
            why = ended.release_state().error;
        } else if (ended.release_state().status == release_status::not_held) {
            code = errc::not_held;
            context.detail = "the backend did not store this handle as the holder any more";
        }
    }
    if (is_unanswered)
        why = unanswered(self);
    if (why) {
        code = why->code;
        context.cause = why->cause;
        context.detail = why->detail;
    }
    if (code)
        throw release_error(code, std::move(context));
}

class release_operation : public held_operation
{
public:
    using result_type = void;
    static constexpr bool checks_cancellation = false;

    release_operation(std::shared_ptr<core> owner, record::ptr held, on_failure report)
        : held_operation(std::move(owner), std::move(held)), report_(report)
    {
        // A quiet release throws no error that would contain this time.
        if (report == on_failure::raise)
            began_ = lease_clock::now();
    }

    [[nodiscard]] bool begin()
    {
        begun_ = begin_release_if_held(*core_, *held_, seen_);
        if (held_->current_phase() != phase::ending)
            return true;
        release_guard_.emplace(*core_, *held_);
        return !begun_.waits;
    }

    [[nodiscard]] std::optional<awaited_change> advance()
    {
        if (!std::exchange(begun_.waits, false) && !must_await_answer(*core_, *held_, seen_))
            return std::nullopt;
        return awaited_change{held_.get(), seen_};
    }

    void result()
    {
        release_guard_.reset();
        if (report_ == on_failure::raise)
            throw_if_release_failed(*core_, *held_, began_, begun_.was_held);
    }

private:
    const on_failure report_;
    lease_clock::time_point began_;
    release_start begun_;
    std::uint32_t seen_ = 0;
    std::optional<background_release_guard> release_guard_;
};

} // namespace

asio::awaitable<void> release(std::shared_ptr<core> self, record::ptr held, on_failure report)
{
    return await_operation<release_operation>(std::move(self), std::move(held), report);
}

void start_release(operation_handler<void> handler, std::shared_ptr<core> self, record::ptr held, on_failure report)
{
    start_operation<release_operation>(std::move(handler), std::move(self), std::move(held), report);
}

asio::awaitable<std::vector<error_code>> release_each(std::shared_ptr<core> self, std::vector<record::ptr> ending)
{
    const auto began = lease_clock::now();
    std::vector<release_start> begun(ending.size());
    std::vector<std::uint32_t> seen(ending.size());
    std::vector<error_code> failures(ending.size());
    for (std::size_t i = 0; i < ending.size(); ++i)
        begun[i] = begin_release_if_held(*self, *ending[i], seen[i]);
    for (std::size_t i = 0; i < ending.size(); ++i) {
        for (bool waits = begun[i].waits; waits; waits = must_await_answer(*self, *ending[i], seen[i]))
            co_await self->async_wait(*ending[i], seen[i]);
    }
    for (std::size_t i = 0; i < ending.size(); ++i) {
        try {
            throw_if_release_failed(*self, *ending[i], began, begun[i].was_held);
        } catch (const release_error& failed) {
            failures[i] = failed.code();
        }
    }
    co_return failures;
}

} // namespace colock::inline v0::detail::operations
