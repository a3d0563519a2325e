// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/operations.hpp"

#include "redis/operations/claim_state.hpp"
#include "redis/operations/group_index.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/script_operation.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

failure_ptr in_doubt()
{
    return make_failure(errc::outcome_unknown,
        "an earlier request of this acquisition was lost with its connection, and cannot be proven to be dead");
}

/// Release and abandon. They differ only in what they promise to the caller.
class release_operation final : public script_operation
{
public:
    release_operation(
        operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee)
        : script_operation(owner), claim_(std::move(claim)), done_(std::move(done)), guarantee_(guarantee)
    {
        route_by(claim_->key());
        count_from(claim_->operation_start());
    }

private:
    [[nodiscard]] std::string_view published_key() const noexcept override { return claim_->key(); }

    void push(boost::redis::request& request, script::form form) override
    {
        const auto* const state = find_state(*claim_);
        if (claim_->mode() == lock_mode::exclusive && state && state->intent && !config().plain())
            push_withdrawal(request, form);
        else
            push_release(request, form, owner(), *claim_);
    }

    void push_withdrawal(boost::redis::request& request, script::form form)
    {
        const auto& script = owner().publishing_scripts().withdraw;
        const auto key = lock_key(config(), claim_->key());
        if (writes_index(config(), *claim_))
            script.push(request, form, 2, key, group_key(config(), claim_->owner().group), token_text(*claim_));
        else
            script.push(request, form, 1, key, token_text(*claim_));
    }

    [[nodiscard]] batched_script* add_to_batch(batched_scripts& scripts) override
    {
        const auto* const state = find_state(*claim_);
        if (claim_->mode() == lock_mode::shared || (state && state->intent && !config().plain()))
            return nullptr;
        if (writes_index(config(), *claim_)) {
            scripts.group_releases.add(form(), lock_key(config(), claim_->key()), token_text(*claim_),
                group_key(config(), claim_->owner().group));
            return &scripts.group_releases;
        }
        scripts.releases.add(form(), lock_key(config(), claim_->key()), token_text(*claim_));
        return &scripts.releases;
    }

    void answered() override
    {
        const reply& answer = replies[0];
        if (is_pinned) {
            settled_elsewhere();
            return;
        }
        if (!answer.is(reply::kind::number)) {
            done_({release_status::failed, refusal(answer)});
            return;
        }
        if (auto* const state = find_state(*claim_)) {
            note_answer(owner(), *claim_, sent_on);
            state->granted = false;
            if (answer.number >= 1)
                first_answer_ = answer.number;
            // A create that arrives late may store the intent again.
            state->intent = state->intent && !state->creates.empty();
            if (guarantee_ == release_guarantee::settled && !state->creates.empty()) {
                if (settle_elsewhere(*state))
                    return;
                done_({release_status::failed, in_doubt()});
                return;
            }
            state->source.reset();
        }
        if (has_separate_index(config(), *claim_))
            leave_group(owner(), *claim_);
        const auto receivers_and_one = std::max(answer.number, first_answer_);
        done_({receivers_and_one >= 1 ? release_status::released : release_status::not_held, nullptr,
            others_listen(receivers_and_one - 1)});
    }

    /// Sends the release to the node of a cluster that may still execute a create of this claim. After its answer,
    /// which may be a redirection, it executes none of them. The lock may have moved to another node before, so it is
    /// then released again.
    [[nodiscard]] bool settle_elsewhere(const claim_state& state)
    {
        const auto other = owner().other_client_of(state.creates.oldest());
        if (!other || state.creates.oldest() == settling_)
            return false;
        settling_ = state.creates.oldest();
        is_pinned = true;
        send_to(*other, false);
        other->enqueue(operation_ptr(this));
        return true;
    }
    void settled_elsewhere()
    {
        is_pinned = false;
        // The node may have got the slot back, and have released the lock.
        if (replies[0].is(reply::kind::number) && replies[0].number >= 1)
            first_answer_ = replies[0].number;
        note_answer(owner(), *claim_, sent_on);
        resubmit();
    }

    [[nodiscard]] bool others_listen(std::int64_t listeners) const
    {
        return listeners > 1 || (listeners == 1 && !owner().listens(lock_key(config(), claim_->key()).text()));
    }

    void failed(delivery, failure_ptr failure) override { done_({release_status::failed, std::move(failure)}); }

    const claim_ptr claim_;
    completion<release_outcome> done_;
    const release_guarantee guarantee_;
    /// The answer by which the lock was released, if the release was sent again after it.
    std::int64_t first_answer_ = 0;
    /// The connection of the last create that `settle_elsewhere` was called for.
    remote::connection_number settling_ = 0;
};

} // namespace

void push_release(boost::redis::request& request, script::form form, const operation_client& owner, const claim& held)
{
    const auto& all = owner.publishing_scripts();
    const auto& config = owner.config();
    const auto key = lock_key(config, held.key()), index = group_key(config, held.owner().group);
    const bool grouped = writes_index(config, held);
    if (held.mode() == lock_mode::exclusive && grouped)
        all.release.push(request, form, 2, key, index, token_text(held));
    else if (held.mode() == lock_mode::exclusive)
        all.release.push(request, form, 1, key, token_text(held));
    else if (grouped)
        all.release_shared.push(request, form, 2, key, index, stored_value(config, held), held.ttl().count());
    else
        all.release_shared.push(request, form, 1, key, stored_value(config, held), held.ttl().count());
}

operation_ptr make_release(
    operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee)
{
    return operation_ptr(new release_operation(owner, std::move(claim), std::move(done), guarantee));
}

} // namespace colock::inline v0::redis::detail
