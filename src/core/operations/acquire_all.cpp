// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/acquire_step.hpp"
#include "core/operations/group_in_one_request.hpp"
#include "core/operations/incomplete_group.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/wait_until.hpp"
#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <ranges>

namespace colock::inline v0::detail::operations {

namespace {

bool is_exclusive(const group_member& member) noexcept
{
    return member.mode == lock_mode::exclusive;
}

/// Sorts the members by key, removes duplicates, and gives each its mode.
void order_canonically(const core& self, std::vector<group_member>& members, lock_mode default_mode)
{
    const auto refuse = [&](std::string key, std::string text) {
        throw validation_error(
            errc::invalid_options, {.key = std::move(key), .backend = self.backend_name(), .detail = std::move(text)});
    };
    if (members.empty())
        refuse({}, "the list of keys is empty; name at least one, or use acquire_global()");
    for (auto& each : members)
        each.mode = each.mode.value_or(default_mode);
    std::ranges::sort(members, {}, &group_member::key);
    const auto same_key = [](const group_member& one, const group_member& other) { return one.key == other.key; };
    const auto differ = std::ranges::adjacent_find(
        members, [&](const auto& one, const auto& other) { return same_key(one, other) && one.mode != other.mode; });
    if (differ != members.end())
        refuse(differ->key, "the key is named twice, with different modes; name it once, with the mode that it needs");
    const auto again = std::ranges::unique(members, same_key);
    members.erase(again.begin(), again.end());
}

/// Reports each key of an acquire that has ended without locks.
/// \param started zero if the acquire was rejected before it started
void report_all_not_granted(const std::shared_ptr<core>& self, const std::vector<group_member>& members,
    lease_clock::time_point started, const error_code& error) noexcept
{
    try {
        for (const auto& member : members) {
            const lock_record::ptr record(new lock_record(self, {.key = member.key}));
            record->started = started;
            report_not_granted(*self, record, error);
        }
    } catch (const std::bad_alloc&) {
        // The remaining keys are not reported, like any event for which there is no memory.
    }
}

/// Whether other handlers must run now, after `grants` more grants that were answered at once.
bool must_yield(core& self, std::size_t grants)
{
    const std::lock_guard guard(self.mutex);
    return self.stats.grants % max_immediate_grants < grants;
}

/// Waits until the time `until`. Ends early, with an exception, if the locker closes.
asio::awaitable<void> pause(std::shared_ptr<core> self, const lock_record& record, lease_clock::time_point until)
{
    co_await wait_until(
        *self, self->group_pause, until, [&] { return self->closed_to_new.load(); }, on_close::end_wait);
    if (self->closed_to_new)
        throw_shutting_down(*self, record);
}

/// Acquires several locks, all or none.
///
/// If the backend supports it, and no other caller of this locker waits for one of the keys, all locks are first
/// requested in one step. Otherwise the locks are acquired one after the other in canonical order, and those that were
/// granted are held. All groups use the same order, so they cannot wait for each other in a cycle. A place in a queue
/// is kept until the lock is granted, so that other acquires cannot starve the group. If a lease ends before the group
/// is complete, all locks are released, and the group starts again.
class group_acquire
{
public:
    group_acquire(std::shared_ptr<core> self, std::vector<group_member> members, const acquire_options& options)
        : core_(std::move(self)), members_(std::move(members)), options_(options),
          policy_(options.retry.with_defaults(core_->options.retry)),
          can_ask_in_one_step_(core_->can.create_all && members_.size() > 1 && members_.size() <= max_keys_per_step &&
                               std::ranges::all_of(members_, &is_exclusive)),
          schedule_(policy_, lease_clock::now())
    {
    }
    group_acquire(const group_acquire&) = delete;
    group_acquire& operator=(const group_acquire&) = delete;
    ~group_acquire();

    [[nodiscard]] asio::awaitable<lock_group> run();
    /// Whether `run` has thrown because a lock is busy.
    [[nodiscard]] bool has_ended_busy() const noexcept { return schedule_.has_ended_busy(); }
    /// Must be called if `run` has thrown.
    void failed(const std::exception_ptr& failure) noexcept
    {
        if (!end_)
            end_ = code_of(failure);
    }

private:
    void prepare_locks();
    // Each step returns false if the group has to start again, because a lease has ended or a grant arrived too late.
    [[nodiscard]] asio::awaitable<bool> attempt_in_one_step();
    [[nodiscard]] asio::awaitable<bool> acquire_in_order();
    [[nodiscard]] asio::awaitable<bool> acquire_next(requested_lock& next);
    [[nodiscard]] asio::awaitable<bool> renew_short_leases();
    [[nodiscard]] asio::awaitable<void> start_again();

    void begin_wait();
    /// Counts a failed attempt. Throws if the policy gives up.
    void count_failure(const lock_record& failed, const last_answer& last);
    [[nodiscard]] asio::awaitable<void> pause_until(
        const lock_record& failed, lease_clock::time_point until, failure_ptr failure);

    const std::shared_ptr<core> core_;
    /// In canonical order, each with its mode.
    const std::vector<group_member> members_;
    const acquire_options options_;
    const retry_policy policy_;
    /// Whether the backend can be asked for all locks in one step.
    const bool can_ask_in_one_step_;
    const std::string group_ = token::generate().hex();
    /// One schedule for all keys. A grant is not counted, and does not reset the schedule.
    retry_schedule schedule_;
    /// The options of all keys were accepted.
    bool is_accepted_ = false;
    /// Whether the group is counted among the waiting acquires.
    bool waits_ = false;
    /// Number of consecutive attempts in one step whose grants arrived too late.
    unsigned late_grants_ = 0;
    /// For each member, what was reported before the group started again.
    std::vector<reported_events> reported_{};
    lease_clock::time_point next_check_ = lease_clock::time_point::max();
    /// The error with which the acquire ends; no error once the group is complete. Empty if the coroutine is destroyed
    /// before it ends.
    std::optional<error_code> end_{};
    /// One requested lock for each member, in order.
    incomplete_group incomplete_{core_};
};

asio::awaitable<lock_group> group_acquire::run()
{
    for (;;) {
        prepare_locks();
        // Separate statements, because GCC 14 drops an exception of the first co_await in `co_await a && co_await b`.
        bool is_held = co_await attempt_in_one_step();
        if (is_held)
            is_held = co_await acquire_in_order();
        if (is_held)
            is_held = co_await renew_short_leases();
        if (is_held && incomplete_.complete(waits_, schedule_.start()))
            break;
        co_await start_again();
    }
    end_.emplace();
    auto group = core::make_group(core_, group_, incomplete_.take_locks());
    if (core_->can.immediate && must_yield(*core_, group.size()))
        co_await asio::post(asio::deferred);
    co_return group;
}

void group_acquire::prepare_locks()
{
    const bool all_exclusive = std::ranges::all_of(members_, &is_exclusive);
    for (const auto& member : members_) {
        auto options = options_;
        options.mode = *member.mode;
        // In a list with both modes, max_holders applies to the shared locks. A list of exclusive locks with
        // max_holders is refused.
        if (is_exclusive(member) && !all_exclusive)
            options.max_holders = 0;
        auto record =
            operations::prepare(core_, std::string(member.key), std::move(options), renewal::manual, true, group_);
        throw_if_invalid(*core_, *record);
        prepare_token(*core_, *record);
        record->started = schedule_.start();
        if (!reported_.empty())
            record->reported = reported_[incomplete_.all().size()];
        incomplete_.add(std::move(record));
    }
    is_accepted_ = true;
    if (core_->closed_to_new)
        throw_shutting_down(*core_, *incomplete_.first().record);
}

asio::awaitable<bool> group_acquire::attempt_in_one_step()
{
    if (!can_ask_in_one_step_)
        co_return true;
    throw_if_cancelled(co_await asio::this_coro::cancellation_state);
    const bool counts = lease_clock::now() >= schedule_.next_at();
    std::vector<lock_record::ptr> records;
    for (const auto& each : incomplete_.all())
        records.push_back(each.record);
    if (!attempt_all(*core_, records, counts && schedule_.attempts() > 0))
        co_return true;
    for (const auto& each : records) {
        std::uint32_t seen = 0;
        while (must_await_batch(*core_, *each, schedule_, seen)) {
            throw_if_cancelled(co_await asio::this_coro::cancellation_state);
            co_await core_->async_wait(*each, seen, on_close::end_wait);
        }
    }
    const auto refused = take_batch_answer(*core_, records);
    if (!refused)
        co_return true;
    const lock_record& failed = *records[refused->which];
    const create_outcome& answer = refused->answer;
    if (answer.status == create_status::granted) {
        // No event will report when to ask again.
        COLOCK_SOMETIMES(group_in_one_step_is_granted_too_late);
        next_check_ = saturating_add(lease_clock::now(), acquire_plan::check_delay(late_grants_++));
        co_return false;
    }
    schedule_.add_earlier_requests(1);
    if (answer.status == create_status::failed && !is_retryable(answer.error->code))
        throw_failed(*answer.error, context_of(*core_, failed));
    if (counts)
        count_failure(failed, last_answer::from(answer, holder_expiry(answer, lease_clock::now())));
    if (COLOCK_DEFECT(group_starves) && answer.status == create_status::busy)
        co_return false;
    if (answer.status == create_status::busy) {
        records.front()->acquire_state().plan.mark_first_as_counted();
    } else {
        // The same claims continue: if they were granted after all, they find their own grants.
        const bool is_unknown = answer.error->code == errc::outcome_unknown;
        for (auto& each : incomplete_.all()) {
            COLOCK_SOMETIMES(group_in_one_step_fails);
            if (each.record->release_in_doubt())
                each.record = replace_claim(*core_, each.record);
            if (is_unknown)
                each.record->acquire_state().plan.mark_first_as_check();
        }
        const auto check = is_unknown ? saturating_add(lease_clock::now(), acquire_plan::check_delay(0))
                                      : lease_clock::time_point::max();
        co_await pause_until(
            *incomplete_.all()[refused->which].record, std::min(check, schedule_.next_at()), answer.error);
    }
    co_return true;
}

asio::awaitable<bool> group_acquire::acquire_in_order()
{
    std::size_t acquired = 0;
    for (auto& next : incomplete_.all()) {
        if (next.record->current_phase() == phase::held)
            continue;
        if (!co_await acquire_next(next))
            co_return false;
        if (core_->can.immediate && ++acquired % max_immediate_grants == 0)
            co_await asio::post(asio::deferred);
    }
    co_return !incomplete_.has_lost();
}

asio::awaitable<bool> group_acquire::acquire_next(requested_lock& next)
{
    incomplete_.set_awaited_claim(next.record.get());
    for (;;) {
        std::uint32_t seen = 0;
        const step reached = next_step(*core_, next.record, schedule_, std::nullopt, seen);
        if (incomplete_.has_lost())
            co_return false;
        if (reached == step::granted)
            co_return true;
        if (reached == step::again)
            continue;
        if (reached == step::wait)
            begin_wait();
        if (reached == step::yield)
            seen = condition::outdated;
        throw_if_cancelled(co_await asio::this_coro::cancellation_state);
        co_await core_->async_wait(*next.record, seen, on_close::end_wait);
    }
}

/// Renews the leases that have become short, once each: the leases of the first locks may be old when the last lock is
/// granted. A renewal that fails is repeated like any other renewal.
asio::awaitable<bool> group_acquire::renew_short_leases()
{
    const timer_guard on_exit{*core_, incomplete_.progress()};
    incomplete_.set_awaited_claim(nullptr);
    for (std::uint32_t seen = 0; incomplete_.begin_renewals(schedule_.deadline(), seen);) {
        const lock_record& first = *incomplete_.first().record;
        if (core_->closed_to_new)
            throw_shutting_down(*core_, first);
        if (lease_clock::now() >= schedule_.deadline()) {
            COLOCK_SOMETIMES(group_ends_while_leases_are_renewed);
            auto failure = make_failure(errc::unavailable, "a lease of the group could not be renewed");
            throw_retries_ended(*core_, first, schedule_, {.is_answered = true, .error = std::move(failure)});
        }
        throw_if_cancelled(co_await asio::this_coro::cancellation_state);
        co_await core_->async_wait(incomplete_.progress(), seen, on_close::end_wait);
    }
    co_return !incomplete_.has_lost();
}

/// Releases all locks, counts a failed attempt, and waits until the next attempt is due.
asio::awaitable<void> group_acquire::start_again()
{
    const auto failed = incomplete_.first().record;
    const auto requests_for = [](const requested_lock& each) { return each.record->attempts_made.load(); };
    const std::size_t max_requests = std::ranges::max(incomplete_.all() | std::views::transform(requests_for));
    reported_.clear();
    for (const auto& each : incomplete_.all())
        reported_.push_back(each.record->reported);
    incomplete_.release_all();
    if (core_->closed_to_new)
        throw_shutting_down(*core_, *failed);
    const auto failure =
        make_failure(errc::unavailable, "a lease ended before the last of several locks was granted; use a longer ttl");
    const auto next_check = std::exchange(next_check_, lease_clock::time_point::max());
    const bool is_early_check =
        next_check != lease_clock::time_point::max() && lease_clock::now() < schedule_.next_at();
    if (!is_early_check)
        count_failure(*failed, {.is_answered = true, .error = failure});
    co_await pause_until(*failed, std::min(next_check, schedule_.next_at()), failure);
    schedule_.add_earlier_requests(max_requests);
}

group_acquire::~group_acquire()
{
    incomplete_.release_all();
    if (waits_) {
        const std::lock_guard guard(core_->mutex);
        --core_->stats.waiting;
    }
    if (const error_code error = end_.value_or(code_of_destroyed_acquire(*core_))) {
        const auto started = is_accepted_ ? schedule_.start() : lease_clock::time_point();
        report_all_not_granted(core_, members_, started, error);
    }
}

void group_acquire::begin_wait()
{
    if (std::exchange(waits_, true))
        return;
    const std::lock_guard guard(core_->mutex);
    ++core_->stats.waits;
    ++core_->stats.waiting;
}

void group_acquire::count_failure(const lock_record& failed, const last_answer& last)
{
    if (!schedule_.on_failed(lease_clock::now()))
        throw_retries_ended(*core_, failed, schedule_, last);
}

asio::awaitable<void> group_acquire::pause_until(
    const lock_record& failed, lease_clock::time_point until, failure_ptr failure)
{
    co_await pause(core_, failed, std::min(until, schedule_.deadline()));
    if (lease_clock::now() >= schedule_.deadline())
        throw_retries_ended(*core_, failed, schedule_, {.is_answered = true, .error = std::move(failure)});
}

/// \param has_ended_busy if not null: set to whether the acquire has thrown because a lock is busy
asio::awaitable<lock_group> acquire_group(
    std::shared_ptr<core> self, group_members keys, acquire_options options, bool* has_ended_busy)
{
    std::vector<group_member> members = std::move(keys.all());
    try {
        order_canonically(*self, members, options.mode);
    } catch (const validation_error& refused) {
        members.erase(std::ranges::unique(members, {}, &group_member::key).begin(), members.end());
        report_all_not_granted(self, members, {}, refused.code());
        throw;
    }
    group_acquire all(self, std::move(members), options);
    try {
        co_return co_await all.run();
    } catch (...) {
        if (has_ended_busy)
            *has_ended_busy = all.has_ended_busy();
        all.failed(std::current_exception());
        throw;
    }
}

} // namespace

asio::awaitable<lock_group> acquire_all(std::shared_ptr<core> self, group_members keys, acquire_options options)
{
    return acquire_group(std::move(self), std::move(keys), std::move(options), nullptr);
}

asio::awaitable<std::optional<lock_group>> try_acquire_all(
    std::shared_ptr<core> self, group_members keys, lease_clock::duration within, acquire_options options)
{
    limit_wait(*self, options, within);
    bool is_busy = false;
    try {
        co_return co_await acquire_group(self, std::move(keys), std::move(options), &is_busy);
    } catch (const retry_error&) {
        if (!is_busy)
            throw;
    }
    co_return std::nullopt;
}

} // namespace colock::inline v0::detail::operations
