// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/outbox.hpp"
#include "remote/deadlines.hpp"
#include "remote/parts_owner.hpp"
#include "remote/wait_sources.hpp"

#include <colock/adapter.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <deque>

namespace colock::redis::detail {

using remote::most_per_turn;

/// What ends without having been sent, and is still to be told so. A hundred thousand may end at one moment: some are
/// told at once, and the rest in turns to come, between which the event loop can do something else.
///
/// Thread safety: none; belongs to the strand.
class never_sent
{
public:
    never_sent(const asio::any_io_executor& strand, remote::parts_owner& owner, outbox& recycler);

    void add(std::deque<batch_ptr> operations, const failure_ptr& why);
    void add(remote::wait_sources::completions waits);
    /// Unless the next part is told by a handler that is posted already.
    void tell();
    [[nodiscard]] bool empty() const noexcept { return operations_.empty() && waits_.empty(); }
    /// All of those.
    void end(batch_ptr unsent, const failure_ptr& why);

private:
    struct part
    {
        batch_ptr operations;
        failure_ptr why;
    };
    void tell_some();

    const asio::any_io_executor strand_;
    remote::parts_owner& owner_;
    outbox& recycler_;
    std::deque<part> operations_;
    std::deque<completion<woken>> waits_;
    bool telling_ = false;
};

} // namespace colock::redis::detail
