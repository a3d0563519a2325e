// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/names.hpp"
#include "redis/operations/operation_client.hpp"

#include <string>
#include <string_view>

namespace colock::inline v0::redis::detail {

/// Base of the operations of an adapter.
class client_operation : public operation
{
public:
    explicit client_operation(operation_client& owner) : owner_(&owner) {}

    void start() final { owner_->add_to_batch(*this); }
    void end(delivery status, failure_ptr failure) final;

    /// The client that sends the operation. In a cluster, each master has its own client.
    [[nodiscard]] operation_client& owner() const noexcept { return *owner_; }
    /// Must be called before the operation is queued at another client.
    /// \param behind_asking see `asks`
    void send_to(operation_client& owner, bool behind_asking);
    /// Number of redirections that were followed since the last step was submitted.
    unsigned redirections = 0;
    /// The request is for this server only, so it is not sent to another.
    bool is_pinned = false;

protected:
    /// Sets the deadline of an operation that was requested at that time. Without a time, the first submission sets it.
    void count_from(lease_clock::time_point requested_at) noexcept
    {
        if (requested_at != lease_clock::time_point())
            deadline = config().deadlines().deadline_for(requested_at);
    }
    /// Names the lock that decides to which master of a cluster the operation is sent.
    void route_by(std::string_view key);
    /// Sends the operation again, with its next commands.
    void resubmit();
    /// Called at the end of a submission, see `operation::end`, except after a redirection that was followed.
    virtual void complete(delivery status, failure_ptr failure) = 0;
    /// Returns the key of the lock whose waiters the current step may have notified. Empty if it notifies none.
    [[nodiscard]] virtual std::string_view published_key() const noexcept { return {}; }

    [[nodiscard]] const settings& config() const noexcept { return owner_->config(); }
    /// Adds the script that raises the fence counter, and takes fences.
    void push_anchor(boost::redis::request& request, std::size_t count = 0) const;
    /// Tells whether the lock was granted, but a node of a cluster has given no fence, because the counter or the lock
    /// is moving to another node. The fence has to be taken by a separate request.
    [[nodiscard]] bool misses_fence() const;

private:
    operation_client* owner_;
};

} // namespace colock::inline v0::redis::detail
