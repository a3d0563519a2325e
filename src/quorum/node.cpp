// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/node.hpp"

#include "quorum/node_claim.hpp"

#include <boost/asio/post.hpp>

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

std::shared_ptr<node> node::make(std::shared_ptr<adapter> backend, std::chrono::milliseconds operation_timeout,
    std::function<void(std::uint64_t)> on_given_up)
{
    auto made = std::make_shared<node>(std::move(backend), operation_timeout, std::move(on_given_up));
    if (const auto executor = made->backend_->executor())
        join_context(executor, made);
    return made;
}

node::node(std::shared_ptr<adapter> backend, std::chrono::milliseconds operation_timeout,
    std::function<void(std::uint64_t)> on_given_up)
    : backend_(std::move(backend)), operation_timeout_(operation_timeout), on_given_up_(std::move(on_given_up))
{
}

std::uint64_t node::begin_attempt()
{
    const std::lock_guard guard(mutex_);
    ++attempts_;
    return epoch_;
}

void node::end_attempt()
{
    {
        const std::lock_guard guard(mutex_);
        --attempts_;
    }
    close_if_done();
}

void node::keep(std::shared_ptr<node_claim> unreleased, std::uint64_t epoch)
{
    {
        const std::lock_guard guard(mutex_);
        if (is_shut_down_)
            return;
        if (epoch == epoch_) {
            kept_.push_back(std::move(unreleased));
            arm();
            return;
        }
    }
    on_given_up_(1);
}

void node::start_round()
{
    node_claims now_due;
    std::uint64_t given_up = 0;
    {
        const std::lock_guard guard(mutex_);
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
        // Adds one, which the call of `on_attempt_ended` at the end of this function removes. The round cannot end
        // before all attempts have begun.
        in_round_ = now_due.size() + 1;
        skips_delay_ = given_up == max_given_up;
    }
    if (given_up > 0)
        on_given_up_(given_up);
    for (const auto& each : now_due) {
        each->retry_abandon([self = shared_from_this()](const release_outcome& outcome) {
            self->on_attempt_ended(outcome.status != release_status::failed);
        });
    }
    on_attempt_ended(false);
}

void node::on_attempt_ended(bool was_answered)
{
    {
        const std::lock_guard guard(mutex_);
        skips_delay_ = skips_delay_ || was_answered;
        if (--in_round_ > 0)
            return;
        const auto executor = backend_->executor();
        if (skips_delay_ && !kept_.empty() && executor) {
            // The node answers, so the remaining claims are tried without a delay.
            round_due_ = true;
            asio::post(executor, [self = shared_from_this()] { self->start_round(); });
        } else {
            arm();
        }
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
    if (!timer_) {
        const auto executor = backend_->executor();
        if (!executor)
            return;
        timer_.emplace(executor);
    }
    armed_for_ = due;
    timer_->expires_at(due);
    timer_->async_wait([weak = weak_from_this(), number = ++wait_number_](const error_code& failed) {
        const auto self = weak.lock();
        if (self && !failed)
            self->on_timer(number);
    });
}

void node::disarm()
{
    if (std::exchange(armed_for_, time_point::max()) != time_point::max())
        timer_->cancel();
}

void node::on_timer(std::uint64_t number)
{
    bool is_time_over = false;
    {
        const std::lock_guard guard(mutex_);
        if (number != wait_number_)
            return;
        armed_for_ = time_point::max();
        is_time_over = !closing_.empty() && lease_clock::now() >= give_up_by_;
        if (!is_time_over && (kept_.empty() || in_round_ > 0 || round_due_))
            return arm();
        round_due_ = round_due_ || !is_time_over;
    }
    if (is_time_over)
        finish_close();
    else
        start_round();
}

void node::close(lease_clock::duration deadline, completion<close_outcome> done)
{
    bool tries = false;
    {
        const std::lock_guard guard(mutex_);
        closing_.push_back(std::move(done));
        const auto now = lease_clock::now();
        close_by_ = std::min(close_by_, saturating_add(now, deadline));
        give_up_by_ = std::min(close_by_, saturating_add(now, operation_timeout_));
        tries = !kept_.empty() && in_round_ == 0 && !std::exchange(round_due_, true);
        if (tries || attempts_ > 0 || in_round_ > 0)
            arm();
    }
    if (tries)
        start_round();
    else
        close_if_done();
}

void node::cancel_close() noexcept
{
    std::vector<completion<close_outcome>> closing;
    {
        const std::lock_guard guard(mutex_);
        closing.swap(closing_);
        close_by_ = time_point::max();
        give_up_by_ = time_point::max();
    }
    backend_->cancel_close();
    for (auto& each : closing)
        each(close_outcome{});
}

void node::close_if_done()
{
    {
        const std::lock_guard guard(mutex_);
        if (closing_.empty() || attempts_ > 0 || in_round_ > 0 || round_due_ || !kept_.empty())
            return;
    }
    finish_close();
}

void node::finish_close()
{
    std::vector<completion<close_outcome>> closing;
    node_claims unreleased;
    lease_clock::duration rest{};
    {
        const std::lock_guard guard(mutex_);
        if (closing_.empty())
            return;
        disarm();
        closing.swap(closing_);
        unreleased.swap(kept_);
        ++epoch_;
        rest =
            std::max(std::exchange(close_by_, time_point::max()) - lease_clock::now(), lease_clock::duration::zero());
    }
    if (!unreleased.empty())
        on_given_up_(unreleased.size());
    backend_->start_close(rest, [closing = std::move(closing)](close_outcome) mutable {
        for (auto& each : closing)
            each(close_outcome{});
    });
}

void node::context_shutdown() noexcept
{
    node_claims unreleased;
    std::vector<completion<close_outcome>> closing;
    const std::lock_guard guard(mutex_);
    is_shut_down_ = true;
    timer_.reset();
    armed_for_ = time_point::max();
    unreleased.swap(kept_);
    closing.swap(closing_);
}

} // namespace colock::inline v0::quorum
