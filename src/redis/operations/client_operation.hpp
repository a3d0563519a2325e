// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/operation_client.hpp"

namespace colock::inline v0::redis::detail {

/// Base of the operations of an adapter.
class client_operation : public operation
{
public:
    explicit client_operation(operation_client& owner) : owner_(owner) {}

    void start() final { owner_.add_to_batch(*this); }

protected:
    /// Sets the deadline of an operation that was requested at that time. Without a time, the first submission sets it.
    void count_from(lease_clock::time_point requested_at) noexcept
    {
        if (requested_at != lease_clock::time_point())
            deadline = config().deadlines().deadline_for(requested_at);
    }
    /// Sends the operation again, with its next commands.
    void resubmit()
    {
        replies.clear();
        owner_.submit(operation_ptr(this));
    }
    [[nodiscard]] const settings& config() const noexcept { return owner_.config(); }

    operation_client& owner_;
};

} // namespace colock::inline v0::redis::detail
