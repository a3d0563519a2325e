// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/send_queue.hpp"
#include "remote/policy/deadlines.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/spi/adapter.hpp>

#include <deque>

namespace colock::redis::detail {

using remote::most_per_turn;

/// Operations that end without having been sent, and waits, whose callers are still to be told. A hundred thousand may
/// end at one moment: they are told in parts, between which the event loop can do something else.
///
/// Thread safety: none; belongs to the strand.
class unsent_operations
{
public:
    explicit unsent_operations(send_queue& recycler) : recycler_(recycler) {}

    void add(std::deque<batch_ptr> operations, const failure_ptr& why);
    void add(remote::wait_sources::completions waits);
    /// Tells some. Returns whether more are left, for which another handler should call it again.
    [[nodiscard]] bool tell_some();
    [[nodiscard]] bool empty() const noexcept { return operations_.empty() && waits_.empty(); }
    /// Ends all operations of a batch at once.
    void end(batch_ptr unsent, const failure_ptr& why);

private:
    struct part
    {
        batch_ptr operations;
        failure_ptr why;
    };

    send_queue& recycler_;
    std::deque<part> operations_;
    std::deque<completion<woken>> waits_;
};

} // namespace colock::redis::detail
