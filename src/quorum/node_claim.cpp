// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/node_claim.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::quorum {

namespace {

failure_ptr unanswered()
{
    return make_failure(errc::unavailable, "a node has not answered yet");
}

extend_answer answer_without_late_ttl(extend_outcome outcome)
{
    return {std::move(outcome), std::chrono::milliseconds::max()};
}

/// Reports a refusal even if the other nodes are a majority.
void warn_of_refusal(node& node, const failure_ptr& failure)
{
    if (failure)
        node.backend().warn_of_refusal(*failure);
}

bool is_outcome_unknown(const failure_ptr& failure)
{
    return failure && failure->code == errc::outcome_unknown;
}

} // namespace

/// Member of the completion of the operation in flight. If the completion is destroyed without being called, the
/// context has been shut down, or there was no memory to start the operation. Then this object ends the operation. It
/// drops the pending request and the release handlers, because they and the claim would keep each other alive forever.
class node_claim::in_flight_guard
{
public:
    explicit in_flight_guard(node_claim& owner) : owner_(owner.shared_from_this()) {}
    in_flight_guard(in_flight_guard&&) noexcept = default;
    in_flight_guard& operator=(in_flight_guard&&) = delete;
    ~in_flight_guard()
    {
        if (owner_)
            owner_->drop_operation();
    }

    [[nodiscard]] std::shared_ptr<node_claim> take_owner() noexcept { return std::move(owner_); }

private:
    std::shared_ptr<node_claim> owner_;
};

void node_claim::drop_operation() noexcept
{
    is_in_flight_ = is_creating_ = is_abandoning_ = false;
    const auto handlers = std::exchange(abandon_handlers_, {});
    const auto next = std::exchange(pending_, {});
}

template <class Request>
void node_claim::submit(Request request)
{
    if (is_retired_)
        return request(permission::refused);
    if (!std::exchange(is_in_flight_, true))
        return request(permission::granted);
    completion<permission> next(std::move(request));
    if (auto dropped_request = std::exchange(pending_, std::move(next)))
        dropped_request(permission::refused);
}

template <class Outcome, class Function>
completion<Outcome> node_claim::on_answer(Function function)
{
    return [node = node_, in_flight = in_flight_guard(*this), function = std::move(function)](Outcome outcome) mutable {
        node->run(
            [in_flight = std::move(in_flight), function = std::move(function), outcome = std::move(outcome)]() mutable {
                const auto self = in_flight.take_owner();
                function(std::move(outcome));
            });
    };
}

void node_claim::create(time_point sent_at, std::string ticket, completion<create_outcome> done)
{
    submit([this, sent_at, ticket = std::move(ticket), done = std::move(done)](permission decision) mutable {
        if (decision == permission::refused)
            return done(create_outcome::failed(unanswered()));
        const bool was_possibly_held = note_possible_hold(claim_->ttl());
        is_creating_ = true;
        claim_->set_operation_start(sent_at);
        auto on_created = on_answer<create_outcome>(
            [this, was_possibly_held, done = std::move(done)](create_outcome outcome) mutable {
                const bool unknown = is_outcome_unknown(outcome.error);
                if (unknown) {
                    claim_->mark_in_doubt();
                    claim_->lower_late_ttl(claim_->ttl());
                }
                warn_of_refusal(*node_, outcome.error);
                is_creating_ = false;
                if (!was_possibly_held && !unknown && outcome.status != create_status::granted)
                    may_be_held_ = false;
                done(std::move(outcome));
                start_next();
            });
        if (ticket.empty())
            node_->backend().start_create(claim_, std::move(on_created));
        else
            node_->backend().start_adopt(std::move(ticket), claim_, std::move(on_created));
    });
}

void node_claim::extend(time_point sent_at, milliseconds ttl, completion<extend_answer> done)
{
    submit([this, sent_at, ttl, done = std::move(done)](permission decision) mutable {
        if (decision == permission::refused)
            return done(answer_without_late_ttl({extend_status::failed, unanswered()}));
        if (!may_be_held_) {
            done(answer_without_late_ttl({extend_status::not_held, nullptr}));
            return start_next();
        }
        note_possible_hold(ttl);
        claim_->set_operation_start(sent_at);
        node_->backend().start_extend(
            claim_, ttl, on_answer<extend_outcome>([this, ttl, done = std::move(done)](extend_outcome outcome) mutable {
                warn_of_refusal(*node_, outcome.error);
                if (is_outcome_unknown(outcome.error))
                    claim_->lower_late_ttl(ttl);
                if (outcome.status == extend_status::not_held && !claim_->in_doubt())
                    may_be_held_ = false;
                done({std::move(outcome), claim_->late_ttl()});
                start_next();
            }));
    });
}

void node_claim::is_valid(completion<valid_outcome> done)
{
    submit([this, done = std::move(done)](permission decision) mutable {
        if (decision == permission::refused)
            return done({false, unanswered()});
        if (!may_be_held_) {
            done({false, nullptr});
            return start_next();
        }
        node_->backend().start_is_valid(
            claim_, on_answer<valid_outcome>([this, done = std::move(done)](valid_outcome outcome) mutable {
                warn_of_refusal(*node_, outcome.error);
                done(std::move(outcome));
                start_next();
            }));
    });
}

void node_claim::export_ticket(completion<std::string> done)
{
    if (is_creating_)
        claim_->cancel();
    submit([this, done = std::move(done)](permission decision) mutable {
        if (decision == permission::refused)
            return done({});
        if (!may_be_held_ || claim_->in_doubt()) {
            abandon_in_background();
            done({});
            return start_next();
        }
        node_->backend().start_export(
            claim_, on_answer<export_outcome>([this, done = std::move(done)](export_outcome outcome) mutable {
                done(std::move(outcome.ticket));
                start_next();
            }));
    });
}

/// Starts the request that has waited for the operation that has just ended.
void node_claim::start_next()
{
    auto next = std::exchange(pending_, {});
    is_in_flight_ = is_abandoning_ || next;
    if (next)
        next(permission::granted);
    else if (is_abandoning_)
        send_abandon();
}

void node_claim::retire(bool must_release)
{
    is_retired_ = true;
    // No caller waits for the create any more, so no connection need be made for it.
    claim_->cancel();
    auto dropped_request = std::exchange(pending_, {});
    const bool sends_now = must_release && !is_in_flight_;
    if (must_release)
        is_in_flight_ = is_abandoning_ = true;
    if (dropped_request)
        dropped_request(permission::refused);
    if (sends_now)
        send_abandon();
}

void node_claim::abandon(completion<release_outcome> done)
{
    const bool was_released = may_have_released_;
    const bool must_release = is_in_flight_ || may_be_held_;
    if (must_release)
        abandon_handlers_.push_back(std::move(done));
    retire(must_release);
    if (done)
        done({was_released ? release_status::released : release_status::not_held, nullptr});
}

void node_claim::retry_abandon(completion<release_outcome> done)
{
    is_kept_ = false;
    abandon(std::move(done));
}

void node_claim::abandon_in_background()
{
    const auto epoch = node_->begin_attempt();
    bool must_release = false;
    if (!std::exchange(is_abandoned_, true)) {
        epoch_ = epoch;
        must_release = is_counted_ = is_in_flight_ || (may_be_held_ && !has_failed_);
    }
    retire(must_release);
    if (!must_release) {
        keep_if_needed();
        node_->end_attempt();
    }
}

void node_claim::send_abandon()
{
    if (!may_be_held_)
        return on_abandoned({release_status::not_held, nullptr});
    claim_->set_operation_start(lease_clock::now());
    node_->backend().start_release(claim_, release_guarantee::settled,
        on_answer<release_outcome>([this](release_outcome outcome) { on_abandoned(std::move(outcome)); }));
}

void node_claim::on_abandoned(release_outcome outcome)
{
    warn_of_refusal(*node_, outcome.error);
    is_in_flight_ = is_abandoning_ = false;
    if (outcome.status == release_status::failed) {
        has_failed_ = true;
        may_have_released_ |= is_outcome_unknown(outcome.error);
    } else {
        may_be_held_ = false;
        may_have_released_ |= outcome.status == release_status::released;
        if (may_have_released_)
            outcome.status = release_status::released;
    }
    auto handlers = std::exchange(abandon_handlers_, {});
    const bool counted = std::exchange(is_counted_, false);
    keep_if_needed();
    for (auto& each : handlers)
        each(outcome);
    if (counted)
        node_->end_attempt();
}

void node_claim::keep_if_needed()
{
    if (is_abandoned_ && !is_in_flight_ && may_be_held_ && !std::exchange(is_kept_, true))
        node_->keep(shared_from_this(), epoch_);
}

bool node_claim::has_expired(time_point now, milliseconds operation_timeout) const
{
    return now >= saturating_add(held_until_, operation_timeout);
}

bool node_claim::note_possible_hold(milliseconds ttl)
{
    const auto expiry = ttl == milliseconds::zero() ? time_point::max()
                                                    : saturating_add(lease_clock::now(), lease_clock::duration(ttl));
    held_until_ = std::max(held_until_, expiry);
    return std::exchange(may_be_held_, true);
}

} // namespace colock::inline v0::quorum
