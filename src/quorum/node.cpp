// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/node.hpp"

#include "quorum/node_claim.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::quorum {

namespace {

/// Delay before the next round of attempts if no attempt of the last round was answered.
constexpr std::chrono::milliseconds retry_delay{250};
/// Maximum number of attempts in one round. They are sent in one batch, so that a reconnected node is cleaned up soon,
/// and a disconnected one costs little.
constexpr std::size_t max_per_round = 16;
/// Maximum number of expired claims that one round gives up, so that a large number does not block the event loop.
constexpr std::size_t max_given_up = 1024;

} // namespace

node::node(adapter& owner, std::shared_ptr<adapter> backend, const std::atomic<std::uint64_t>& cancelled_closes,
    std::chrono::milliseconds operation_timeout, std::function<void(std::uint64_t)> on_given_up)
    : owner_(owner), gate_(colock::detail::context_gate::of(owner.executor())), backend_(std::move(backend)),
      cancelled_closes_(cancelled_closes), operation_timeout_(operation_timeout), on_given_up_(std::move(on_given_up))
{
}

std::uint64_t node::begin_attempt()
{
    ++attempts_;
    return epoch_;
}

void node::end_attempt()
{
    --attempts_;
    close_if_done();
}

void node::keep(std::shared_ptr<node_claim> unreleased, std::uint64_t epoch)
{
    if (epoch != epoch_)
        return on_given_up_(1);
    kept_.push_back(std::move(unreleased));
    arm();
}

void node::start_round()
{
    node_claims now_due;
    std::uint64_t given_up = 0;
    const auto now = lease_clock::now();
    round_due_ = false;
    for (auto n = kept_.size(); n > 0 && now_due.size() < max_per_round && given_up < max_given_up; --n) {
        auto next = std::move(kept_.front());
        kept_.pop_front();
        if (next->has_expired(now, operation_timeout_))
            ++given_up;
        else
            now_due.push_back(std::move(next));
    }
    // Adds one, which the call of `on_attempt_ended` at the end of this function removes. The round cannot end before
    // all attempts have begun.
    in_round_ = now_due.size() + 1;
    skips_delay_ = given_up == max_given_up;
    if (given_up > 0)
        on_given_up_(given_up);
    for (const auto& each : now_due) {
        each->retry_abandon([self = shared()](const release_outcome& outcome) {
            self->on_attempt_ended(outcome.status != release_status::failed);
        });
    }
    on_attempt_ended(false);
}

void node::on_attempt_ended(bool was_answered)
{
    skips_delay_ = skips_delay_ || was_answered;
    if (--in_round_ > 0)
        return;
    if (skips_delay_ && !kept_.empty()) {
        // The node answers, so the remaining claims are tried without a delay.
        round_due_ = true;
        asio::post(owner_.executor(), [self = shared()] { self->start_round(); });
    } else {
        arm();
    }
    close_if_done();
}

void node::arm()
{
    auto due = closing_.empty() ? time_point::max() : give_up_by_;
    if (!kept_.empty() && in_round_ == 0 && !round_due_)
        due = std::min(due, saturating_add(lease_clock::now(), retry_delay));
    if (due >= armed_for_)
        return;
    disarm();
    const auto timer = std::make_shared<lease_timer>(owner_.executor(), due);
    timer->async_wait([weak = std::weak_ptr(shared()), timer](const error_code& error) {
        const auto self = weak.lock();
        // The handler of an earlier wait does nothing.
        if (self && !error && self->timer_.lock() == timer)
            self->on_timer();
    });
    timer_ = timer;
    armed_for_ = due;
}

void node::disarm()
{
    armed_for_ = time_point::max();
    if (const auto timer = std::exchange(timer_, {}).lock())
        timer->cancel();
}

void node::on_timer()
{
    armed_for_ = time_point::max();
    if (!closing_.empty() && lease_clock::now() >= give_up_by_)
        finish_close();
    else if (kept_.empty() || in_round_ > 0 || round_due_)
        arm();
    else
        start_round();
}

void node::close(lease_clock::duration deadline, std::uint64_t number, completion<close_outcome> done)
{
    close_number_ = number;
    closing_.push_back(std::move(done));
    const auto now = lease_clock::now();
    close_by_ = std::min(close_by_, saturating_add(now, deadline));
    give_up_by_ = std::min(close_by_, saturating_add(now, operation_timeout_));
    const bool tries = !kept_.empty() && in_round_ == 0 && !std::exchange(round_due_, true);
    if (tries || attempts_ > 0 || in_round_ > 0)
        arm();
    if (tries)
        start_round();
    else
        close_if_done();
}

void node::end_closes()
{
    close_by_ = time_point::max();
    give_up_by_ = time_point::max();
    for (auto& each : std::exchange(closing_, {}))
        each(close_outcome{});
}

void node::close_if_done()
{
    if (attempts_ == 0 && in_round_ == 0 && !round_due_ && kept_.empty())
        finish_close();
}

void node::finish_close()
{
    if (closing_.empty())
        return;
    if (close_number_ != cancelled_closes_) {
        end_closes();
        return arm();
    }
    disarm();
    const auto unreleased = std::exchange(kept_, {}).size();
    ++epoch_;
    const auto rest =
        std::max(std::exchange(close_by_, time_point::max()) - lease_clock::now(), lease_clock::duration::zero());
    auto handlers = std::exchange(closing_, {});
    if (unreleased > 0)
        on_given_up_(unreleased);
    backend_->start_close(rest, on_strand<close_outcome>([handlers = std::move(handlers)](close_outcome) mutable {
        for (auto& each : handlers)
            each(close_outcome{});
    }));
    // A cancellation that came before the call did not find the backend closing.
    if (close_number_ != cancelled_closes_)
        backend_->cancel_close();
}

void node::drop_all() noexcept
{
    const auto unreleased = std::exchange(kept_, {});
    const auto handlers = std::exchange(closing_, {});
}

} // namespace colock::inline v0::quorum
