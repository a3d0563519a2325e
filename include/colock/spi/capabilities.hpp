// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstddef>

namespace colock {

/// What a backend can do, the same in every call. The locker refuses what it cannot with `errc::unsupported`, before
/// anything is sent. What is left at its default is always right, if not fast: set only what the contract suite shows
/// to be true.
struct capabilities
{
    /// Shared locks.
    bool shared = false;
    /// Shared locks with `max_holders`.
    bool semaphore = false;
    /// A ttl of 0.
    bool no_ttl = false;
    /// It keeps a queue: a claim that was busy keeps its place until it is granted or abandoned. The core then never
    /// holds a claim back to let other lockers go first, and does not let its own overtake the queue by handing over.
    bool fifo = false;
    /// Each grant has a fencing token greater than those of all grants of the key before it.
    bool fence = false;
    /// `inspect`, `break_key`, `list` and `purge`.
    bool list = false;
    /// `wait` is woken by a release. Without it the core waits on a timer alone and never calls `wait`.
    bool events = false;
    /// `create_all`: several exclusive locks in one step.
    bool several = false;
    /// `group`: a release of all locks of a group by its id, whoever holds them.
    bool groups = false;
    /// `group`: an extension too.
    bool extends_groups = false;
    /// `export_ticket` and `adopt`: a lock that another process goes on with.
    bool tickets = false;
    /// The backend ends what is held beyond its ttl. Without it the core ends every lease itself, watches each for
    /// that, and takes back what it has left behind until the backend has answered.
    bool expires = true;
    /// Every operation but `wait` ends inside the call that starts it. The core then awaits answers on its stack: one
    /// that came later would write to memory that is gone. Never for an `awaitable_adapter`.
    bool immediate = false;
};

/// What an adapter accepts, the same in every call. Most adapters leave all of it alone.
struct adapter_limits
{
    /// A shorter ttl is refused with `errc::invalid_ttl`, and no renewal asks for a shorter one. To be raised to what
    /// the backend can tell apart, or to several times what it takes to answer; at most 1 s.
    std::chrono::milliseconds min_ttl{100};
    /// A longer one is refused too. To be lowered to what the backend can store; at least a day.
    std::chrono::milliseconds max_ttl{std::chrono::hours(24 * 3650)};
    /// In bytes; a longer key is refused with `errc::invalid_key`. Users count on 512 everywhere: what the backend
    /// cannot store as it is, the adapter encodes.
    std::size_t max_key = 512;
    /// An operation timeout that the adapter keeps to by a timer of its own: where it is not above the locker's, a
    /// release needs no further one. 0: none, and the core arms a timer for each; leave it so unless every operation
    /// is certain to end in that time.
    std::chrono::milliseconds answers_within{0};
};

} // namespace colock
