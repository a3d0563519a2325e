// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/deferred_actions.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <memory>
#include <new>

namespace colock::inline v0::detail {

namespace {

void on_handed_over(lock_record& holder, lock_record& next, hand_over_outcome&& outcome)
{
    const pinned_core holder_core(holder);
    const pinned_core next_core(next);
    if (const auto& alive = holder_core ? holder_core : next_core)
        alive->on_handed_over(holder, next, std::move(outcome));
}

void start(adapter& backend, const deferred_actions::request& request)
{
    using action = deferred_actions::action;
    const lock_record::ptr& record = request.record;
    switch (request.kind) {
    case action::cancel_wait:
        return backend.cancel_wait(*record);
    case action::release:
    case action::release_settled:
        return backend.start_release(record,
            request.kind == action::release_settled ? release_guarantee::settled : release_guarantee::released,
            completion<release_outcome>::bind<&lock_record::on_released>(record));
    case action::hand_over:
        return backend.start_hand_over(record, request.next, [record, next = request.next](hand_over_outcome outcome) {
            on_handed_over(*record, *next, std::move(outcome));
        });
    case action::extend:
        return backend.start_extend(record, record->lease_state().extension.ttl,
            completion<extend_outcome>::bind<&lock_record::on_extended>(record));
    case action::query:
        return backend.start_is_valid(record, completion<valid_outcome>::bind<&lock_record::on_queried>(record));
    }
}

void fail(const deferred_actions::request& request, const failure_ptr& failure)
{
    using action = deferred_actions::action;
    lock_record& record = *request.record;
    switch (request.kind) {
    case action::cancel_wait:
        return;
    case action::release:
    case action::release_settled:
        return record.on_released({.status = release_status::failed, .error = failure});
    case action::hand_over:
        return on_handed_over(record, *request.next,
            {.released = {.status = release_status::failed, .error = failure},
                .created = create_outcome::failed(failure)});
    case action::extend:
        return record.on_extended({.status = extend_status::failed, .error = failure});
    case action::query:
        return record.on_queried({.error = failure});
    }
}

/// Reports a batch of the pending events. The rest is posted, so that the thread can do other work.
/// \param kept keeps the core alive; null while the core is destroyed
void report_events(core& self, const std::shared_ptr<core>& kept)
{
    while (self.events.report_batch(*self.options.observer)) {
        // Without an event loop, nothing else would report the rest.
        if (!kept || self.dead)
            continue;
        if (!self.events.begin_post())
            return;
        try {
            // The posted function keeps the core alive, so that no event is dropped.
            if (self.post_to_context([kept] {
                    kept->events.end_post();
                    report_events(*kept, kept);
                }))
                return;
        } catch (const std::bad_alloc&) {
            // Without memory to post, the next batch follows at once.
        }
        self.events.end_post();
    }
}

} // namespace

void deferred_actions::run(core& self)
{
    // A handler that is resumed on another thread may release the last reference to the core. Only the events need the
    // core after that. Empty while the core is destroyed.
    std::shared_ptr<core> kept;
    const bool has_observer = self.options.observer != nullptr;
    if (has_observer)
        kept = self.weak_from_this().lock();
    if (COLOCK_DEFECT(requests_wait_for_observer) && has_observer)
        report_events(self, kept);
    for (const auto& each : requests) {
        self.start_request(
            *each.record, [&](adapter& backend) { start(backend, each); },
            [&](const failure_ptr& failure) { fail(each, failure); });
    }
    wakes.resume([&](suspended_handler& late) { self.wake_later(late); });
    if (has_observer)
        report_events(self, kept);
}

} // namespace colock::inline v0::detail
