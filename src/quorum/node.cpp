// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "quorum/node.hpp"

#include "quorum/node_claim.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace colock::quorum {

namespace {

/// Between two rounds of attempts none of which was answered.
constexpr std::chrono::milliseconds pause{250};
/// In one round. They travel together, so that a node that is back is soon clean, and one that is away costs next to
/// nothing.
constexpr std::size_t most_in_round = 16;
/// So that a crowd that expires together does not hold up the loop.
constexpr std::size_t most_given_up = 1024;

} // namespace

std::shared_ptr<node> node::make(
    std::shared_ptr<adapter> backend, std::chrono::milliseconds patience, std::function<void(std::uint64_t)> gave_up)
{
    auto made = std::make_shared<node>(std::move(backend), patience, std::move(gave_up));
    if (const auto executor = made->backend_->executor())
        join_context(executor, made);
    return made;
}

node::node(
    std::shared_ptr<adapter> backend, std::chrono::milliseconds patience, std::function<void(std::uint64_t)> gave_up)
    : backend_(std::move(backend)), patience_(patience), gave_up_(std::move(gave_up))
{
}

std::uint64_t node::attempt_begins()
{
    const std::lock_guard guard(mutex_);
    ++attempts_;
    return epoch_;
}

void node::attempt_ends()
{
    {
        const std::lock_guard guard(mutex_);
        --attempts_;
    }
    close_if_done();
}

void node::keep(std::shared_ptr<node_claim> left, std::uint64_t epoch)
{
    {
        const std::lock_guard guard(mutex_);
        if (dead_)
            return;
        if (epoch == epoch_) {
            kept_.push_back(std::move(left));
            arm();
            return;
        }
    }
    gave_up_(1);
}

void node::try_again()
{
    node_claims now_due;
    std::uint64_t given_up = 0;
    {
        const std::lock_guard guard(mutex_);
        const auto now = lease_clock::now();
        round_due_ = false;
        for (auto n = kept_.size(); n > 0 && now_due.size() < most_in_round && given_up < most_given_up; --n) {
            auto next = std::move(kept_.front());
            kept_.pop_front();
            if (next->has_expired(now, patience_))
                ++given_up;
            else
                now_due.push_back(std::move(next));
        }
        // One more than was asked: the round ends below, and not before all were.
        in_round_ = now_due.size() + 1;
        some_proven_ = given_up == most_given_up;
    }
    if (given_up > 0)
        gave_up_(given_up);
    for (const auto& each : now_due) {
        each->take_back_again([self = shared_from_this()](const release_outcome& outcome) {
            self->on_tried(outcome.status != release_status::failed);
        });
    }
    on_tried(false);
}

void node::on_tried(bool proven)
{
    {
        const std::lock_guard guard(mutex_);
        some_proven_ = some_proven_ || proven;
        if (--in_round_ > 0)
            return;
        const auto executor = backend_->executor();
        if (some_proven_ && !kept_.empty() && executor) {
            // It answers: what is left need not wait.
            round_due_ = true;
            asio::post(executor, [self = shared_from_this()] { self->try_again(); });
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
        due = std::min(due, saturating_add(lease_clock::now(), pause));
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
    timer_->async_wait([weak = weak_from_this(), number = ++armed_](const error_code& failed) {
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
    bool over = false;
    {
        const std::lock_guard guard(mutex_);
        if (number != armed_)
            return;
        armed_for_ = time_point::max();
        over = !closing_.empty() && lease_clock::now() >= give_up_by_;
        if (!over && (kept_.empty() || in_round_ > 0 || round_due_))
            return arm();
        round_due_ = round_due_ || !over;
    }
    if (over)
        finish_close();
    else
        try_again();
}

void node::close(lease_clock::duration deadline, completion<closed> done)
{
    bool tries = false;
    {
        const std::lock_guard guard(mutex_);
        closing_.push_back(std::move(done));
        const auto now = lease_clock::now();
        close_by_ = std::min(close_by_, saturating_add(now, deadline));
        give_up_by_ = std::min(close_by_, saturating_add(now, patience_));
        tries = !kept_.empty() && in_round_ == 0 && !std::exchange(round_due_, true);
        if (tries || attempts_ > 0 || in_round_ > 0)
            arm();
    }
    if (tries)
        try_again();
    else
        close_if_done();
}

void node::cancel_close() noexcept
{
    std::vector<completion<closed>> closing;
    {
        const std::lock_guard guard(mutex_);
        closing.swap(closing_);
        close_by_ = time_point::max();
        give_up_by_ = time_point::max();
    }
    backend_->cancel_close();
    for (auto& each : closing)
        each(closed{});
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
    std::vector<completion<closed>> closing;
    node_claims left;
    lease_clock::duration rest{};
    {
        const std::lock_guard guard(mutex_);
        if (closing_.empty())
            return;
        disarm();
        closing.swap(closing_);
        left.swap(kept_);
        ++epoch_;
        rest =
            std::max(std::exchange(close_by_, time_point::max()) - lease_clock::now(), lease_clock::duration::zero());
    }
    if (!left.empty())
        gave_up_(left.size());
    backend_->start_close(rest, [closing = std::move(closing)](closed) mutable {
        for (auto& each : closing)
            each(closed{});
    });
}

void node::context_shutdown() noexcept
{
    node_claims left;
    std::vector<completion<closed>> closing;
    const std::lock_guard guard(mutex_);
    dead_ = true;
    timer_.reset();
    armed_for_ = time_point::max();
    left.swap(kept_);
    closing.swap(closing_);
}

void node::context_forked() noexcept
{
    node_claims left;
    const std::lock_guard guard(mutex_);
    // The parent takes back what is its own.
    left.swap(kept_);
    ++epoch_;
}

} // namespace colock::quorum
