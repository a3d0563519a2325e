// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/operations.hpp"

#include "redis/operations/claim_state.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/script_operation.hpp"

#include <string>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

class hand_over_operation final : public script_operation
{
public:
    hand_over_operation(operation_client& owner, two_step_hand_over fallback, claim_ptr held, claim_ptr next,
        completion<hand_over_outcome> done)
        : script_operation(owner), fallback_(std::move(fallback)), held_(std::move(held)), next_(std::move(next)),
          done_(std::move(done))
    {
        route_by(next_->key());
    }

    [[nodiscard]] std::size_t fence_count() const noexcept override { return 1; }
    [[nodiscard]] bool may_anchor() const noexcept override { return true; }
    [[nodiscard]] bool needs_replicas() const noexcept override { return true; }

private:
    [[nodiscard]] batched_script* add_to_batch(batched_scripts& scripts) override
    {
        if (raises_counter)
            return nullptr;
        scripts.hand_overs.add(form(), lock_key(config(), next_->key()), token_text(*held_),
            stored_value(config(), *next_), std::to_string(next_->ttl().count()));
        return &scripts.hand_overs;
    }

    void push(boost::redis::request& request, script::form form) override
    {
        if (raises_counter)
            push_anchor(request);
        scripts::get().hand_over.push(request, form, 1, lock_key(config(), next_->key()), token_text(*held_),
            stored_value(config(), *next_), next_->ttl().count());
    }

    void answered() override
    {
        const reply& script_reply = replies[raises_counter ? 1 : 0];
        const reply& answer = script_reply.is(reply::kind::array) ? script_reply.at(0) : script_reply;
        // The server has refused the script. The first of the two steps is sent now.
        if (!answer.is(reply::kind::number)) {
            held_->set_operation_start(lease_clock::now());
            fallback_.start(*fallback_.backend, std::move(held_), std::move(next_), std::move(done_));
            return;
        }
        const bool was_held = answer.number != 0;
        if (auto* const state = find_state(*held_))
            state->granted = false;
        if (was_held && !unconfirmed && fence.is(reply::kind::number) && owner().anchor().accept(fence.number)) {
            if (auto* const state = find_state(*next_)) {
                state->granted = true;
                state->source.reset();
                note_answer(owner(), *next_, sent_on);
            }
            done_({{}, create_outcome::granted(static_cast<std::uint64_t>(fence.number))});
            return;
        }
        // A lock that replicas have not confirmed is granted again, or released.
        const release_outcome released{was_held ? release_status::released : release_status::not_held, nullptr};
        auto created = [released, done = std::move(done_)](
                           create_outcome outcome) mutable { done({released, std::move(outcome)}); };
        owner().submit(make_create(owner(), std::move(next_), std::move(created),
            was_held && !unconfirmed ? create_step::raise_fence : create_step::by_script));
    }

    void failed(delivery status, failure_ptr failure) override
    {
        if (status == delivery::unanswered)
            state_of(*next_).creates.add(sent_on);
        done_({{release_status::failed, failure}, create_outcome::failed(failure)});
    }

    const two_step_hand_over fallback_;
    claim_ptr held_;
    claim_ptr next_;
    completion<hand_over_outcome> done_;
};

} // namespace

operation_ptr make_hand_over(operation_client& owner, two_step_hand_over fallback, claim_ptr held, claim_ptr next,
    completion<hand_over_outcome> done)
{
    return operation_ptr(
        new hand_over_operation(owner, std::move(fallback), std::move(held), std::move(next), std::move(done)));
}

} // namespace colock::inline v0::redis::detail
