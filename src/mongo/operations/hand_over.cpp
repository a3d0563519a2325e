// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/operations/claim_state.hpp"
#include "mongo/operations/command_operation.hpp"
#include "mongo/templates/lock_view.hpp"

#include <chrono>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

/// Delay of the next create. The lock may be free or held by another claim, which only a create can show.
constexpr auto create_delay = std::chrono::milliseconds(1);

class hand_over_operation final : public command_operation
{
public:
    hand_over_operation(operation_client& owner, claim_ptr held, claim_ptr next, completion<hand_over_outcome> done)
        : command_operation(owner), held_(std::move(held)), next_(std::move(next)), done_(std::move(done)),
          owner_data_(to_document(next_->owner()))
    {
    }

private:
    void begin() override
    {
        request_expiry_ = request_expiry();
        const auto from = held_->token().hex();
        const auto to = next_->token().hex();
        const auto& forms = commands::get().hand_over;
        ask((next_->ttl().count() == 0 ? forms.without_ttl : forms.with_ttl)
                .filled({{"c", collection()}, {"k", bytes{held_->key()}}, {"t", std::string_view(from)},
                    {"u", std::string_view(to)}, {"x", ttl_value(next_->ttl())}, {"l", request_expiry_},
                    {"o", &owner_data_}, {"m", write_concern_timeout()}}),
            &hand_over_operation::answered);
    }

    void answered(const answer& result)
    {
        const auto view = lock_view::of_answer(result.reply);
        if (!view.exists()) {
            confirm(&hand_over_operation::was_not_held);
            return;
        }
        const auto& holder = view.exclusive();
        // The command has set the request number to 0 if the previous holder still held the lock.
        const auto released = holder.request == 0 ? release_status::released : release_status::not_held;
        if (holder.token == next_->token().hex()) {
            if (auto* const state = find_state(*next_)) {
                state->granted = true;
                state->is_waiting_writer = false;
                state->source.reset();
            }
            finish(released, create_outcome::granted(static_cast<std::uint64_t>(holder.fence)));
        } else {
            finish(released, create_outcome::busy(create_delay));
        }
    }

    void was_not_held(const answer&) { finish(release_status::not_held, create_outcome::busy(create_delay)); }

    void finish(release_status released, create_outcome created)
    {
        if (auto* const state = find_state(*held_))
            state->granted = false;
        if (created.status == create_status::busy)
            state_of(*next_).granted = false;
        end();
        done_({{released, nullptr}, std::move(created)});
    }

    void failed(delivery request_state, failure_ptr failure) override
    {
        if (request_state == delivery::unanswered)
            state_of(*next_).mark_in_doubt(request_expiry_);
        done_({{release_status::failed, failure}, create_outcome::failed(failure)});
    }

    const claim_ptr held_;
    const claim_ptr next_;
    completion<hand_over_outcome> done_;
    const document owner_data_;
    std::int64_t request_expiry_ = 0;
};

} // namespace

operation_ptr make_hand_over(
    operation_client& owner, claim_ptr held, claim_ptr next, completion<hand_over_outcome> done)
{
    return operation_ptr(new hand_over_operation(owner, std::move(held), std::move(next), std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
