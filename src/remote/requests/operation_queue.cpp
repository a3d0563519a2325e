// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/operation_queue.hpp"

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace colock::inline v0::remote {

namespace {

template <class List>
operation_ptr pop_front(List& list)
{
    operation_ptr first(&list.front(), false);
    list.pop_front();
    return first;
}

} // namespace

/// Number of operations that may still be checked in this handler.
class operation_queue::budget
{
public:
    bool spend() noexcept
    {
        if (left_ == 0)
            return false;
        --left_;
        return true;
    }
    [[nodiscard]] bool spent() const noexcept { return left_ == 0; }

private:
    std::size_t left_ = max_per_handler;
};

bool operation_queue::add(operation_ptr operation)
{
    const std::lock_guard guard(mutex_);
    if (closed_)
        return false;
    const bool is_first = waiting_.empty();
    waiting_.push_back(*operation.detach());
    ++waiting_count_;
    return is_first;
}

bool operation_queue::empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return waiting_.empty();
}

std::size_t operation_queue::waiting_count() const noexcept
{
    const std::lock_guard guard(mutex_);
    return waiting_count_;
}

const operation* operation_queue::first() const noexcept
{
    const std::lock_guard guard(mutex_);
    return waiting_.empty() ? nullptr : &waiting_.front();
}

operation_ptr operation_queue::take()
{
    operation_ptr next;
    {
        const std::lock_guard guard(mutex_);
        if (waiting_.empty())
            return {};
        if (is_scanning_ && scan_position_ == waiting_.begin())
            ++scan_position_;
        next = pop_front(waiting_);
        --waiting_count_;
    }
    next->generation = generation_;
    alone_in_a_row_ = in_flight_.empty() ? alone_in_a_row_ + 1 : 0;
    intrusive_ptr_add_ref(next.get());
    in_flight_.push_back(*next);
    ++in_flight_count_;
    return next;
}

void operation_queue::put_back(operation& operation)
{
    // The operation was given up, and `end_some` will end it.
    if (operation.generation != generation_)
        return;
    operation_ptr kept(&operation);
    remove(operation);
    const std::lock_guard guard(mutex_);
    if (closed_)
        return;
    waiting_.push_front(*kept.detach());
    ++waiting_count_;
}

std::vector<operation_ptr> operation_queue::take_waiting(const std::function<bool(const operation&)>& is_taken)
{
    std::vector<operation_ptr> taken;
    const std::lock_guard guard(mutex_);
    taken.reserve(waiting_count_);
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        auto& each = *at++;
        if (!is_taken(each))
            continue;
        // `end_some` continues at an operation that stays.
        if (is_scanning_ && scan_position_ != waiting_.end() && &*scan_position_ == &each)
            scan_position_ = at;
        each.unlink();
        --waiting_count_;
        taken.emplace_back(&each, false);
    }
    return taken;
}

void operation_queue::remove(operation& operation) noexcept
{
    if (!operation.is_linked())
        return;
    operation.unlink();
    // Operations that were given up are not counted in `in_flight_count_` any more.
    if (operation.generation == generation_)
        --in_flight_count_;
    intrusive_ptr_release(&operation);
}

void operation_queue::postpone(lease_clock::duration delay) noexcept
{
    if (delay == lease_clock::duration::zero())
        return;
    for (auto& each : in_flight_)
        each.deadline = saturating_add(each.deadline, delay);
    const std::lock_guard guard(mutex_);
    for (auto& each : waiting_)
        each.deadline = saturating_add(each.deadline, delay);
}

void operation_queue::give_up(list& all, delivery status, const failure_ptr& failure)
{
    if (all.empty())
        return;
    given_up_.push_back({.status = status, .failure = failure});
    given_up_.back().operations.swap(all);
}

void operation_queue::give_up_waiting(const failure_ptr& failure)
{
    const std::lock_guard guard(mutex_);
    give_up(waiting_, delivery::unsent, failure);
    waiting_count_ = 0;
    is_scanning_ = false;
}

void operation_queue::give_up_in_flight(const failure_ptr& failure)
{
    give_up(in_flight_, delivery::unanswered, failure);
    in_flight_count_ = 0;
    ++generation_;
}

bool operation_queue::end_some(
    lease_clock::time_point now, const failure_ptr& connection_failure, lease_clock::time_point new_deadline)
{
    budget left;
    end_given_up(left);
    end_overdue_in_flight(left, now, connection_failure);
    end_overdue_waiting(left, now, connection_failure, new_deadline);
    return left.spent() || has_unreported_failures();
}

void operation_queue::end_given_up(budget& left)
{
    while (!given_up_.empty()) {
        // The front is read again in each iteration, because a completion may give up more operations.
        auto& next = given_up_.front();
        if (next.operations.empty()) {
            given_up_.pop_front();
            continue;
        }
        if (!left.spend())
            return;
        const auto status = next.status;
        const auto failure = next.failure;
        pop_front(next.operations)->fail(status, failure);
    }
}

void operation_queue::end_overdue_in_flight(
    budget& left, lease_clock::time_point now, const failure_ptr& connection_failure)
{
    // Operations that were put back and started again, or that were started after operations of queued claims, are
    // behind operations with later deadlines. So they end late, by less than an operation timeout.
    while (!in_flight_.empty() && deadlines::is_over(in_flight_.front().deadline, now) && left.spend()) {
        --in_flight_count_;
        pop_front(in_flight_)
            ->fail(delivery::unanswered, deadlines::overdue_failure(delivery::unanswered, connection_failure));
    }
}

void operation_queue::end_overdue_waiting(budget& left, lease_clock::time_point now,
    const failure_ptr& connection_failure, lease_clock::time_point new_deadline)
{
    std::vector<operation_ptr> over;
    {
        const std::lock_guard guard(mutex_);
        if (!std::exchange(is_scanning_, true))
            scan_position_ = waiting_.begin();
        while (scan_position_ != waiting_.end() && left.spend()) {
            auto& each = *scan_position_++;
            if (!connection_failure && each.is_queued_at_backend())
                each.deadline = new_deadline;
            if (!each.unwanted() && !deadlines::is_over(each.deadline, now))
                continue;
            each.unlink();
            --waiting_count_;
            over.emplace_back(&each, false);
        }
        is_scanning_ = left.spent();
    }
    for (const auto& each : over)
        each->fail(delivery::unsent, deadlines::overdue_failure(delivery::unsent, connection_failure));
}

void operation_queue::drop_all() noexcept
{
    list all;
    {
        const std::lock_guard guard(mutex_);
        closed_ = true;
        all.swap(waiting_);
        waiting_count_ = 0;
        is_scanning_ = false;
    }
    const auto release = [](operation* each) { intrusive_ptr_release(each); };
    all.clear_and_dispose(release);
    in_flight_.clear_and_dispose(release);
    in_flight_count_ = 0;
    for (auto& each : given_up_)
        each.operations.clear_and_dispose(release);
    given_up_.clear();
}

} // namespace colock::inline v0::remote
