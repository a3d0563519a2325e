// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// How the scripted adapter handles operations.
#include "testing/scripted_state.hpp"

#include <boost/asio/post.hpp>

namespace colock::testing {

namespace {

template <class Outcome>
Outcome failed(const failure_ptr& failure)
{
    Outcome outcome;
    if constexpr (requires { outcome.status; })
        outcome.status = decltype(outcome.status)::failed;
    if constexpr (requires { outcome.error; })
        outcome.error = failure;
    return outcome;
}

template <>
hand_over_outcome failed<hand_over_outcome>(const failure_ptr& failure)
{
    return {failed<release_outcome>(failure), failed<create_outcome>(failure)};
}

template <>
create_all_outcome failed<create_all_outcome>(const failure_ptr& failure)
{
    return {.status = create_status::failed, .refusal = failed<create_outcome>(failure)};
}

template <class Outcome>
Outcome negative()
{
    Outcome outcome;
    if constexpr (requires { decltype(outcome.status)::not_held; })
        outcome.status = decltype(outcome.status)::not_held;
    return outcome;
}

failure_ptr unknown_outcome(const char* text)
{
    return make_failure(errc::outcome_unknown, text);
}

} // namespace

step scripted_adapter::begin(operation kind, const claim_ptr& claim, std::chrono::milliseconds ttl)
{
    {
        const std::lock_guard guard(state_->mutex);
        state_->begin_operation(*claim, kind);
    }
    return begin({kind, claim->key(), claim->token(), ttl, claim->operation_start(), claim->in_doubt()});
}

step scripted_adapter::begin(call new_call)
{
    const operation kind = new_call.what;
    const auto index = index_of(kind);
    std::unique_lock guard(state_->mutex);
    state_->calls.push_back(std::move(new_call));
    auto& queue = state_->queued[index];
    if (queue.empty()) {
        const auto make_step = state_->repeated[index];
        // A wait has no failure. The attempt that follows fails instead.
        const bool fails = state_->is_disconnected && kind != operation::wait && kind != operation::close;
        guard.unlock();
        if (make_step)
            return make_step();
        return fails ? step::fail(errc::unavailable, "the connection is lost") : step::pass();
    }
    step taken = std::move(queue.front());
    queue.pop_front();
    return taken;
}

template <class Outcome>
void scripted_adapter::run(pending_call<Outcome> pending)
{
    switch (pending.behavior.action_) {
    case step::action::hold:
        return hold_back(std::move(pending));
    case step::action::hold_unknown: {
        pending_call<Outcome> lost{pending.kind, step::lose_request(), {}, {}, std::move(pending.done),
            std::move(pending.record_in), std::move(pending.busy_claims)};
        pending.record_in = nullptr;
        pending.done = completion<Outcome>([](Outcome) {});
        hold_back(std::move(pending));
        return forward(std::move(lost));
    }
    default:
        return forward(std::move(pending));
    }
}

template <class Outcome>
void scripted_adapter::hold_back(pending_call<Outcome> pending)
{
    const auto request = std::make_shared<pending_call<Outcome>>(std::move(pending));
    const auto deliver = [request](scripted_adapter& self) {
        request->behavior.action_ = step::action::pass;
        // Until the request is executed, nothing that was started later may be.
        request->behavior.delay_ = {};
        self.forward(std::move(*request));
    };
    const auto discard = [request](scripted_adapter& self) {
        request->behavior.action_ = step::action::lose_request;
        self.forward(std::move(*request));
    };
    const std::lock_guard guard(state_->mutex);
    state_->held.push_back({request->kind, request->claims, deliver, discard});
}

template <class Outcome>
void scripted_adapter::forward(pending_call<Outcome> pending)
{
    const auto span = pending.behavior.delay_;
    if (span == span.zero() && timing_ == timing::immediate)
        return execute(std::move(pending));
    const auto current_executor = executor();
    if (!current_executor)
        return;
    if (span == span.zero()) {
        asio::post(current_executor,
            [self = self(), pending = std::move(pending)]() mutable { self->execute(std::move(pending)); });
        return;
    }
    auto timer = std::make_unique<lease_timer>(current_executor, span);
    auto& armed = *timer;
    armed.async_wait([self = self(), timer = std::move(timer), pending = std::move(pending)](
                         const error_code&) mutable { self->execute(std::move(pending)); });
}

template <class Outcome>
void scripted_adapter::execute(pending_call<Outcome> pending)
{
    if (pending.behavior.before_)
        pending.behavior.before_();
    switch (pending.behavior.action_) {
    case step::action::lose_request:
        return pending.answer(failed<Outcome>(unknown_outcome("the request was lost")));
    case step::action::fail:
        return pending.answer(failed<Outcome>(pending.behavior.error_));
    case step::action::not_held:
        return pending.answer(negative<Outcome>());
    case step::action::busy:
        if constexpr (std::is_same_v<Outcome, create_outcome>) {
            return pending.answer(create_outcome::busy(pending.behavior.retry_after_, pending.behavior.holder_));
        } else if constexpr (std::is_same_v<Outcome, hand_over_outcome>) {
            auto held = pending.claims.front();
            return backend_->start_release(std::move(held), release_guarantee::released,
                [pending = std::move(pending)](release_outcome released) mutable {
                    auto created = create_outcome::busy(pending.behavior.retry_after_, pending.behavior.holder_);
                    pending.answer({std::move(released), std::move(created)});
                });
        } else if constexpr (std::is_same_v<Outcome, create_all_outcome>) {
            return pending.answer(
                {.refusal = create_outcome::busy(pending.behavior.retry_after_, pending.behavior.holder_)});
        }
        break;
    default:
        break;
    }
    const bool lose_reply = pending.behavior.action_ == step::action::lose_reply;
    const auto send = std::move(pending.send);
    send(*backend_, [self = self(), lose_reply, pending = std::move(pending)](Outcome outcome) mutable {
        if constexpr (std::is_same_v<Outcome, create_outcome>) {
            if (outcome.status == create_status::granted)
                self->join_session(pending.claims.front());
        } else if constexpr (std::is_same_v<Outcome, hand_over_outcome>) {
            if (outcome.created.status == create_status::granted)
                self->join_session(pending.claims.back());
        } else if constexpr (std::is_same_v<Outcome, create_all_outcome>) {
            if (outcome.status == create_status::granted)
                std::ranges::for_each(pending.claims, [&](const claim_ptr& each) { self->join_session(each); });
        }
        pending.answer(lose_reply ? failed<Outcome>(unknown_outcome("the reply was lost")) : std::move(outcome));
    });
}

void scripted_adapter::start_create(claim_ptr claim, completion<create_outcome> done)
{
    auto behavior = begin(operation::create, claim, claim->ttl());
    const auto send = [claim](adapter& backend, completion<create_outcome> end) {
        backend.start_create(claim, std::move(end));
    };
    run<create_outcome>({operation::create, std::move(behavior), {claim}, send, std::move(done), state_, {claim}});
}

void scripted_adapter::start_release(claim_ptr claim, release_guarantee guarantee, completion<release_outcome> done)
{
    const bool settles = guarantee == release_guarantee::settled;
    const auto kind = settles ? operation::abandon : operation::release;
    auto behavior = begin(kind, claim, claim->ttl());
    const auto send = [claim, guarantee, settles, state = state_](adapter& backend, completion<release_outcome> end) {
        bool late = false;
        {
            const std::lock_guard guard(state->mutex);
            late = settles && !state->trust_abandon &&
                   std::any_of(state->held.begin(), state->held.end(),
                       [&](const auto& held) { return held.kind != operation::wait && held.concerns(*claim); });
        }
        if (late)
            end({release_status::failed, make_failure(errc::unavailable, "an earlier request is still under way")});
        else
            backend.start_release(claim, guarantee, std::move(end));
    };
    run<release_outcome>({kind, std::move(behavior), {claim}, send, std::move(done), state_, {claim}});
}

void scripted_adapter::start_extend(claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done)
{
    auto behavior = begin(operation::extend, claim, ttl);
    const auto send = [claim, ttl](adapter& backend, completion<extend_outcome> end) {
        backend.start_extend(claim, ttl, std::move(end));
    };
    run<extend_outcome>({operation::extend, std::move(behavior), {claim}, send, std::move(done), state_, {claim}});
}

void scripted_adapter::start_is_valid(claim_ptr claim, completion<valid_outcome> done)
{
    auto behavior = begin(operation::is_valid, claim, claim->ttl());
    const auto send = [claim](adapter& backend, completion<valid_outcome> end) {
        backend.start_is_valid(claim, std::move(end));
    };
    run<valid_outcome>({operation::is_valid, std::move(behavior), {claim}, send, std::move(done), state_, {claim}});
}

void scripted_adapter::start_wait(claim_ptr claim, lease_clock::time_point until, completion<wait_outcome> done)
{
    auto behavior = begin(operation::wait, claim, claim->ttl());
    const auto send = [claim, until](adapter& backend, completion<wait_outcome> end) {
        backend.start_wait(claim, until, std::move(end));
    };
    {
        const std::lock_guard guard(state_->mutex);
        state_->waiting[claim.get()] = claim;
    }
    auto finish = [weak_state = std::weak_ptr(state_), subject = claim.get(), end = std::move(done)](
                      wait_outcome outcome) mutable {
        if (const auto current_state = weak_state.lock())
            current_state->end_wait(subject);
        end(outcome);
    };
    if (behavior.action_ == step::action::hold) {
        return hold_back<wait_outcome>(
            {operation::wait, std::move(behavior), {std::move(claim)}, send, std::move(finish), nullptr, {}});
    }
    if (behavior.action_ == step::action::fail)
        return asio::post(executor(), [end = std::move(finish)]() mutable { end({}); });
    if (timing_ == timing::immediate)
        return send(*backend_, std::move(finish));
    // The pointer is weak because a wait may last as long as its backend exists.
    send(*backend_, [weak = std::weak_ptr(self()), end = std::move(finish)](wait_outcome outcome) mutable {
        const auto self = weak.lock();
        const auto current_executor = self ? self->executor() : asio::any_io_executor();
        if (current_executor)
            asio::post(current_executor, [end = std::move(end), outcome]() mutable { end(outcome); });
    });
}

void scripted_adapter::cancel_wait(claim& claim) noexcept
{
    std::vector<state::request> dropped;
    state_->end_wait(&claim);
    {
        const std::lock_guard guard(state_->mutex);
        auto& held = state_->held;
        for (auto request = held.begin(); request != held.end();) {
            if (request->kind == operation::wait && request->concerns(claim)) {
                dropped.push_back(std::move(*request));
                request = held.erase(request);
            } else {
                ++request;
            }
        }
    }
    backend_->cancel_wait(claim);
}

void scripted_adapter::start_hand_over(claim_ptr held, claim_ptr next, completion<hand_over_outcome> done)
{
    auto behavior = begin(operation::hand_over, held, held->ttl());
    {
        const std::lock_guard guard(state_->mutex);
        state_->begin_operation(*next, operation::hand_over);
    }
    const auto send = [held, next](adapter& backend, completion<hand_over_outcome> end) {
        backend.start_hand_over(held, next, std::move(end));
    };
    run<hand_over_outcome>(
        {operation::hand_over, std::move(behavior), {held, next}, send, std::move(done), state_, {held, next}});
}

void scripted_adapter::start_listing(listing_request request, completion<list_outcome> done)
{
    const auto kind = request.action == listing_action::break_key ? operation::break_key
                      : request.action == listing_action::purge   ? operation::purge
                      : request.filter.key                        ? operation::inspect
                                                                  : operation::list;
    auto behavior = begin({kind, request.filter.key.value_or(""), {}, {}});
    const auto send = [request = std::move(request)](adapter& backend, completion<list_outcome> end) {
        backend.start_listing(request, std::move(end));
    };
    run<list_outcome>({kind, std::move(behavior), {}, send, std::move(done), nullptr, {}});
}

void scripted_adapter::start_create_all(std::vector<claim_ptr> claims, completion<create_all_outcome> done)
{
    call new_call{.what = operation::create_all};
    for (const auto& each : claims) {
        new_call.key += (new_call.key.empty() ? "" : ",") + each->key();
        const std::lock_guard guard(state_->mutex);
        state_->begin_operation(*each, operation::create_all);
    }
    auto behavior = begin(std::move(new_call));
    const auto send = [claims](adapter& backend, completion<create_all_outcome> end) {
        backend.start_create_all(claims, std::move(end));
    };
    run<create_all_outcome>(
        {operation::create_all, std::move(behavior), claims, send, std::move(done), state_, claims});
}

void scripted_adapter::start_group(
    std::string id, group_action action, std::chrono::milliseconds ttl, completion<group_outcome> done)
{
    auto behavior = begin({.what = operation::group, .key = id, .ttl = ttl});
    const auto send = [id = std::move(id), action, ttl](adapter& backend, completion<group_outcome> end) {
        backend.start_group(id, action, ttl, std::move(end));
    };
    run<group_outcome>({operation::group, std::move(behavior), {}, send, std::move(done), nullptr, {}});
}

void scripted_adapter::start_export(claim_ptr held, completion<export_outcome> done)
{
    auto behavior = begin(operation::export_ticket, held, held->ttl());
    const auto send = [held](adapter& backend, completion<export_outcome> end) {
        backend.start_export(held, std::move(end));
    };
    run<export_outcome>({operation::export_ticket, std::move(behavior), {held}, send, std::move(done), state_, {held}});
}

void scripted_adapter::start_adopt(std::string ticket, claim_ptr claim, completion<create_outcome> done)
{
    auto behavior = begin(operation::adopt, claim, claim->ttl());
    const auto send = [ticket = std::move(ticket), claim](adapter& backend, completion<create_outcome> end) {
        backend.start_adopt(ticket, claim, std::move(end));
    };
    run<create_outcome>({operation::adopt, std::move(behavior), {claim}, send, std::move(done), state_, {claim}});
}

void scripted_adapter::start_close(lease_clock::duration deadline, completion<close_outcome> done)
{
    auto behavior = begin({operation::close, {}, {}, std::chrono::floor<std::chrono::milliseconds>(deadline)});
    const auto send = [deadline](adapter& backend, completion<close_outcome> end) {
        backend.start_close(deadline, std::move(end));
    };
    run<close_outcome>({operation::close, std::move(behavior), {}, send, std::move(done), nullptr, {}});
}

} // namespace colock::testing
