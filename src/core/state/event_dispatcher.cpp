// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/event_dispatcher.hpp"

#include <colock/observer.hpp>

#include "core/state/possible_deadlock.hpp"

#include <mutex>
#include <string>
#include <utility>

namespace colock::inline v0::detail {

namespace {

void report(observer& listener, const lock_event& event)
{
    using kind = lock_event::kind;
    const record::ptr& subject = event.subject;
    const std::string& key = subject->key();
    switch (event.what) {
    case kind::waiting:
        return listener.waiting(key);
    case kind::possible_deadlock:
        return listener.possible_deadlock(key, event.span, place_of(*subject), event.waiting_at);
    case kind::granted:
        return listener.granted(key, subject->fence, event.span);
    case kind::not_granted:
        return listener.not_granted(key, event.why, event.span);
    case kind::renewed:
        return listener.renewed(key, event.span);
    case kind::at_risk:
        return listener.at_risk(key, event.why);
    case kind::lost:
        return listener.lost(key, event.reason, event.span);
    case kind::released:
        return listener.released(key, event.span);
    case kind::settled:
        return listener.settled(key, event.proven);
    }
}

} // namespace

void event_dispatcher::run(observer& listener)
{
    event_list due;
    {
        const std::lock_guard guard(mutex_);
        if (is_reporting_)
            return;
        due.swap(pending_);
        is_reporting_ = !due.empty();
    }
    while (!due.empty()) {
        for (const auto& each : due)
            report(listener, each);
        // May destroy records and objects that they own, so the mutex must not be held.
        due.clear();
        const std::lock_guard guard(mutex_);
        due.swap(pending_);
        is_reporting_ = !due.empty();
    }
}

} // namespace colock::inline v0::detail
