// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/client_operation.hpp"

#include "redis/failures.hpp"

namespace colock::inline v0::redis::detail {

void client_operation::end(delivery status, failure_ptr failure)
{
    // The counter was not raised, so the next operation that takes a fence of this slot has to do it.
    const bool is_raised = status == delivery::answered && !replies.empty() && replies.front().is(reply::kind::number);
    if (raises_counter && slot) {
        owner_->anchor().note_answer(is_raised);
        if (!is_raised)
            owner_->anchor().forget(*slot);
    }
    const bool may_follow = status == delivery::answered && !is_pinned && !replies.empty() && replies.back().is_error();
    if (may_follow && owner_->follow_redirection(*this))
        return;
    // Behind ASKING, the message was published at the node that takes the slot over. The waiters are subscribed at the
    // owner of the slot, which does not forward the message.
    if (const auto key = published_key(); asks && status == delivery::answered && !key.empty() && !may_follow)
        owner_->publish(key);
    complete(status, std::move(failure));
}

void client_operation::send_to(operation_client& owner, bool behind_asking)
{
    replies.clear();
    fence = {};
    asks = behind_asking;
    owner_ = &owner;
}

void client_operation::route_by(std::string_view key)
{
    if (config().cluster())
        slot = slot_of(lock_key(config(), key).text());
}

void client_operation::resubmit()
{
    replies.clear();
    fence = {};
    redirections = 0;
    owner_->submit(operation_ptr(this));
}

void client_operation::push_anchor(boost::redis::request& request, std::size_t count) const
{
    auto& anchor = owner_->anchor();
    // An operation that needs a fence from the script does not send it again.
    const auto form = count > 0 ? script::form::whole : config().cluster() ? anchor.form() : script::form::digest;
    anchor.push(request, form, config().fence_key(slot), count);
}

bool client_operation::misses_fence() const
{
    return config().cluster() && (fence.is(reply::kind::none) || is_redirection(fence));
}

} // namespace colock::inline v0::redis::detail
