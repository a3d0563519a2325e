// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/deferred_actions.hpp"

#include "core/state/core.hpp"

namespace colock::detail {

void deferred_actions::run(shard& of)
{
    if (of.options.observer)
        of.events.run(*of.options.observer);
    for (auto& request : requests) {
        adapter& backend = *of.backend;
        record::ptr& subject = request.subject;
        switch (request.what) {
        case action::cancel_wait:
            backend.cancel_wait(*subject);
            break;
        case action::release:
            backend.start_release(subject, completion<release_outcome>::bind<&record::on_given_back>(subject));
            break;
        case action::abandon:
            backend.start_abandon(subject, completion<release_outcome>::bind<&record::on_given_back>(subject));
            break;
        case action::hand_over:
            backend.start_hand_over(subject, request.next, [subject, next = request.next](hand_over_outcome outcome) {
                const pinned_core of_held(*subject);
                const pinned_core of_next(*next);
                if (const auto& alive = of_held ? of_held : of_next)
                    alive->on_handed_over(*subject, *next, std::move(outcome));
            });
            break;
        case action::renew:
            backend.start_extend(
                subject, subject->extension().ttl, completion<extend_outcome>::bind<&record::on_extended>(subject));
            break;
        case action::verify:
            backend.start_is_valid(subject, completion<valid_outcome>::bind<&record::on_verified>(subject));
            break;
        }
    }
    wakes.resume([&](waiter& late) { of.wake_later(late); });
}

} // namespace colock::detail
