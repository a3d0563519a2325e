// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/operations.hpp"
#include "core/operations/run_operation.hpp"
#include "core/policy/validation.hpp"
#include "core/state/background_release.hpp"
#include "core/state/core.hpp"
#include "core/state/failures.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace colock::detail::operations {

namespace {

/// A release whose caller leaves early goes on without it.
class leaves_rest_to_core
{
public:
    leaves_rest_to_core(core& self, record& ending) : self_(self), ending_(ending) {}
    leaves_rest_to_core(const leaves_rest_to_core&) = delete;
    leaves_rest_to_core& operator=(const leaves_rest_to_core&) = delete;
    ~leaves_rest_to_core() { release_in_background(self_, ending_); }

private:
    core& self_;
    record& ending_;
};

/// Nothing is awaited by a second release, nor by one that finds the lock lost or detached meanwhile.
release_start begin_release_if_held(core& self, record& held, std::uint32_t& seen)
{
    const auto begun = held.where() == phase::held ? begin_release(self, held, &seen) : release_start();
    return begun.was_held ? begun : release_start();
}

/// \param was_held until this release began
void raise_failed_release(core& self, record& ended, bool was_held)
{
    error_code code;
    failure_ptr why;
    bool silent = false;
    auto context = context_of(self, ended);
    {
        const std::lock_guard guard(self.mutex);
        const bool lost = ended.end_reason && *ended.end_reason != lost_reason::released;
        if (!was_held) {
            // A second release, or one of a lock whose loss was reported already.
            if (!lost || std::exchange(ended.loss_reported, true))
                return;
            code = errc::not_held;
            context.detail = std::string("the lease had ended: ") + to_string(*ended.end_reason);
        } else if (!ended.back().answered) {
            silent = true;
        } else if (ended.back().status == release_status::failed) {
            why = ended.back().error;
        } else if (ended.back().status == release_status::not_held) {
            code = errc::not_held;
            context.detail = "the backend no longer knew it as ours";
        }
    }
    if (silent)
        why = unanswered(self, ended);
    if (why) {
        code = why->code;
        context.cause = why->cause;
        context.detail = why->detail;
    }
    if (code)
        throw release_error(code, std::move(context));
}

/// The common part of the operations on a lock that was granted.
class lock_operation
{
public:
    static constexpr bool ends_when_closed = false;

    lock_operation(const lock_operation&) = delete;
    lock_operation& operator=(const lock_operation&) = delete;

    [[nodiscard]] core& owner() const noexcept { return *core_; }

protected:
    lock_operation(std::shared_ptr<core>&& owner, record::ptr&& held) : core_(std::move(owner)), held_(std::move(held))
    {
    }
    ~lock_operation() = default;

    const std::shared_ptr<core> core_;
    const record::ptr held_;
};

class release_operation : public lock_operation
{
public:
    using result_type = void;
    static constexpr bool checks_cancellation = false;

    release_operation(std::shared_ptr<core> owner, record::ptr held, on_failure report)
        : lock_operation(std::move(owner), std::move(held)), report_(report)
    {
    }

    [[nodiscard]] bool begin()
    {
        is_quick_ = report_ == on_failure::quiet && release_at_once(*core_, held_);
        if (is_quick_)
            return true;
        begun_ = begin_release_if_held(*core_, *held_, seen_);
        if (held_->where() != phase::ending)
            return true;
        rest_.emplace(*core_, *held_);
        return !begun_.waits;
    }

    [[nodiscard]] std::optional<wait_for> advance()
    {
        if (!std::exchange(begun_.waits, false) && !must_await_answer(*core_, *held_, seen_))
            return std::nullopt;
        return wait_for{held_.get(), seen_};
    }

    void result()
    {
        rest_.reset();
        if (!is_quick_ && report_ == on_failure::raise)
            raise_failed_release(*core_, *held_, begun_.was_held);
    }

private:
    const on_failure report_;
    bool is_quick_ = false;
    release_start begun_;
    std::uint32_t seen_ = 0;
    std::optional<leaves_rest_to_core> rest_;
};

} // namespace

asio::awaitable<void> release(std::shared_ptr<core> self, record::ptr held, on_failure report)
{
    return await_operation<release_operation>(std::move(self), std::move(held), report);
}

void start_release(const asio::any_io_executor& executor, verb_handler<void> handler,
    const asio::any_io_executor& caller, std::shared_ptr<core> self, record::ptr held, on_failure report)
{
    start_operation<release_operation>(executor, std::move(handler), caller, std::move(self), std::move(held), report);
}

asio::awaitable<std::vector<error_code>> release_each(std::shared_ptr<core> self, std::vector<record::ptr> ending)
{
    std::vector<release_start> begun(ending.size());
    std::vector<std::uint32_t> seen(ending.size());
    std::vector<error_code> failures(ending.size());
    for (std::size_t i = 0; i < ending.size(); ++i)
        begun[i] = begin_release_if_held(*self, *ending[i], seen[i]);
    wait_state place;
    for (std::size_t i = 0; i < ending.size(); ++i) {
        for (bool waits = begun[i].waits; waits; waits = must_await_answer(*self, *ending[i], seen[i]))
            co_await self->async_wait(*ending[i], place, seen[i]);
    }
    for (std::size_t i = 0; i < ending.size(); ++i) {
        try {
            raise_failed_release(*self, *ending[i], begun[i].was_held);
        } catch (const release_error& failed) {
            failures[i] = failed.code();
        }
    }
    co_return failures;
}

void check_extend(const core& self, const record& held, std::chrono::milliseconds ttl)
{
    using namespace std::chrono_literals;
    auto context = context_of(self, held);
    if (held.ttl() == 0ms) {
        context.detail = "the lock has no ttl, there is nothing to extend; acquire it with one";
        throw validation_error(errc::invalid_ttl, std::move(context));
    }
    check_new_ttl(self, ttl, std::move(context));
}

void check_new_ttl(const core& self, std::chrono::milliseconds ttl, error_context context)
{
    if (ttl == ttl.zero()) {
        context.detail = "the ttl is 0 ms; a lock with a ttl cannot be made one without, give a positive one";
        throw validation_error(errc::invalid_ttl, std::move(context));
    }
    if (const auto refused = check_ttl(ttl, self.limits, self.can, self.backend->max_clock_lead(ttl))) {
        context.detail = refused->detail;
        throw validation_error(refused->code, std::move(context));
    }
}

namespace {

bool begin_extend(core& self, const record::ptr& held, std::chrono::milliseconds ttl,
    const std::shared_ptr<std::optional<extend_outcome>>& result, std::uint32_t& seen)
{
    record& subject = *held;
    const auto not_held = [&](lost_reason reason) {
        auto context = context_of(self, subject);
        context.detail = std::string("its lease had ended: ") + to_string(reason);
        throw extend_error(errc::not_held, std::move(context));
    };
    deferred_actions actions;
    {
        std::unique_lock guard(self.mutex);
        if (self.is_backend_gone()) {
            guard.unlock();
            throw extend_error(errc::shutting_down, context_of(self, subject));
        }
        if (subject.where() != phase::held) {
            const auto reason = subject.end_reason.value_or(lost_reason::released);
            guard.unlock();
            not_held(reason);
        }
        const auto now = lease_clock::now();
        if (subject.lease().has_ended(now)) {
            guard.unlock();
            const auto reason = lease_table::end_of(subject, now);
            self.declare_lost(held, reason);
            not_held(reason);
        }
        seen = subject.version;
        if (subject.under_way != operation::none)
            return false;
        actions.ask(deferred_actions::action::renew, subject);
        subject.set_sent(now);
        self.leases.expect(subject, ttl, actions);
        subject.under_way = operation::extend;
        subject.extension().ttl = ttl;
        subject.extension().result = result;
        self.leases.reschedule(subject);
    }
    actions.run(self);
    return true;
}

template <class Outcome>
bool await_result(
    core& self, record& held, const std::optional<Outcome>& result, lease_clock::time_point until, std::uint32_t& seen)
{
    const std::lock_guard guard(self.mutex);
    if (result || held.where() == phase::ended || self.is_backend_gone() || lease_clock::now() >= until)
        return false;
    held.answer_by = std::min(held.answer_by, until);
    if (held.where() == phase::held)
        self.leases.reschedule(held);
    else
        self.timers.schedule(held, std::min(held.back().retry_at, held.answer_by));
    seen = held.version;
    return true;
}

void report_extended(core& self, const record& held, const std::optional<extend_outcome>& result)
{
    auto context = context_of(self, held);
    error_code code;
    failure_ptr why;
    {
        const std::lock_guard guard(self.mutex);
        if (result && result->status == extend_status::extended && held.where() == phase::held)
            return;
        if (result && result->status == extend_status::failed) {
            why = result->error;
        } else if (result) {
            code = errc::not_held;
            if (held.end_reason)
                context.detail = std::string("its lease had ended: ") + to_string(*held.end_reason);
        }
    }
    if (!code) {
        why = why ? why : unanswered(self, held);
        code = why->code;
        context.cause = why->cause;
        context.detail = why->detail;
    }
    throw extend_error(code, std::move(context));
}

class extend_operation : public lock_operation
{
public:
    using result_type = void;
    static constexpr bool checks_cancellation = false;

    extend_operation(std::shared_ptr<core> owner, record::ptr held, std::chrono::milliseconds ttl)
        : lock_operation(std::move(owner), std::move(held)), ttl_(ttl)
    {
    }

    [[nodiscard]] bool begin()
    {
        check_extend(*core_, *held_, ttl_);
        return false;
    }

    [[nodiscard]] std::optional<wait_for> advance()
    {
        std::uint32_t seen = 0;
        if (!until_) {
            // A renewal may be under way, or another extend.
            if (!begin_extend(*core_, held_, ttl_, result_, seen))
                return wait_for{held_.get(), seen};
            until_ = core_->answer_deadline(lease_clock::now());
        }
        if (!await_result(*core_, *held_, *result_, *until_, seen))
            return std::nullopt;
        return wait_for{held_.get(), seen};
    }

    void result() { report_extended(*core_, *held_, *result_); }

private:
    const std::chrono::milliseconds ttl_;
    const std::shared_ptr<std::optional<extend_outcome>> result_ = std::make_shared<std::optional<extend_outcome>>();
    /// Once it has begun: when it gives up on the answer.
    std::optional<lease_clock::time_point> until_;
};

} // namespace

asio::awaitable<void> extend(std::shared_ptr<core> self, record::ptr held, std::chrono::milliseconds ttl)
{
    return await_operation<extend_operation>(std::move(self), std::move(held), ttl);
}

void start_extend(const asio::any_io_executor& executor, verb_handler<void> handler,
    const asio::any_io_executor& caller, std::shared_ptr<core> self, record::ptr held, std::chrono::milliseconds ttl)
{
    start_operation<extend_operation>(executor, std::move(handler), caller, std::move(self), std::move(held), ttl);
}

asio::awaitable<std::vector<error_code>> extend_each(
    std::shared_ptr<core> self, std::vector<record::ptr> held, std::chrono::milliseconds ttl)
{
    std::vector<error_code> failures(held.size());
    struct asked
    {
        std::shared_ptr<std::optional<extend_outcome>> result = std::make_shared<std::optional<extend_outcome>>();
        std::uint32_t seen = 0;
        bool begun = false;
    };
    std::vector<asked> all(held.size());
    const auto begin = [&](std::size_t i) {
        try {
            all[i].begun = begin_extend(*self, held[i], ttl, all[i].result, all[i].seen);
        } catch (const extend_error& failed) {
            failures[i] = failed.code();
        }
    };
    for (std::size_t i = 0; i < held.size(); ++i)
        begin(i);
    const auto until = self->answer_deadline(lease_clock::now());
    wait_state place;
    for (std::size_t i = 0; i < held.size(); ++i) {
        auto deadline = until;
        for (; !all[i].begun && !failures[i]; begin(i)) {
            co_await self->async_wait(*held[i], place, all[i].seen);
            deadline = self->answer_deadline(lease_clock::now());
        }
        if (failures[i])
            continue;
        while (await_result(*self, *held[i], *all[i].result, deadline, all[i].seen))
            co_await self->async_wait(*held[i], place, all[i].seen);
        try {
            report_extended(*self, *held[i], *all[i].result);
        } catch (const extend_error& failed) {
            failures[i] = failed.code();
        }
    }
    co_return failures;
}

namespace {

enum class query_start : unsigned char
{
    started,
    no_context,
    busy,
    ended,
};

query_start begin_is_valid(core& self, const record::ptr& held,
    const std::shared_ptr<std::optional<valid_outcome>>& result, std::uint32_t& seen)
{
    {
        const std::lock_guard guard(self.mutex);
        if (self.is_backend_gone())
            return query_start::no_context;
        if (held->where() != phase::held)
            return query_start::ended;
        seen = held->version;
        if (held->under_way != operation::none)
            return query_start::busy;
        held->under_way = operation::query;
        held->set_sent(lease_clock::now());
    }
    const auto answered = [held, result](valid_outcome outcome) {
        if (const pinned_core alive{*held})
            alive->on_checked(*held, std::move(outcome), result.get());
    };
    self.start_request(
        *held, [&](adapter& backend) { backend.start_is_valid(held, answered); },
        [&](const failure_ptr& why) { answered({.error = why}); });
    return query_start::started;
}

class is_valid_operation : public lock_operation
{
public:
    using result_type = bool;
    static constexpr bool checks_cancellation = false;

    is_valid_operation(std::shared_ptr<core> owner, record::ptr held)
        : lock_operation(std::move(owner), std::move(held))
    {
    }

    [[nodiscard]] static bool begin() noexcept { return false; }

    [[nodiscard]] std::optional<wait_for> advance()
    {
        std::uint32_t seen = 0;
        if (!until_) {
            switch (begin_is_valid(*core_, held_, result_, seen)) {
            case query_start::no_context:
                throw error(errc::shutting_down, context_of(*core_, *held_));
            case query_start::ended:
                return std::nullopt;
            case query_start::busy:
                return wait_for{held_.get(), seen};
            case query_start::started:
                until_ = core_->answer_deadline(lease_clock::now());
                break;
            }
        }
        if (!await_result(*core_, *held_, *result_, *until_, seen))
            return std::nullopt;
        return wait_for{held_.get(), seen};
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
            still_held = held_->where() == phase::held;
        }
        if (!answer || answer->error)
            throw_unanswered(*core_, answer ? answer->error : nullptr, effect::none, context_of(*core_, *held_));
        return still_held && answer->valid;
    }

private:
    const std::shared_ptr<std::optional<valid_outcome>> result_ = std::make_shared<std::optional<valid_outcome>>();
    /// Once the backend was asked: when it gives up on the answer.
    std::optional<lease_clock::time_point> until_;
};

/// Waits for the end of the lease.
class lost_operation : public lock_operation
{
public:
    using result_type = lost_reason;
    static constexpr bool checks_cancellation = true;

    lost_operation(std::shared_ptr<core> owner, record::ptr held) : lock_operation(std::move(owner), std::move(held))
    {
        const std::lock_guard guard(core_->mutex);
        held_->plan.listener_enters();
        reschedule();
    }
    ~lost_operation()
    {
        const std::lock_guard guard(core_->mutex);
        held_->plan.listener_leaves();
        reschedule();
    }

    [[nodiscard]] static bool begin() noexcept { return false; }

    [[nodiscard]] std::optional<wait_for> advance()
    {
        const std::lock_guard guard(core_->mutex);
        reason_ = held_->end_reason;
        // Without its context there is no timer that could tell.
        if (!reason_ && core_->dead)
            reason_ = lost_reason::shutting_down;
        if (reason_)
            return std::nullopt;
        return wait_for{held_.get(), held_->version};
    }

    [[nodiscard]] lost_reason result() const { return *reason_; }

private:
    /// A timer watches a lease whose end somebody waits for.
    void reschedule()
    {
        if (held_->where() == phase::held)
            core_->leases.reschedule(*held_);
    }

    std::optional<lost_reason> reason_;
};

} // namespace

asio::awaitable<bool> is_valid(std::shared_ptr<core> self, record::ptr held)
{
    return await_operation<is_valid_operation>(std::move(self), std::move(held));
}

void start_is_valid(const asio::any_io_executor& executor, verb_handler<bool> handler,
    const asio::any_io_executor& caller, std::shared_ptr<core> self, record::ptr held)
{
    start_operation<is_valid_operation>(executor, std::move(handler), caller, std::move(self), std::move(held));
}

asio::awaitable<lost_reason> lost(std::shared_ptr<core> self, record::ptr held)
{
    return await_operation<lost_operation>(std::move(self), std::move(held));
}

void start_lost(const asio::any_io_executor& executor, verb_handler<lost_reason> handler,
    const asio::any_io_executor& caller, std::shared_ptr<core> self, record::ptr held)
{
    start_operation<lost_operation>(executor, std::move(handler), caller, std::move(self), std::move(held));
}

} // namespace colock::detail::operations
