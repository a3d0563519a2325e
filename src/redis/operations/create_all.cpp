// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/operations.hpp"

#include "redis/operations/claim_state.hpp"
#include "redis/operations/group_index.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/script_operation.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0::redis::detail {

namespace {

class create_all_operation final : public script_operation
{
public:
    create_all_operation(operation_client& owner, std::vector<claim_ptr> claims, completion<create_all_outcome> done)
        : script_operation(owner), claims_(std::move(claims)), done_(std::move(done))
    {
        route_by(claims_.front()->key());
        count_from(claims_.front()->operation_start());
    }

    [[nodiscard]] std::size_t fence_count() const noexcept override { return step_ == step::take ? claims_.size() : 0; }
    [[nodiscard]] bool may_anchor() const noexcept override { return step_ == step::take; }
    [[nodiscard]] bool needs_replicas() const noexcept override { return step_ == step::take; }
    [[nodiscard]] bool needs_sorted_sets() const noexcept override
    {
        return step_ == step::take && std::ranges::any_of(claims_, [this](const auto& each) {
            return detail::needs_sorted_sets(config(), *each);
        });
    }
    [[nodiscard]] bool unwanted() const noexcept override
    {
        return step_ == step::take && std::ranges::all_of(claims_, [](const auto& each) { return each->cancelled(); });
    }

private:
    enum class step : unsigned char
    {
        take,
        /// All locks are held, but their fences are not acceptable.
        raise_fences,
        /// All locks are held, but without fences. They are released before the failure is reported.
        undo,
    };

    void push(boost::redis::request& request, script::form form) override
    {
        const auto& all = owner().publishing_scripts();
        switch (step_) {
        case step::take:
            if (raises_counter)
                push_anchor(request);
            all.acquire_all.push_words(request, form, words_to_take());
            return;
        case step::raise_fences:
            push_anchor(request, claims_.size());
            return;
        case step::undo:
            (config().cluster() ? all.release_many : all.release_members)
                .push_words(request, script::form::whole, words_to_release());
            return;
        }
    }

    [[nodiscard]] std::vector<std::string> words_to_take() const
    {
        std::vector<std::string> groups;
        for (const auto& each : claims_) {
            if (writes_index(config(), *each) && std::ranges::find(groups, each->owner().group) == groups.end())
                groups.push_back(each->owner().group);
        }
        std::vector<std::string> words{std::to_string(claims_.size() + groups.size())};
        for (const auto& each : claims_)
            words.push_back(lock_key(config(), each->key()).text());
        for (const auto& each : groups)
            words.push_back(group_key(config(), each).text());
        for (const auto& each : claims_) {
            stored_value(config(), *each).append_to(words.emplace_back());
            words.push_back(std::to_string(each->ttl().count()));
            const auto group = std::ranges::find(groups, each->owner().group);
            words.push_back(std::to_string(group == groups.end() ? 0 : group - groups.begin() + 1));
        }
        return words;
    }

    [[nodiscard]] std::vector<std::string> words_to_release() const
    {
        std::vector<std::string> words{std::to_string(claims_.size())};
        for (const auto& each : claims_)
            words.push_back(lock_key(config(), each->key()).text());
        for (const auto& each : claims_) {
            token_text(*each).append_to(words.emplace_back());
            if (!config().cluster())
                words.push_back(group_key(config(), each->owner().group).text());
        }
        return words;
    }

    void answered() override
    {
        switch (step_) {
        case step::take:
            taken(replies[raises_counter ? 1 : 0]);
            return;
        case step::raise_fences:
            if (replies[0].is(reply::kind::number) && accept_fences(replies[0].number))
                granted(replies[0].number);
            else
                undo(refusal(replies[0]));
            return;
        case step::undo:
            if (!replies[0].is(reply::kind::array)) {
                for (const auto& each : claims_)
                    state_of(*each).granted = true;
                finish_failed(make_failure(errc::outcome_unknown, problem_->detail));
            } else {
                finish_failed(std::move(problem_));
            }
            return;
        }
    }

    void taken(const reply& answer)
    {
        if (!answer.is(reply::kind::array))
            not_taken(answer);
        else if (answer.at(0).number != 1)
            refused(answer);
        else if (unconfirmed)
            undo(unconfirmed);
        else if (fence.is(reply::kind::number) && accept_fences(fence.number))
            granted(fence.number);
        else if (!fence.is(reply::kind::number) && !misses_fence())
            undo(refusal(fence));
        else
            continue_with(step::raise_fences);
    }

    void not_taken(const reply& answer)
    {
        const bool is_moving = config().cluster() && answer.is_error() && error_word(answer.text) == "TRYAGAIN";
        if (!is_moving) {
            finish_failed(refusal(answer));
            return;
        }
        finish_failed(make_failure(errc::unsupported, "the slot of the keys is moving"));
    }

    /// \param last the highest of the fences. The fences are consecutive, one for each claim.
    [[nodiscard]] bool accept_fences(std::int64_t last) noexcept
    {
        return owner().anchor().accept(last - static_cast<std::int64_t>(claims_.size())) &&
               owner().anchor().accept(last);
    }

    void granted(std::int64_t last)
    {
        create_all_outcome outcome{.status = create_status::granted};
        auto fence = last - static_cast<std::int64_t>(claims_.size());
        for (const auto& each : claims_) {
            outcome.fences.push_back(static_cast<std::uint64_t>(++fence));
            if (auto* const state = find_state(*each)) {
                state->granted = true;
                state->source.reset();
                note_answer(owner(), *each, sent_on);
            }
        }
        done_(std::move(outcome));
    }

    /// Only the claim that was refused is known to hold nothing. The reply says nothing about the others, so their
    /// state and their unsettled requests stay.
    void refused(const reply& answer)
    {
        const auto index = static_cast<std::size_t>(answer.at(1).number - 1);
        if (index >= claims_.size()) {
            finish_failed(refusal(answer));
            return;
        }
        leave_groups();
        claim& busy_claim = *claims_[index];
        auto& state = state_of(busy_claim);
        state.granted = false;
        note_answer(owner(), busy_claim, sent_on);
        done_({.which = index, .refusal = busy(answer.at(2), answer.at(3))});
    }

    void failed(delivery status, failure_ptr failure) override
    {
        const bool holds = step_ != step::take;
        if (status == delivery::unanswered || holds) {
            for (const auto& each : claims_) {
                auto& state = state_of(*each);
                state.granted = state.granted || holds;
                if (status != delivery::unanswered)
                    continue;
                state.creates.add(sent_on);
                if (step_ == step::undo)
                    each->mark_release_in_doubt();
            }
            if (failure->code != errc::outcome_unknown)
                failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        }
        finish_failed(std::move(failure));
    }

    void undo(failure_ptr reason)
    {
        problem_ = std::move(reason);
        continue_with(step::undo);
    }
    void continue_with(step next)
    {
        step_ = next;
        resubmit();
    }
    void leave_groups()
    {
        for (const auto& each : claims_)
            leave_group_if_without_ttl(owner(), *each);
    }
    void finish_failed(failure_ptr failure)
    {
        if (failure->code != errc::outcome_unknown)
            leave_groups();
        done_({.status = create_status::failed, .refusal = create_outcome::failed(std::move(failure))});
    }

    const std::vector<claim_ptr> claims_;
    completion<create_all_outcome> done_;
    failure_ptr problem_;
    step step_ = step::take;
};

} // namespace

operation_ptr make_create_all(
    operation_client& owner, std::vector<claim_ptr> claims, completion<create_all_outcome> done)
{
    operation_ptr create(new create_all_operation(owner, claims, std::move(done)));
    return enter_before(owner, claims, std::move(create));
}

} // namespace colock::inline v0::redis::detail
