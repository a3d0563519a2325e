// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/group_in_one_request.hpp"

#include "core/operations/operation_errors.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace colock::inline v0::detail {

namespace {

void deliver(const std::vector<lock_record::ptr>& records, create_all_outcome&& outcome)
{
    for (std::size_t i = 0; i < records.size(); ++i) {
        switch (outcome.status) {
        case create_status::granted:
            records[i]->on_created(create_outcome::granted(i < outcome.fences.size() ? outcome.fences[i] : 0));
            break;
        case create_status::busy:
            records[i]->on_refused(i == outcome.which ? &outcome.refusal : nullptr);
            break;
        case create_status::failed:
            // The backend cannot grant these locks together, and has sent nothing. They are acquired one by one.
            if (outcome.refusal.error && outcome.refusal.error->code == errc::unsupported) {
                records[i]->on_refused(nullptr);
                break;
            }
            records[i]->on_created(create_outcome::failed(outcome.refusal.error));
            break;
        }
    }
}

} // namespace

bool attempt_all(core& self, const std::vector<lock_record::ptr>& records, bool is_retry)
{
    // These allocations may throw std::bad_alloc, so they precede everything that would have to be undone.
    std::vector<claim_ptr> claims(records.begin(), records.end());
    completion<create_all_outcome> done(
        [records](create_all_outcome outcome) { deliver(records, std::move(outcome)); });
    {
        deferred_actions actions;
        const auto now = lease_clock::now();
        const std::lock_guard guard(self.mutex);
        if (std::ranges::any_of(records, [&](const auto& each) { return self.queues.find(*each) != nullptr; }))
            return false;
        // Each claim is alone in its queue, so nobody is woken.
        for (const auto& each : records)
            self.queues.enter(*each, false, actions.wakes);
        for (const auto& each : records) {
            each->prepare_create();
            each->set_operation_start(now);
        }
        if (is_retry)
            ++self.stats.retries;
    }
    self.start_request(
        *records.front(), [&](adapter& backend) { backend.start_create_all(std::move(claims), std::move(done)); },
        [&](const failure_ptr& failure) {
            deliver(records, {.status = create_status::failed, .refusal = create_outcome::failed(failure)});
        });
    return true;
}

bool must_await_batch(core& self, lock_record& record, retry_schedule& schedule, std::uint32_t& seen)
{
    std::optional<last_answer> last;
    {
        const auto now = lease_clock::now();
        const std::lock_guard guard(self.mutex);
        if (record.current_phase() != phase::acquiring || record.in_flight == operation::none)
            return false;
        if (now >= schedule.deadline())
            last = last_answer_for(self, record, now);
        self.timers.schedule_wait(record, schedule.deadline());
        seen = record.version;
    }
    if (self.closed_to_new.load(std::memory_order_relaxed))
        throw_shutting_down(self, record);
    if (last)
        throw_retries_ended(self, record, schedule, *last);
    return true;
}

std::optional<batch_refusal> take_batch_answer(core& self, const std::vector<lock_record::ptr>& records)
{
    const auto now = lease_clock::now();
    return self.update([&](deferred_actions& actions) {
        std::optional<batch_refusal> refused;
        for (std::size_t i = 0; i < records.size(); ++i) {
            lock_record& each = *records[i];
            if (each.current_phase() != phase::acquiring)
                continue;
            if (std::exchange(each.acquire_state().outcome_ready, false) && !refused)
                refused = {.which = i, .answer = each.acquire_state().outcome};
            // The answer does not apply to the attempts that follow.
            each.acquire_state().outcome.error.reset();
            each.attempts_made.store(0, std::memory_order_relaxed);
            if (i > 0)
                self.queues.leave(each, actions.wakes);
        }
        const lock_record& first = *records.front();
        if (refused && first.current_phase() == phase::acquiring && first.acquire_state().queue) {
            // Others that wait for the first key must not be told the holder of another key.
            first.acquire_state().queue->answer =
                refused->which == 0 ? last_answer::from(refused->answer, holder_expiry(refused->answer, now))
                                    : last_answer{.is_answered = true};
        }
        return refused;
    });
}

} // namespace colock::inline v0::detail
