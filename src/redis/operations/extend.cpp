// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/operations.hpp"

#include "redis/operations/claim_state.hpp"
#include "redis/operations/group_index.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/script_operation.hpp"

#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

class extend_operation final : public script_operation
{
public:
    extend_operation(
        operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
        : script_operation(owner), claim_(std::move(claim)), ttl_(ttl), done_(std::move(done))
    {
        route_by(claim_->key());
    }

    [[nodiscard]] bool needs_replicas() const noexcept override { return true; }

private:
    [[nodiscard]] std::string_view published_key() const noexcept override { return claim_->key(); }

    void push(boost::redis::request& request, script::form form) override
    {
        const auto key = lock_key(config(), claim_->key());
        const auto index = group_key(config(), claim_->owner().group);
        const bool grouped = writes_index(config(), *claim_);
        const auto& all = owner().publishing_scripts();
        if (claim_->mode() == lock_mode::shared && grouped)
            all.extend_shared.push(request, form, 2, key, index, stored_value(config(), *claim_), ttl_.count());
        else if (claim_->mode() == lock_mode::shared)
            all.extend_shared.push(request, form, 1, key, stored_value(config(), *claim_), ttl_.count());
        else if (grouped)
            all.extend.push(request, form, 2, key, index, token_text(*claim_), ttl_.count());
        else
            all.extend.push(request, form, 1, key, token_text(*claim_), ttl_.count());
    }
    void answered() override
    {
        const bool extended = replies[0].is(reply::kind::number) && replies[0].number == 1;
        // If the create had no reply, this extension may be the first proof that the lock is held.
        if (auto* const state = find_state(*claim_))
            state->granted = state->granted || extended;
        note_answer(owner(), *claim_, sent_on);
        if (extended && unconfirmed)
            done_({extend_status::failed, make_failure(errc::outcome_unknown, unconfirmed->detail)});
        else if (replies[0].is(reply::kind::number))
            done_({extended ? extend_status::extended : extend_status::not_held, nullptr});
        else
            done_({extend_status::failed, refusal(replies[0])});
    }
    void failed(delivery status, failure_ptr failure) override
    {
        if (status == delivery::unanswered) {
            auto& state = state_of(*claim_);
            state.granted = true;
            state.extends.add(sent_on);
        }
        done_({extend_status::failed, std::move(failure)});
    }

    const claim_ptr claim_;
    const std::chrono::milliseconds ttl_;
    completion<extend_outcome> done_;
};

} // namespace

operation_ptr make_extend(
    operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
{
    return enter_before(
        owner, {&claim, 1}, operation_ptr(new extend_operation(owner, claim, ttl, std::move(done))), ttl);
}

} // namespace colock::inline v0::redis::detail
