// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/operations.hpp"

#include "zookeeper/operations/claim_state.hpp"
#include "zookeeper/operations/node_data.hpp"
#include "zookeeper/operations/request_operation.hpp"

#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

class extend_operation final : public request_operation
{
public:
    extend_operation(
        operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
        : request_operation(owner), claim_(std::move(claim)), ttl_(ttl), done_(std::move(done))
    {
    }

private:
    void begin() override
    {
        const auto* const state = find_state(*claim_);
        if (!state || !state->granted || state->session != sessions().number()) {
            end();
            done_({extend_status::not_held, nullptr});
            return;
        }
        // Nodes of other layouts contain no data of this library. The write then only proves that the node exists.
        if (auto* const sender = get_requests())
            sender->write(state->node, config().standard() ? format_node_data(*claim_, ttl_) : std::string(),
                then(&extend_operation::on_written));
    }

    void on_written(const reply& reply)
    {
        if (!reply.ok() && reply.outcome != status::no_node) {
            end_failed(reply);
            return;
        }
        // The requests of one session are carried out in order, so no earlier request can still take effect.
        claim_->clear_late_ttl();
        end();
        done_({reply.ok() ? extend_status::extended : extend_status::not_held, nullptr});
    }

    void failed(delivery, failure_ptr failure) override { done_({extend_status::failed, std::move(failure)}); }

    const claim_ptr claim_;
    const std::chrono::milliseconds ttl_;
    completion<extend_outcome> done_;
};

} // namespace

operation_ptr make_extend(
    operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
{
    return operation_ptr(new extend_operation(owner, std::move(claim), ttl, std::move(done)));
}

} // namespace colock::inline v0::zookeeper::detail
