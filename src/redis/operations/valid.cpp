// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/operations.hpp"

#include "redis/operations/names.hpp"
#include "redis/operations/script_operation.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

class valid_operation final : public script_operation
{
public:
    valid_operation(operation_client& owner, claim_ptr claim, completion<valid_outcome> done)
        : script_operation(owner), claim_(std::move(claim)), done_(std::move(done))
    {
        route_by(claim_->key());
    }

private:
    void push(boost::redis::request& request, script::form form) override
    {
        const auto key = lock_key(config(), claim_->key());
        if (claim_->mode() == lock_mode::shared)
            scripts::get().valid_shared.push(request, form, 1, key, stored_value(config(), *claim_));
        else
            scripts::get().valid.push(request, form, 1, key, token_text(*claim_));
    }
    void answered() override
    {
        if (replies[0].is(reply::kind::number))
            done_({replies[0].number == 1, nullptr});
        else
            done_({false, refusal(replies[0])});
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

} // namespace colock::inline v0::redis::detail
