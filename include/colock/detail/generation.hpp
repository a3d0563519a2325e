// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/export.hpp>

#include <atomic>

namespace colock::inline v0::detail {

/// Generation of this process. Starts at 1 and is incremented in the child of every fork.
COLOCK_EXPORT extern std::atomic<unsigned> generation;

/// The process that has made an object. A child must not use the adapters and lockers of its parent. If it destroys
/// them, because it returns from `main` or calls `exit`, their destructors must not use the sockets and timers that it
/// shares with its parent.
class home_process
{
public:
    /// Returns whether this process is a child, by fork, of the process that has made the object.
    [[nodiscard]] bool is_in_child() const noexcept
    {
        return generation_ != generation.load(std::memory_order_relaxed);
    }

private:
    unsigned generation_ = generation.load(std::memory_order_relaxed);
};

} // namespace colock::inline v0::detail
