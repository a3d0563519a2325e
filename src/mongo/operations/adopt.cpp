// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/operations/operations.hpp"

#include "mongo/operations/claim_state.hpp"
#include "mongo/operations/command_operation.hpp"
#include "mongo/templates/lock_view.hpp"

#include <string>
#include <utility>

namespace colock::inline v0::mongo::detail {

namespace {

class adopt_operation final : public command_operation
{
public:
    adopt_operation(operation_client& owner, std::string token, claim_ptr claim, completion<create_outcome> done)
        : command_operation(owner), held_(std::move(token)), claim_(std::move(claim)), token_(claim_->token().hex()),
          done_(std::move(done)), owner_data_(to_document(claim_->owner()))
    {
    }

    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled(); }

private:
    void begin() override
    {
        number_ = owner_->next_request();
        request_expiry_ = request_expiry();
        const auto& all = commands::get();
        const auto& forms = claim_->mode() == lock_mode::shared ? all.adopt_shared : all.adopt_exclusive;
        ask((claim_->ttl().count() == 0 ? forms.without_ttl : forms.with_ttl)
                .filled({{"c", collection()}, {"k", bytes{claim_->key()}}, {"t", std::string_view(held_)},
                    {"u", std::string_view(token_)}, {"x", ttl_value(claim_->ttl())}, {"l", request_expiry_},
                    {"e", number_}, {"o", &owner_data_}, {"m", write_concern_timeout()}}),
            &adopt_operation::answered);
    }

    void answered(const answer& result)
    {
        const auto view = lock_view::of_answer(result.reply);
        const auto* const adopted = view.find(token_);
        if (adopted && adopted->request == number_) {
            if (auto* const state = find_state(*claim_))
                state->granted = true;
            const auto fence = static_cast<std::uint64_t>(adopted->fence);
            end();
            done_(create_outcome::granted(fence));
            return;
        }
        if (view.is_out_of_fences()) {
            end_failed(delivery::answered, out_of_fences());
            return;
        }
        // The request was too late, or the estimate of the server's clock is wrong.
        const auto* const held = adopted ? adopted : view.find(held_);
        if (!held || held->expires <= time_of(result).earliest)
            confirm(&adopt_operation::is_not_held);
        else if (!begin_with_new_clock())
            end_failed(delivery::answered, too_late());
    }

    void is_not_held(const answer&)
    {
        state_of(*claim_).granted = false;
        end();
        done_(create_outcome::busy());
    }

    void failed(delivery request_state, failure_ptr failure) override
    {
        if (request_state == delivery::unanswered)
            state_of(*claim_).mark_in_doubt(request_expiry_);
        done_(create_outcome::failed(std::move(failure)));
    }

    const std::string held_;
    const claim_ptr claim_;
    const std::string token_;
    completion<create_outcome> done_;
    const document owner_data_;
    std::int64_t number_ = 0;
    std::int64_t request_expiry_ = 0;
};

} // namespace

operation_ptr make_adopt(operation_client& owner, std::string token, claim_ptr claim, completion<create_outcome> done)
{
    return operation_ptr(new adopt_operation(owner, std::move(token), std::move(claim), std::move(done)));
}

} // namespace colock::inline v0::mongo::detail
