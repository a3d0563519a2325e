// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/operations.hpp"

#include "redis/failures.hpp"
#include "redis/operations/claim_state.hpp"
#include "redis/operations/client_operation.hpp"
#include "redis/operations/group_index.hpp"
#include "redis/operations/names.hpp"
#include "redis/scripts/scripts.hpp"
#include "remote/adapter/stored_owner.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::redis::detail {

namespace {

/// Returns the remaining time of the holder. Another program may have stored any time, so it is clamped.
lease_clock::duration remaining_of(const reply& milliseconds_left)
{
    using std::chrono::milliseconds;
    constexpr auto longest = std::chrono::duration_cast<milliseconds>(lease_clock::duration::max()).count();
    // In its last millisecond a key has 0 ms left, but 0 means "unknown" here.
    return milliseconds(
        milliseconds_left.number >= 0 ? std::clamp<std::int64_t>(milliseconds_left.number, 1, longest) : 0);
}

} // namespace

create_outcome busy(const reply& milliseconds_left, const reply& owner)
{
    auto holder = remote::parse_stored_owner(owner.text).value_or(remote::stored_owner());
    return create_outcome::busy(
        remaining_of(milliseconds_left), std::move(holder.owner.owner), std::move(holder.owner.host));
}

namespace {

class create_operation final : public client_operation
{
public:
    using step = create_step;

    create_operation(operation_client& owner, claim_ptr claim, completion<create_outcome> done, step first)
        : client_operation(owner), claim_(std::move(claim)), done_(std::move(done)),
          writes_index_(writes_index(owner.config(), *claim_)), step_(first)
    {
        route_by(claim_->key());
        count_from(claim_->operation_start());
    }

    void write(boost::redis::request& request) override
    {
        switch (step_) {
        case step::by_commands:
            write_commands(request);
            return;
        case step::by_script:
            write_script(request, script::form::digest);
            return;
        case step::by_whole_script:
            write_script(request, script::form::whole);
            return;
        case step::raise_fence:
            push_anchor(request, 1);
            return;
        case step::undo:
            push_release(request, script::form::whole, owner(), *claim_);
            return;
        }
    }

    [[nodiscard]] bool unwanted() const noexcept override { return claim_->cancelled() && !holds(); }

    [[nodiscard]] bool needs_sorted_sets() const noexcept override
    {
        return !holds() && detail::needs_sorted_sets(config(), *claim_);
    }
    [[nodiscard]] std::size_t fence_count() const noexcept override { return holds() || config().plain() ? 0 : 1; }
    [[nodiscard]] bool may_anchor() const noexcept override { return fence_count() > 0; }
    [[nodiscard]] bool needs_replicas() const noexcept override { return !holds(); }

    void complete(delivery status, failure_ptr failure) override
    {
        if (status == delivery::answered) {
            answered();
            return;
        }
        if (status == delivery::unanswered || holds()) {
            auto& state = state_of(*claim_);
            state.granted = state.granted || holds();
            if (status == delivery::unanswered) {
                state.creates.add(sent_on);
                // The lost reply may have said that an intent was stored.
                const bool by_script = step_ == step::by_script || step_ == step::by_whole_script;
                state.intent = state.intent || (by_script && claim_->keeps_place());
                if (step_ == step::undo)
                    claim_->mark_release_in_doubt();
            }
            if (failure->code != errc::outcome_unknown)
                failure = make_failure(errc::outcome_unknown, failure->detail, failure->cause);
        }
        end_failed(std::move(failure));
    }

private:
    /// True if the server holds the lock for this claim, as far as the replies show.
    [[nodiscard]] bool holds() const noexcept { return step_ == step::raise_fence || step_ == step::undo; }
    [[nodiscard]] key_name key() const noexcept { return lock_key(config(), claim_->key()); }
    [[nodiscard]] key_name group() const noexcept { return group_key(config(), claim_->owner().group); }
    [[nodiscard]] stored_value value() const { return {config(), *claim_}; }

    [[nodiscard]] std::string_view published_key() const noexcept override
    {
        return step_ == step::undo ? std::string_view(claim_->key()) : std::string_view();
    }

    void write_commands(boost::redis::request& request)
    {
        if (raises_counter)
            push_anchor(request);
        if (const auto ttl = claim_->ttl().count(); ttl > 0)
            request.push("SET", key(), value(), "NX", "PX", ttl);
        else
            request.push("SET", key(), value(), "NX");
    }

    void write_script(boost::redis::request& request, script::form form)
    {
        if (raises_counter)
            push_anchor(request);
        const auto& all = scripts::get();
        const auto ttl = claim_->ttl().count();
        const bool is_shared = claim_->mode() == lock_mode::shared;
        const auto& script = is_shared ? all.acquire_shared : all.acquire;
        const auto last = is_shared ? claim_->max_holders() : claim_->keeps_place() ? intent_ms : 0;
        if (config().plain())
            all.acquire_plain.push(request, form, 1, key(), value(), ttl);
        else if (writes_index_)
            script.push(request, form, 2, key(), group(), value(), ttl, last);
        else
            script.push(request, form, 1, key(), value(), ttl, last);
    }

    void continue_with(step next)
    {
        step_ = next;
        resubmit();
    }

    void answered()
    {
        switch (step_) {
        case step::by_commands:
            commands_answered();
            return;
        case step::by_script:
        case step::by_whole_script:
            script_answered();
            return;
        case step::raise_fence:
            if (replies[0].is(reply::kind::number) && owner().anchor().accept(replies[0].number)) {
                granted(replies[0].number);
            } else {
                problem_ = refusal(replies[0]);
                continue_with(step::undo);
            }
            return;
        case step::undo:
            if (!replies[0].is(reply::kind::number)) {
                state_of(*claim_).granted = true;
                end_failed(make_failure(errc::outcome_unknown, problem_->detail));
            } else {
                end_failed(problem_);
            }
            return;
        }
    }

    void commands_answered()
    {
        const reply& set = replies[raises_counter ? 1 : 0];
        if (set.is_error())
            end_failed(refusal(set));
        else if (set.is(reply::kind::text))
            granted_by_server();
        else
            continue_with(step::by_script);
    }

    void script_answered()
    {
        const reply& answer = replies[raises_counter ? 1 : 0];
        if (step_ == step::by_script && is_noscript(answer)) {
            continue_with(step::by_whole_script);
            return;
        }
        if (!answer.is(reply::kind::array)) {
            end_failed(refusal(answer));
            return;
        }
        if (answer.at(0).number == 1) {
            granted_by_server();
            return;
        }
        auto& state = state_of(*claim_);
        state.granted = false;
        state.asked = asks;
        if (answer.items.size() > 3)
            state.intent = true;
        note_answer(owner(), *claim_, sent_on);
        done_(busy(answer.at(1), answer.at(2)));
    }

    /// A claim that is busy keeps its entry in the index of its group, because it may wait.
    void end_failed(failure_ptr failure)
    {
        const auto* const state = find_state(*claim_);
        if (failure->code != errc::outcome_unknown && !(state && state->intent))
            leave_group_if_without_ttl(owner(), *claim_);
        done_(create_outcome::failed(std::move(failure)));
    }

    void granted_by_server()
    {
        if (unconfirmed) {
            problem_ = unconfirmed;
            continue_with(step::undo);
        } else if (config().plain() || fence.is(reply::kind::number)) {
            granted(fence.number);
        } else if (misses_fence()) {
            continue_with(step::raise_fence);
        } else {
            problem_ = refusal(fence);
            continue_with(step::undo);
        }
    }

    void granted(std::int64_t fence)
    {
        if (!config().plain() && !owner().anchor().accept(fence)) {
            continue_with(step::raise_fence);
            return;
        }
        if (auto* const state = find_state(*claim_)) {
            state->granted = true;
            state->intent = false;
            state->source.reset();
            note_answer(owner(), *claim_, sent_on);
        }
        done_(create_outcome::granted(static_cast<std::uint64_t>(fence)));
    }

    const claim_ptr claim_;
    completion<create_outcome> done_;
    failure_ptr problem_;
    const bool writes_index_;
    step step_;
};

} // namespace

operation_ptr make_create(operation_client& owner, claim_ptr claim, completion<create_outcome> done, create_step first)
{
    return enter_before(owner, {&claim, 1}, operation_ptr(new create_operation(owner, claim, std::move(done), first)));
}

} // namespace colock::inline v0::redis::detail
