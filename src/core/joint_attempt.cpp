// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/joint_attempt.hpp"

#include "core/acquire_step.hpp"
#include "core/core.hpp"
#include "core/failures.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace colock::detail {

namespace {

/// The mutex is held. It would overtake nobody.
bool stands_first(core& self, const record& wanted)
{
    const key_queue* const queue = self.queues.find(wanted);
    return !queue || (wanted.place.queue == queue && wanted.place.is_head && queue->heads == 1);
}

void tell(const std::vector<record::ptr>& asked, create_all_outcome&& outcome)
{
    for (std::size_t i = 0; i < asked.size(); ++i) {
        switch (outcome.status) {
        case create_status::granted:
            asked[i]->on_created(create_outcome::granted(i < outcome.fences.size() ? outcome.fences[i] : 0));
            break;
        case create_status::busy:
            if (i == outcome.which)
                asked[i]->on_created(create_outcome::busy(outcome.why.retry_after, std::move(outcome.why.holder)));
            else
                asked[i]->on_passed_over();
            break;
        case create_status::failed:
            asked[i]->on_created(create_outcome::failed(outcome.why.error));
            break;
        }
    }
}

} // namespace

bool attempt_all(core& self, const std::vector<record::ptr>& wanted, const retry_schedule& schedule)
{
    std::vector<record*> listening;
    {
        work todo;
        const auto now = lease_clock::now();
        const bool counts = now >= schedule.next_at();
        {
            const std::lock_guard guard(self.mutex);
            if (!std::ranges::all_of(wanted, [&](const auto& each) { return stands_first(self, *each); }))
                return false;
            for (const auto& each : wanted) {
                if (!each->place.queue)
                    self.queues.enter(*each, false, todo.wakes);
                each->place.open_to_hand_over = false;
                self.timers.schedule(*each, schedule.deadline());
                if (begin_attempt(self, *each, now, counts))
                    listening.push_back(each.get());
            }
        }
        todo.run(self);
    }
    for (auto* const each : listening)
        self.backend->cancel_wait(*each);
    self.backend->start_create_all(
        {wanted.begin(), wanted.end()}, [wanted](create_all_outcome outcome) { tell(wanted, std::move(outcome)); });
    return true;
}

bool is_unanswered(core& self, record& asked, const retry_schedule& schedule, std::uint32_t& seen)
{
    throw_if_inherited(self, asked);
    std::optional<last_answer> last;
    {
        const auto now = lease_clock::now();
        const std::lock_guard guard(self.mutex);
        if (asked.where() != phase::acquiring || asked.under_way == operation::none)
            return false;
        if (now >= schedule.deadline())
            last = answer_to(asked, now);
        self.timers.schedule(asked, schedule.deadline());
        seen = asked.version;
    }
    if (self.closed_to_new.load(std::memory_order_relaxed))
        throw_shutting_down(self, asked);
    if (last)
        throw_retries_ended(self, asked, schedule, *last);
    return true;
}

bool is_answered(core& self, const record& asked)
{
    const std::lock_guard guard(self.mutex);
    return asked.outcome_ready;
}

bool lets_others_run(core& self, std::size_t grants)
{
    const std::lock_guard guard(self.mutex);
    return self.stats.grants % immediate_grants_in_a_row < grants;
}

} // namespace colock::detail
