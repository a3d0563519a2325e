// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/operations.hpp"

#include "redis/operations/claim_state.hpp"
#include "redis/operations/group_index.hpp"
#include "redis/operations/names.hpp"
#include "redis/operations/script_operation.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace colock::inline v0::redis::detail {

std::string make_ticket(const settings& config, const claim& held)
{
    std::string ticket;
    // A reader is found by its whole stored value.
    if (held.mode() == lock_mode::shared)
        stored_value(config, held).append_to(ticket);
    else
        token_text(held).append_to(ticket);
    return ticket;
}

bool may_be_ticket(std::string_view ticket, lock_mode mode) noexcept
{
    const bool is_reader = ticket.starts_with('s');
    if (is_reader)
        ticket.remove_prefix(1);
    const bool has_token = ticket.size() >= token_text::size() &&
                           ticket.substr(0, token_text::size()).find_first_not_of("0123456789abcdef") == ticket.npos;
    return has_token && is_reader == (mode == lock_mode::shared) && (is_reader || ticket.size() == token_text::size());
}

namespace {

class adopt_operation final : public script_operation
{
public:
    adopt_operation(operation_client& owner, std::string ticket, claim_ptr claim, completion<create_outcome> done)
        : script_operation(owner), ticket_(std::move(ticket)), claim_(std::move(claim)), done_(std::move(done))
    {
        route_by(claim_->key());
        count_from(claim_->operation_start());
    }

    [[nodiscard]] std::size_t fence_count() const noexcept override
    {
        return step_ == step::take && !config().plain() ? 1 : 0;
    }
    [[nodiscard]] bool may_anchor() const noexcept override { return fence_count() > 0; }
    [[nodiscard]] bool needs_replicas() const noexcept override { return step_ == step::take; }
    [[nodiscard]] bool needs_sorted_sets() const noexcept override
    {
        return step_ == step::take && detail::needs_sorted_sets(config(), *claim_);
    }
    [[nodiscard]] bool unwanted() const noexcept override { return step_ == step::take && claim_->cancelled(); }

private:
    [[nodiscard]] std::string_view published_key() const noexcept override { return claim_->key(); }

    enum class step : unsigned char
    {
        take,
        /// The lock is held, but its fence is not acceptable.
        raise_fence,
    };

    void push(boost::redis::request& request, script::form form) override
    {
        if (step_ == step::raise_fence) {
            push_anchor(request, 1);
            return;
        }
        if (raises_counter)
            push_anchor(request);
        const auto& all = owner().publishing_scripts();
        const auto key = lock_key(config(), claim_->key());
        const auto ttl = claim_->ttl().count();
        const stored_value value(config(), *claim_);
        const auto& adopt = claim_->mode() == lock_mode::exclusive ? all.adopt : all.adopt_shared;
        if (writes_index(config(), *claim_))
            adopt.push(request, form, 2, key, group_key(config(), claim_->owner().group), ticket_, value, ttl);
        else
            adopt.push(request, form, 1, key, ticket_, value, ttl);
    }

    void answered() override
    {
        if (step_ == step::take)
            taken(replies[raises_counter ? 1 : 0]);
        else if (replies[0].is(reply::kind::number) && owner().anchor().accept(replies[0].number))
            granted(replies[0].number);
        else
            held_in_doubt(*refusal(replies[0]));
    }

    void taken(const reply& answer)
    {
        if (!answer.is(reply::kind::number)) {
            done_(create_outcome::failed(refusal(answer)));
        } else if (answer.number == 0) {
            state_of(*claim_).granted = false;
            note_answer(owner(), *claim_, sent_on);
            leave_group_if_without_ttl(owner(), *claim_);
            done_(create_outcome::busy());
        } else if (unconfirmed) {
            held_in_doubt(*unconfirmed);
        } else if (config().plain()) {
            granted(0);
        } else if (fence.is(reply::kind::number) && owner().anchor().accept(fence.number)) {
            granted(fence.number);
        } else if (!fence.is(reply::kind::number) && !misses_fence()) {
            held_in_doubt(*refusal(fence));
        } else {
            step_ = step::raise_fence;
            resubmit();
        }
    }

    void granted(std::int64_t fence)
    {
        if (auto* const state = find_state(*claim_)) {
            state->granted = true;
            note_answer(owner(), *claim_, sent_on);
        }
        if (has_separate_index(config(), *claim_)) {
            const auto old_token = ticket_.substr(claim_->mode() == lock_mode::shared ? 1 : 0, token_text::size());
            leave_group(owner(), claim_->owner().group, {old_token + lock_key(config(), claim_->key()).text()});
        }
        done_(create_outcome::granted(static_cast<std::uint64_t>(fence)));
    }

    /// Keeps the lock, because a release would lose the work of the process that has passed it on. The core tries again
    /// or gives up.
    void held_in_doubt(const failure& reason)
    {
        state_of(*claim_).granted = true;
        done_(create_outcome::failed(make_failure(errc::outcome_unknown, reason.detail)));
    }

    void failed(delivery status, failure_ptr failure) override
    {
        const bool holds = step_ == step::raise_fence;
        if (status == delivery::unanswered || holds) {
            auto& state = state_of(*claim_);
            state.granted = state.granted || holds;
            if (status == delivery::unanswered)
                state.creates.add(sent_on);
            if (failure->code != errc::outcome_unknown)
                failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        }
        done_(create_outcome::failed(std::move(failure)));
    }

    const std::string ticket_;
    const claim_ptr claim_;
    completion<create_outcome> done_;
    step step_ = step::take;
};

} // namespace

operation_ptr make_adopt(operation_client& owner, std::string ticket, claim_ptr claim, completion<create_outcome> done)
{
    return enter_before(
        owner, {&claim, 1}, operation_ptr(new adopt_operation(owner, std::move(ticket), claim, std::move(done))));
}

} // namespace colock::inline v0::redis::detail
