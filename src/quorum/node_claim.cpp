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

extension no_extension(extend_outcome why)
{
    return {std::move(why), std::chrono::milliseconds::max()};
}

/// Reports a refusal even if the other nodes are a majority.
void warn_of_refusal(node& refusing, const failure_ptr& why)
{
    if (why)
        refusing.backend().warn_of_refusal(*why);
}

bool may_arrive(const failure_ptr& why)
{
    return why && why->code == errc::outcome_unknown;
}

} // namespace

void node_claim::create(time_point sent, completion<create_outcome> done)
{
    submit(create_request{sent, std::nullopt, std::move(done)});
}

void node_claim::adopt(time_point sent, std::string ticket, completion<create_outcome> done)
{
    submit(create_request{sent, std::move(ticket), std::move(done)});
}

void node_claim::extend(time_point sent, milliseconds ttl, completion<extension> done)
{
    submit(extend_request{sent, ttl, std::move(done)});
}

void node_claim::is_valid(completion<valid_outcome> done)
{
    submit(valid_request{std::move(done)});
}

void node_claim::submit(request asked)
{
    std::optional<request> refused;
    bool sends_now = false;
    {
        const std::lock_guard guard(mutex_);
        if (is_retired_) {
            refused.emplace(std::move(asked));
        } else if (is_in_flight_) {
            refused.swap(pending_);
            pending_.emplace(std::move(asked));
        } else {
            sends_now = is_in_flight_ = true;
        }
    }
    if (refused)
        refuse(std::move(*refused));
    if (sends_now)
        send(std::move(asked));
}

void node_claim::send(request asked)
{
    std::visit([this](auto& one) { begin(std::move(one)); }, asked);
}

void node_claim::refuse(request asked)
{
    struct refuser
    {
        void operator()(create_request& one) const { one.done(create_outcome::failed(unanswered())); }
        void operator()(extend_request& one) const { one.done(no_extension({extend_status::failed, unanswered()})); }
        void operator()(valid_request& one) const { one.done({false, unanswered()}); }
        void operator()(export_request& one) const { one.done({}); }
    };
    std::visit(refuser(), asked);
}

/// Member of the completion of the operation in flight. If the completion is destroyed without being called, the
/// context has been shut down. Then this object drops the pending request and the release handlers, because they and
/// the claim would keep each other alive forever.
class node_claim::in_flight_guard
{
public:
    explicit in_flight_guard(node_claim& owner) : owner_(owner.shared_from_this()) {}
    in_flight_guard(in_flight_guard&&) noexcept = default;
    in_flight_guard& operator=(in_flight_guard&&) = delete;
    ~in_flight_guard()
    {
        if (owner_)
            owner_->drop_pending();
    }

    [[nodiscard]] std::shared_ptr<node_claim> take_owner() noexcept { return std::move(owner_); }

private:
    std::shared_ptr<node_claim> owner_;
};

void node_claim::drop_pending() noexcept
{
    std::vector<completion<release_outcome>> handlers;
    std::optional<request> next;
    const std::lock_guard guard(mutex_);
    handlers.swap(abandon_handlers_);
    next.swap(pending_);
}

void node_claim::begin(create_request asked)
{
    const bool was_possibly_held = note_possible_hold(claim_->ttl());
    set_creating(true);
    claim_->set_operation_start(asked.sent);
    auto on_created = [in_flight = in_flight_guard(*this), was_possibly_held, done = std::move(asked.done)](
                          create_outcome outcome) mutable {
        const auto self = in_flight.take_owner();
        const bool unknown = may_arrive(outcome.error);
        if (unknown) {
            self->claim_->mark_in_doubt();
            self->claim_->lower_late_ttl(self->claim_->ttl());
        }
        warn_of_refusal(*self->node_, outcome.error);
        self->set_creating(false);
        if (!was_possibly_held && !unknown && outcome.status != create_status::granted)
            self->note_not_held();
        done(std::move(outcome));
        self->start_next();
    };
    if (asked.ticket)
        node_->backend().start_adopt(std::move(*asked.ticket), claim_, std::move(on_created));
    else
        node_->backend().start_create(claim_, std::move(on_created));
}

void node_claim::begin(extend_request asked)
{
    if (!may_be_held()) {
        asked.done(no_extension({extend_status::not_held, nullptr}));
        start_next();
        return;
    }
    note_possible_hold(asked.ttl);
    claim_->set_operation_start(asked.sent);
    node_->backend().start_extend(claim_, asked.ttl,
        [in_flight = in_flight_guard(*this), ttl = asked.ttl, done = std::move(asked.done)](
            extend_outcome outcome) mutable {
            const auto self = in_flight.take_owner();
            warn_of_refusal(*self->node_, outcome.error);
            if (may_arrive(outcome.error))
                self->claim_->lower_late_ttl(ttl);
            if (outcome.status == extend_status::not_held && !self->claim_->in_doubt())
                self->note_not_held();
            done({std::move(outcome), self->claim_->late_ttl()});
            self->start_next();
        });
}

void node_claim::begin(valid_request asked)
{
    if (!may_be_held()) {
        asked.done({false, nullptr});
        start_next();
        return;
    }
    node_->backend().start_is_valid(
        claim_, [in_flight = in_flight_guard(*this), done = std::move(asked.done)](valid_outcome outcome) mutable {
            const auto self = in_flight.take_owner();
            warn_of_refusal(*self->node_, outcome.error);
            done(std::move(outcome));
            self->start_next();
        });
}

void node_claim::begin(export_request asked)
{
    bool is_held = false;
    {
        const std::lock_guard guard(mutex_);
        is_held = may_be_held_ && !claim_->in_doubt();
    }
    if (is_held) {
        node_->backend().start_export(
            claim_, [in_flight = in_flight_guard(*this), done = std::move(asked.done)](export_outcome outcome) mutable {
                const auto self = in_flight.take_owner();
                done(std::move(outcome.ticket));
                self->start_next();
            });
        return;
    }
    abandon_in_background();
    asked.done({});
    start_next();
}

/// Starts the request that has waited for the operation that has just ended.
void node_claim::start_next()
{
    std::optional<request> next;
    bool abandons = false;
    {
        const std::lock_guard guard(mutex_);
        next.swap(pending_);
        abandons = is_abandoning_;
        is_in_flight_ = abandons || next;
    }
    if (next)
        send(std::move(*next));
    else if (abandons)
        send_abandon();
}

node_claim::release_state node_claim::retire_locked(bool must_release) noexcept
{
    release_state deferred;
    is_retired_ = true;
    // No caller waits for the create any more, so no connection need be made for it.
    claim_->cancel();
    deferred.refused.swap(pending_);
    if (must_release) {
        deferred.sends_now = !is_in_flight_;
        is_in_flight_ = is_abandoning_ = true;
    }
    return deferred;
}

void node_claim::run_deferred(release_state deferred)
{
    if (deferred.refused)
        refuse(std::move(*deferred.refused));
    if (deferred.sends_now)
        send_abandon();
}

void node_claim::abandon(completion<release_outcome> done)
{
    release_state deferred;
    bool was_released = false;
    {
        const std::lock_guard guard(mutex_);
        was_released = may_have_released_;
        const bool must_release = is_in_flight_ || may_be_held_;
        if (must_release)
            abandon_handlers_.push_back(std::move(done));
        deferred = retire_locked(must_release);
    }
    run_deferred(std::move(deferred));
    if (done)
        done({was_released ? release_status::released : release_status::not_held, nullptr});
}

void node_claim::retry_abandon(completion<release_outcome> done)
{
    {
        const std::lock_guard guard(mutex_);
        is_kept_ = false;
    }
    abandon(std::move(done));
}

void node_claim::abandon_in_background()
{
    const auto epoch = node_->begin_attempt();
    release_state deferred;
    bool must_release = false;
    {
        const std::lock_guard guard(mutex_);
        if (!std::exchange(is_abandoned_, true)) {
            epoch_ = epoch;
            must_release = is_counted_ = is_in_flight_ || (may_be_held_ && !has_failed_);
        }
        deferred = retire_locked(must_release);
    }
    run_deferred(std::move(deferred));
    if (!must_release) {
        keep_if_needed();
        node_->end_attempt();
    }
}

void node_claim::export_ticket(completion<std::string> done)
{
    {
        const std::lock_guard guard(mutex_);
        if (is_creating_)
            claim_->cancel();
    }
    submit(export_request{std::move(done)});
}

void node_claim::send_abandon()
{
    if (!may_be_held()) {
        on_abandoned({release_status::not_held, nullptr});
        return;
    }
    claim_->set_operation_start(lease_clock::now());
    node_->backend().start_release(
        claim_, release_guarantee::settled, [in_flight = in_flight_guard(*this)](release_outcome outcome) mutable {
            in_flight.take_owner()->on_abandoned(std::move(outcome));
        });
}

void node_claim::on_abandoned(release_outcome outcome)
{
    std::vector<completion<release_outcome>> handlers;
    bool counted = false;
    warn_of_refusal(*node_, outcome.error);
    {
        const std::lock_guard guard(mutex_);
        is_in_flight_ = is_abandoning_ = false;
        if (outcome.status == release_status::failed) {
            has_failed_ = true;
            may_have_released_ |= may_arrive(outcome.error);
        } else {
            may_be_held_ = false;
            may_have_released_ |= outcome.status == release_status::released;
            if (may_have_released_)
                outcome.status = release_status::released;
        }
        handlers.swap(abandon_handlers_);
        counted = std::exchange(is_counted_, false);
    }
    keep_if_needed();
    for (auto& each : handlers)
        each(outcome);
    if (counted)
        node_->end_attempt();
}

void node_claim::keep_if_needed()
{
    std::uint64_t epoch = 0;
    {
        const std::lock_guard guard(mutex_);
        if (!is_abandoned_ || is_in_flight_ || !may_be_held_ || std::exchange(is_kept_, true))
            return;
        epoch = epoch_;
    }
    node_->keep(shared_from_this(), epoch);
}

bool node_claim::has_expired(time_point now, milliseconds operation_timeout)
{
    const std::lock_guard guard(mutex_);
    return now >= saturating_add(held_until_, operation_timeout);
}

bool node_claim::may_be_held()
{
    const std::lock_guard guard(mutex_);
    return may_be_held_;
}

bool node_claim::note_possible_hold(milliseconds ttl)
{
    const auto expiry = ttl == milliseconds::zero() ? time_point::max()
                                                    : saturating_add(lease_clock::now(), lease_clock::duration(ttl));
    const std::lock_guard guard(mutex_);
    held_until_ = std::max(held_until_, expiry);
    return std::exchange(may_be_held_, true);
}

void node_claim::set_creating(bool now)
{
    const std::lock_guard guard(mutex_);
    is_creating_ = now;
}

void node_claim::note_not_held()
{
    const std::lock_guard guard(mutex_);
    may_be_held_ = false;
}

} // namespace colock::inline v0::quorum
