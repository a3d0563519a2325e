// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstddef>

namespace colock {

/// What a backend can do. The locker refuses what it cannot with `errc::unsupported`, before anything is sent.
struct capabilities
{
    /// Shared locks.
    bool shared = false;
    /// Shared locks with `max_holders`.
    bool semaphore = false;
    /// A ttl of 0.
    bool no_ttl = false;
    /// It keeps a queue: a claim that was busy keeps its place until it is granted or abandoned.
    bool fifo = false;
    bool fence = false;
    /// `inspect`, `break_key`, `list` and `purge`.
    bool list = false;
    /// `wait` is woken by a release. Without it the core waits on a timer alone and never calls `wait`.
    bool events = false;
    /// `create_all`: several exclusive locks in one step.
    bool several = false;
    /// `group`: a release or an extension of all locks of a group by its id, whoever holds them.
    bool groups = false;
    /// `export_ticket` and `adopt`: a lock that another process goes on with.
    bool tickets = false;
    /// The backend ends what is held beyond its ttl. Without it the core ends every lease itself, watches each for
    /// that, and takes back what it has left behind until the backend has answered.
    bool expires = true;
    /// Every operation but `wait` ends inside the call that starts it.
    bool immediate = false;
};

struct adapter_limits
{
    std::chrono::milliseconds min_ttl{100};
    std::chrono::milliseconds max_ttl{std::chrono::hours(24 * 3650)};
    /// In bytes.
    std::size_t max_key = 512;
    /// An operation timeout that the adapter keeps to by a timer of its own: where it is not above the locker's, a
    /// release needs no further one. 0: none.
    std::chrono::milliseconds answers_within{0};
};

} // namespace colock
