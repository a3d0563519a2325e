// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/send_queue.hpp"
#include "remote/policy/deadlines.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/spi/adapter.hpp>

#include <deque>

namespace colock::inline v0::redis::detail {

using remote::max_per_handler;

/// Queue of operations that end as unsent, and of waits that end. There may be 100,000 of them at once, so their
/// completions are not called together: each handler ends a limited number, and the event loop can handle other events
/// in between.
///
/// Thread safety: none; belongs to the strand.
class unsent_operations
{
public:
    explicit unsent_operations(send_queue& queue) : send_queue_(queue) {}

    void add(std::deque<batch_ptr> operations, const failure_ptr& why);
    void add(remote::wait_sources::completions waits);
    /// Ends some of the operations and waits. Returns true if more are left; another handler must then call the
    /// function again.
    [[nodiscard]] bool end_some();
    [[nodiscard]] bool empty() const noexcept { return operations_.empty() && waits_.empty(); }
    /// Ends all operations of a batch now.
    void end(batch_ptr unsent, const failure_ptr& why);

private:
    struct part
    {
        batch_ptr operations;
        failure_ptr why;
    };

    send_queue& send_queue_;
    std::deque<part> operations_;
    std::deque<completion<wait_outcome>> waits_;
};

} // namespace colock::inline v0::redis::detail
