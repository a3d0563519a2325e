// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/lock_record.hpp"
#include "core/state/wake_list.hpp"

#include <boost/container/small_vector.hpp>

#include <memory>
#include <utility>

namespace colock::inline v0::detail {

class core;

/// The actions that a change of state requires, collected under the mutex of the core and carried out after the mutex
/// is released: first the requests, then the wake-ups, then a batch of events; then objects are destroyed.
/// `core::update` does that. Other code declares the actions before the lock guard, so that no object is destroyed
/// under the mutex.
struct deferred_actions
{
    deferred_actions() = default;
    deferred_actions(const deferred_actions&) = delete;
    deferred_actions& operator=(const deferred_actions&) = delete;
    ~deferred_actions()
    {
        removed.clear_and_dispose([](lock_record* each) { intrusive_ptr_release(each); });
    }

    enum class action : unsigned char
    {
        cancel_wait,
        release,
        release_settled,
        hand_over,
        extend,
        query,
    };
    struct request
    {
        action kind;
        lock_record::ptr record;
        lock_record::ptr next;
    };

    wake_list wakes;
    /// Two inline elements, because a hand-over may also cancel a wait.
    boost::container::small_vector<request, 2> requests;
    /// Records that were removed from a list of the core, which owned a reference to each of them. Adding a record
    /// cannot fail, because it is linked by the hook of that list.
    record_list removed;
    /// Keeps the core alive while the actions are executed, and is released without the mutex. May be null.
    std::shared_ptr<core> kept_core;

    /// Adds a request to the backend.
    /// \throws std::bad_alloc From the third request on. So it is called before anything that would have to be undone,
    ///     and a caller that has added requests of other locks before must catch the exception.
    void add_request(action kind, lock_record& record, lock_record::ptr next = {})
    {
        requests.push_back({kind, lock_record::ptr(&record), std::move(next)});
    }

    /// Whether there is nothing to carry out but the destruction of objects.
    [[nodiscard]] bool empty() const noexcept { return requests.empty() && wakes.empty(); }
    /// Starts the requests, resumes the handlers in `wakes`, and then reports at most a batch of the pending events.
    /// The mutex must not be held.
    void run(core& self);
};

} // namespace colock::inline v0::detail
