// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/record.hpp"
#include "core/state/waiter.hpp"

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>

#include <memory>
#include <utility>

namespace colock::inline v0::detail {

struct shard;

/// References to records that were removed from a list of the core, which owned the references. Adding one cannot fail:
/// the records are linked by the hook of that list.
class removed_records
{
public:
    removed_records() = default;
    removed_records(const removed_records&) = delete;
    removed_records& operator=(const removed_records&) = delete;
    ~removed_records()
    {
        records_.clear_and_dispose([](record* each) { intrusive_ptr_release(each); });
    }

    /// Takes over the reference of the list that `removed` was in.
    void add(record& removed) noexcept { records_.push_back(removed); }

private:
    boost::intrusive::list<record, boost::intrusive::constant_time_size<false>> records_;
};

/// The actions that a change of state requires, collected under the shard's mutex and carried out after the mutex is
/// released: first the requests, then the wake-ups, then a batch of events; then objects are destroyed.
/// `shard::update` does that. Other code declares the actions before the lock guard, so that no object is destroyed
/// under the mutex.
struct deferred_actions
{
    enum class action : unsigned char
    {
        cancel_wait,
        release,
        abandon,
        hand_over,
        renew,
        verify,
    };
    struct request
    {
        action what;
        record::ptr subject;
        record::ptr next;
    };

    wake_list wakes;
    /// Two inline elements, because a hand-over may also cancel a wait.
    boost::container::small_vector<request, 2> requests;
    removed_records ended;
    /// Keeps the core alive while the actions are executed, and is released without the mutex. May be null.
    std::shared_ptr<core> kept_core;

    /// Adds a request to the backend. Must be called before `subject` is changed.
    /// \throws std::bad_alloc The caller must catch it if requests of other locks were added before.
    void add_request(action what, record& subject, record::ptr next = {})
    {
        requests.push_back({what, record::ptr(&subject), std::move(next)});
    }

    /// Starts the requests, resumes the waiters, and then reports at most a batch of the shard's pending events. The
    /// mutex must not be held.
    void run(shard& of);
};

} // namespace colock::inline v0::detail
