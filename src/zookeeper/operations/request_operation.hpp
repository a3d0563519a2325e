// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation.hpp"
#include "zookeeper/driver/reply.hpp"
#include "zookeeper/operations/failures.hpp"
#include "zookeeper/operations/operation_client.hpp"

#include <memory>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

using remote::delivery;
using remote::operation_ptr;

/// An operation whose replies are passed to its member functions, until it has ended. An operation with a sequence of
/// requests is a `coroutine_operation`.
class request_operation : public remote::operation
{
public:
    explicit request_operation(operation_client& owner)
        : owner_(std::static_pointer_cast<operation_client>(owner.shared_from_this()))
    {
    }

    void start() final
    {
        ++round_;
        begin();
    }
    void fail(delivery request_state, failure_ptr failure) final
    {
        has_ended_ = true;
        failed(request_state, std::move(failure));
    }

protected:
    /// Begins the operation. Called again if a request could not be sent.
    virtual void begin() = 0;
    /// Reports the failure. The operation has already ended.
    virtual void failed(delivery request_state, failure_ptr failure) = 0;

    [[nodiscard]] const settings& config() const noexcept { return owner_->config(); }
    [[nodiscard]] session_manager& sessions() const noexcept { return owner_->sessions(); }
    /// Returns null if no request can be sent now. The operation then begins again when one can be sent.
    [[nodiscard]] requests* get_requests()
    {
        auto* const sender = sessions().get_requests();
        if (!sender)
            restart();
        return sender;
    }
    /// Returns a completion that calls `member` with the reply and with `context`, unless another round has begun or
    /// the operation has ended.
    template <class Operation, class... Context>
    [[nodiscard]] reply_handler then(void (Operation::*member)(const reply&, const Context&...), Context... context)
    {
        return [self = boost::intrusive_ptr<Operation>(static_cast<Operation*>(this)), member, round = round_,
                   ... context = std::move(context)](const reply& reply) {
            if (self->accepts(reply, round))
                (self.get()->*member)(reply, context...);
        };
    }
    /// Number of the current round. Replies to requests of earlier rounds are ignored.
    [[nodiscard]] unsigned round() const noexcept { return round_; }
    /// Returns whether the operation continues with this reply. Otherwise it has ended, or begins again.
    [[nodiscard]] bool accepts(const reply& reply, unsigned round)
    {
        if (has_ended_ || round_ != round)
            return false;
        // A request that the driver cannot send at all has a code of the driver, and would fail again.
        if ((reply.outcome == status::unsent && reply.code == 0) || reply.outcome == status::ended) {
            restart();
            return false;
        }
        if (reply.outcome == status::batch_aborted) {
            batching_ = batching::forbidden;
            start();
            return false;
        }
        return true;
    }
    /// Whether the requests may share a transaction with others.
    [[nodiscard]] batching get_batching() const noexcept { return batching_; }
    /// Begins again as soon as requests can be sent, but not after the deadline.
    void restart()
    {
        ++round_;
        owner_->queue().requeue(*this);
    }
    /// Ends the operation. Called before the outcome is reported.
    void end()
    {
        has_ended_ = true;
        owner_->queue().on_ended(*this);
    }
    void end_failed(const reply& reply)
    {
        const operation_ptr kept(this);
        end();
        failed(reply.outcome == status::unanswered ? delivery::unanswered : delivery::answered, failure_of(reply));
    }

    const std::shared_ptr<operation_client> owner_;

private:
    unsigned round_ = 0;
    batching batching_ = batching::allowed;
    bool has_ended_ = false;
};

} // namespace colock::inline v0::zookeeper::detail
