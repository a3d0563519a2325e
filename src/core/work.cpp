// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/work.hpp"

#include "core/core.hpp"

#include <colock/observer.hpp>

namespace colock::detail {

namespace {

void tell_observer(observer& listener, const work::event& event)
{
    using note = work::note;
    const record::ptr& subject = event.subject;
    const std::string& key = subject->key();
    switch (event.what) {
    case note::waiting:
        return listener.waiting(key);
    case note::granted:
        return listener.granted(key, subject->fence, event.span);
    case note::renewed:
        return listener.renewed(key, event.span);
    case note::at_risk:
        return listener.at_risk(key, event.why);
    case note::lost:
        return listener.lost(key, event.reason);
    case note::released:
        return listener.released(key);
    case note::settled:
        return listener.settled(key, event.proven);
    }
}

} // namespace

void work::run(shard& of)
{
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
    wakes.resume();
    for (const auto& event : events)
        tell_observer(*of.options.observer, event);
}

} // namespace colock::detail
