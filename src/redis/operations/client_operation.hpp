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
