// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

namespace colock::inline v0 {

/// The features of a backend. The locker rejects an unsupported operation with
/// `errc::unsupported` before anything is sent. The default values are correct for every backend, though not the
/// fastest, except for `expires`. Change a field only if the contract test suite confirms it.
struct capabilities
{
    /// Shared locks are supported.
    bool shared = false;
    /// Shared locks with `max_holders` are supported.
    bool semaphore = false;
    /// A ttl of 0 is supported: the lock is held until it is released.
    bool no_ttl = false;
    /// The backend has a queue: a claim that was busy keeps its place until it is granted or abandoned. The core then
    /// never delays a claim to let other lockers go first, and ignores `release_outcome::others_wait`. A hand-over must
    /// not overtake the queue either: if other claims wait before the next claim, its outcome is busy.
    bool fifo = false;
    /// Each grant has a fencing token that is greater than the tokens of all earlier grants of the key.
    bool fence = false;
    /// `start_listing` is supported.
    bool list = false;
    /// The status of a lock that `inspect` and `list` report contains its fence. Without this feature,
    /// `election::leader` and `election::next_leader` are not supported.
    bool lists_fence = false;
    /// A release ends a `wait`. Without this feature, the core waits by a timer alone and never calls `wait`.
    bool events = false;
    /// `start_create_all` is supported: several exclusive locks in one step. It may be refused for some keys.
    bool create_all = false;
    /// `group` can release all locks of a group by its id, including those of other processes.
    bool groups = false;
    /// `group` can also extend all locks of a group.
    bool extends_groups = false;
    /// `start_export` and `start_adopt` are supported: another process can take over a lock.
    bool tickets = false;
    /// The backend removes a lock when its ttl has passed. Without this feature, the core ends every lease itself: it
    /// watches each lease, and repeats the release of an expired lock until the backend has answered.
    bool expires = true;
    /// Every operation except `wait` ends inside the call that starts it. The core then stores the outcome on its
    /// stack, so a later completion would write to invalid memory. Never set this for an `awaitable_adapter`.
    bool immediate = false;
};

} // namespace colock::inline v0
