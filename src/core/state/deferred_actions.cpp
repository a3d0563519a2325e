// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/deferred_actions.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <memory>
#include <new>

namespace colock::inline v0::detail {

namespace {

void on_handed_over(record& held, record& next, hand_over_outcome&& outcome)
{
    const pinned_core of_held(held);
    const pinned_core of_next(next);
    if (const auto& alive = of_held ? of_held : of_next)
        alive->on_handed_over(held, next, std::move(outcome));
}

void start(adapter& backend, const deferred_actions::request& request)
{
    using action = deferred_actions::action;
    const record::ptr& subject = request.subject;
    switch (request.what) {
    case action::cancel_wait:
        return backend.cancel_wait(*subject);
    case action::release:
    case action::abandon:
        return backend.start_release(subject,
            request.what == action::abandon ? release_guarantee::settled : release_guarantee::released,
            completion<release_outcome>::bind<&record::on_released>(subject));
    case action::hand_over:
        return backend.start_hand_over(
            subject, request.next, [subject, next = request.next](hand_over_outcome outcome) {
                on_handed_over(*subject, *next, std::move(outcome));
            });
    case action::renew:
        return backend.start_extend(subject, subject->lease_state().extension.ttl,
            completion<extend_outcome>::bind<&record::on_extended>(subject));
    case action::verify:
        return backend.start_is_valid(subject, completion<valid_outcome>::bind<&record::on_verified>(subject));
    }
}

void fail(const deferred_actions::request& request, const failure_ptr& why)
{
    using action = deferred_actions::action;
    record& subject = *request.subject;
    switch (request.what) {
    case action::cancel_wait:
        return;
    case action::release:
    case action::abandon:
        return subject.on_released({.status = release_status::failed, .error = why});
    case action::hand_over:
        return on_handed_over(subject, *request.next,
            {.released = {.status = release_status::failed, .error = why}, .created = create_outcome::failed(why)});
    case action::renew:
        return subject.on_extended({.status = extend_status::failed, .error = why});
    case action::verify:
        return subject.on_verified({.error = why});
    }
}

/// Reports a batch of the pending events. The rest is posted, so that the thread can do other work.
void report_events(const std::shared_ptr<core>& self, core& of)
{
    while (of.events.report_batch(*of.options.observer)) {
        // Without an event loop, nothing else would report the rest.
        if (!self || of.dead)
            continue;
        if (!of.events.begin_post())
            return;
        try {
            // The posted function keeps the core alive, so that no event is dropped.
            if (of.post_to_context([self] {
                    self->events.end_post();
                    report_events(self, *self);
                }))
                return;
        } catch (const std::bad_alloc&) {
            // Without memory to post, the next batch follows at once.
        }
        of.events.end_post();
    }
}

} // namespace

void deferred_actions::run(core& self)
{
    // A waiter that is resumed on another thread may release the last reference to the core. Only the events need the
    // core after that. Empty while the core is destroyed.
    std::shared_ptr<core> kept;
    const bool has_observer = self.options.observer != nullptr;
    if (has_observer)
        kept = self.weak_from_this().lock();
    if (COLOCK_DEFECT(requests_wait_for_observer) && has_observer)
        report_events(kept, self);
    for (const auto& each : requests) {
        self.start_request(
            *each.subject, [&](adapter& backend) { start(backend, each); },
            [&](const failure_ptr& why) { fail(each, why); });
    }
    wakes.resume([&](waiter& late) { self.wake_later(late); });
    if (has_observer)
        report_events(kept, self);
}

} // namespace colock::inline v0::detail
