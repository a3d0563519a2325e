// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/request_operation.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

class valid_operation final : public request_operation
{
public:
    valid_operation(operation_client& owner, claim_ptr claim, completion<valid_outcome> done)
        : request_operation(owner), claim_(std::move(claim)), done_(std::move(done))
    {
    }

private:
    void begin() override
    {
        const auto* const state = find_state(*claim_);
        if (!state || !state->granted || state->session != sessions().number()) {
            end();
            done_({false, nullptr});
            return;
        }
        auto* const sender = get_requests();
        if (!sender)
            return;
        sender->sync(state->node, then(&valid_operation::on_synced));
        sender->exists(state->node, then(&valid_operation::on_reply));
    }

    void on_synced(const reply& reply) { check_reply(reply); }
    void on_reply(const reply& reply)
    {
        if (!check_reply(reply))
            return;
        const bool is_ours = reply.ok() && reply.stat.ephemeral_owner == sessions().id();
        end();
        done_({is_ours, nullptr});
    }

    /// A missing node is an answer, too. Ends the operation and returns false if the server has not answered.
    bool check_reply(const reply& reply)
    {
        if (reply.ok() || reply.outcome == status::no_node)
            return true;
        end_failed(reply);
        return false;
    }
    void failed(delivery, failure_ptr failure) override { done_({false, std::move(failure)}); }

    const claim_ptr claim_;
    completion<valid_outcome> done_;
};

} // namespace

operation_ptr make_is_valid(operation_client& owner, claim_ptr claim, completion<valid_outcome> done)
{
    return operation_ptr(new valid_operation(owner, std::move(claim), std::move(done)));
}

} // namespace colock::inline v0::zookeeper::detail
