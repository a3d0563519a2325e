// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/node_claim.hpp"

#include <algorithm>
#include <utility>

namespace colock::quorum {

namespace {

failure_ptr unanswered()
{
    return make_failure(errc::unavailable, "a node has not answered yet");
}

extension no_extension(extend_outcome why)
{
    return {std::move(why), std::chrono::milliseconds::max()};
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
    bool goes = false;
    {
        const std::lock_guard guard(mutex_);
        if (used_up_) {
            refused.emplace(std::move(asked));
        } else if (under_way_) {
            refused.swap(next_);
            next_.emplace(std::move(asked));
        } else {
            goes = under_way_ = true;
        }
    }
    if (refused)
        refuse(std::move(*refused));
    if (goes)
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
    };
    std::visit(refuser(), asked);
}

/// Goes with the operation that is under way. One that is destroyed without an answer has lost its context: what waits
/// behind it is dropped, for it would keep the share, and be kept by it, for ever.
class node_claim::under_way
{
public:
    explicit under_way(node_claim& by) : by_(by.shared_from_this()) {}
    under_way(under_way&&) noexcept = default;
    under_way& operator=(under_way&&) = delete;
    ~under_way()
    {
        if (by_)
            by_->drop_waiting();
    }

    [[nodiscard]] std::shared_ptr<node_claim> answered() noexcept { return std::move(by_); }

private:
    std::shared_ptr<node_claim> by_;
};

void node_claim::drop_waiting() noexcept
{
    std::vector<completion<release_outcome>> takers;
    std::optional<request> next;
    const std::lock_guard guard(mutex_);
    takers.swap(takers_);
    next.swap(next_);
}

void node_claim::begin(create_request asked)
{
    const bool stood = stands_for(claim_->ttl());
    is_creating(true);
    claim_->set_sent(asked.sent);
    auto told = [by = under_way(*this), stood, done = std::move(asked.done)](create_outcome outcome) mutable {
        const auto self = by.answered();
        const bool unknown = may_arrive(outcome.error);
        if (unknown) {
            self->claim_->mark_in_doubt();
            self->claim_->may_arrive_late(self->claim_->ttl());
        }
        self->is_creating(false);
        if (!stood && !unknown && outcome.status != create_status::granted)
            self->is_gone();
        done(std::move(outcome));
        self->go_on();
    };
    if (asked.ticket)
        node_->backend().start_adopt(std::move(*asked.ticket), claim_, std::move(told));
    else
        node_->backend().start_create(claim_, std::move(told));
}

void node_claim::begin(extend_request asked)
{
    if (!may_stand()) {
        asked.done(no_extension({extend_status::not_held, nullptr}));
        go_on();
        return;
    }
    stands_for(asked.ttl);
    claim_->set_sent(asked.sent);
    node_->backend().start_extend(claim_, asked.ttl,
        [by = under_way(*this), ttl = asked.ttl, done = std::move(asked.done)](extend_outcome outcome) mutable {
            const auto self = by.answered();
            if (may_arrive(outcome.error))
                self->claim_->may_arrive_late(ttl);
            done({std::move(outcome), self->claim_->late_ttl()});
            self->go_on();
        });
}

void node_claim::begin(valid_request asked)
{
    if (!may_stand()) {
        asked.done({false, nullptr});
        go_on();
        return;
    }
    node_->backend().start_is_valid(
        claim_, [by = under_way(*this), done = std::move(asked.done)](valid_outcome outcome) mutable {
            const auto self = by.answered();
            done(std::move(outcome));
            self->go_on();
        });
}

/// What waited behind the operation that has just ended.
void node_claim::go_on()
{
    std::optional<request> next;
    bool gives_back = false;
    {
        const std::lock_guard guard(mutex_);
        next.swap(next_);
        gives_back = taking_back_;
        under_way_ = gives_back || next;
    }
    if (next)
        send(std::move(*next));
    else if (gives_back)
        abandon();
}

node_claim::release_state node_claim::use_up(bool attempts) noexcept
{
    release_state begun;
    used_up_ = true;
    // Nobody waits for its create any more: no connection need be made for it.
    claim_->cancel();
    begun.refused.swap(next_);
    if (attempts) {
        begun.goes = !under_way_;
        under_way_ = taking_back_ = true;
    }
    return begun;
}

void node_claim::set_out(release_state begun)
{
    if (begun.refused)
        refuse(std::move(*begun.refused));
    if (begun.goes)
        abandon();
}

void node_claim::take_back(completion<release_outcome> done)
{
    release_state begun;
    {
        const std::lock_guard guard(mutex_);
        const bool attempts = under_way_ || may_stand_;
        if (attempts)
            takers_.push_back(std::move(done));
        begun = use_up(attempts);
    }
    set_out(std::move(begun));
    if (done)
        done({release_status::not_held, nullptr});
}

void node_claim::take_back_again(completion<release_outcome> done)
{
    {
        const std::lock_guard guard(mutex_);
        kept_ = false;
    }
    take_back(std::move(done));
}

void node_claim::orphan()
{
    const auto epoch = node_->attempt_begins();
    release_state begun;
    bool attempts = false;
    {
        const std::lock_guard guard(mutex_);
        if (!std::exchange(orphaned_, true)) {
            epoch_ = epoch;
            attempts = counted_ = under_way_ || (may_stand_ && !tried_);
        }
        begun = use_up(attempts);
    }
    set_out(std::move(begun));
    if (!attempts) {
        keep_if_needed();
        node_->attempt_ends();
    }
}

void node_claim::moves()
{
    bool in_doubt = false;
    {
        const std::lock_guard guard(mutex_);
        in_doubt = creating_ || claim_->in_doubt();
    }
    if (in_doubt)
        orphan();
}

void node_claim::abandon()
{
    if (!may_stand()) {
        on_abandoned({release_status::not_held, nullptr});
        return;
    }
    claim_->set_sent(lease_clock::now());
    node_->backend().start_abandon(claim_,
        [by = under_way(*this)](const release_outcome& outcome) mutable { by.answered()->on_abandoned(outcome); });
}

void node_claim::on_abandoned(const release_outcome& outcome)
{
    std::vector<completion<release_outcome>> takers;
    bool counted = false;
    {
        const std::lock_guard guard(mutex_);
        under_way_ = taking_back_ = false;
        if (outcome.status == release_status::failed)
            tried_ = true;
        else
            may_stand_ = false;
        takers.swap(takers_);
        counted = std::exchange(counted_, false);
    }
    keep_if_needed();
    for (auto& each : takers)
        each(outcome);
    if (counted)
        node_->attempt_ends();
}

void node_claim::keep_if_needed()
{
    std::uint64_t epoch = 0;
    {
        const std::lock_guard guard(mutex_);
        if (!orphaned_ || under_way_ || !may_stand_ || std::exchange(kept_, true))
            return;
        epoch = epoch_;
    }
    node_->keep(shared_from_this(), epoch);
}

bool node_claim::has_expired(time_point now, milliseconds patience)
{
    const std::lock_guard guard(mutex_);
    return now >= saturating_add(stands_until_, patience);
}

bool node_claim::may_stand()
{
    const std::lock_guard guard(mutex_);
    return may_stand_;
}

bool node_claim::stands_for(milliseconds ttl)
{
    const auto expiry = ttl == milliseconds::zero() ? time_point::max()
                                                    : saturating_add(lease_clock::now(), lease_clock::duration(ttl));
    const std::lock_guard guard(mutex_);
    stands_until_ = std::max(stands_until_, expiry);
    return std::exchange(may_stand_, true);
}

void node_claim::is_creating(bool now)
{
    const std::lock_guard guard(mutex_);
    creating_ = now;
}

void node_claim::is_gone()
{
    const std::lock_guard guard(mutex_);
    may_stand_ = false;
}

} // namespace colock::quorum
