// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/errands.hpp"

#include <utility>
#include <vector>

namespace colock::zookeeper::detail {

bool errands::add(operation_ptr which)
{
    const std::lock_guard guard(mutex_);
    if (closed_)
        return false;
    waiting_.push_back(std::move(which));
    return waiting_.size() == 1;
}

bool errands::empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return waiting_.empty();
}

operation_ptr errands::take()
{
    operation_ptr next;
    {
        const std::lock_guard guard(mutex_);
        if (waiting_.empty())
            return {};
        next = std::move(waiting_.front());
        waiting_.pop_front();
    }
    intrusive_ptr_add_ref(next.get());
    running_.push_back(*next);
    return next;
}

void errands::put_back(operation& which)
{
    const operation_ptr kept(&which);
    ended(which);
    const std::lock_guard guard(mutex_);
    if (!closed_)
        waiting_.push_front(kept);
}

void errands::ended(operation& which) noexcept
{
    if (which.is_linked())
        running_.erase_and_dispose(running_.iterator_to(which), [](operation* each) { intrusive_ptr_release(each); });
}

void errands::postpone(lease_clock::duration by) noexcept
{
    if (by == lease_clock::duration::zero())
        return;
    for (auto& each : running_)
        each.deadline = saturating_add(each.deadline, by);
    const std::lock_guard guard(mutex_);
    for (const auto& each : waiting_)
        each->deadline = saturating_add(each->deadline, by);
}

void errands::end_overdue(lease_clock::time_point now, const failure_ptr& trouble)
{
    // Those that were put back and started again stand behind younger ones, and end a little late.
    while (!running_.empty() && remote::deadlines::is_over(running_.front().deadline, now)) {
        const operation_ptr overdue(&running_.front());
        ended(*overdue);
        overdue->fail(delivery::unanswered, remote::deadlines::overdue(delivery::unanswered, trouble));
    }
    std::vector<operation_ptr> over;
    {
        const std::lock_guard guard(mutex_);
        std::erase_if(waiting_, [&](const operation_ptr& each) {
            const bool is_over = each->unwanted() || remote::deadlines::is_over(each->deadline, now);
            if (is_over)
                over.push_back(each);
            return is_over;
        });
    }
    for (const auto& each : over)
        each->fail(delivery::unsent, remote::deadlines::overdue(delivery::unsent, trouble));
}

void errands::fail_waiting(const failure_ptr& why)
{
    std::deque<operation_ptr> all;
    {
        const std::lock_guard guard(mutex_);
        all.swap(waiting_);
    }
    for (const auto& each : all)
        each->fail(delivery::unsent, why);
}

void errands::fail_running(const failure_ptr& why)
{
    while (!running_.empty()) {
        const operation_ptr each(&running_.front());
        ended(*each);
        each->fail(delivery::unanswered, why);
    }
}

void errands::drop_all() noexcept
{
    std::deque<operation_ptr> all;
    {
        const std::lock_guard guard(mutex_);
        closed_ = true;
        all.swap(waiting_);
    }
    running_.clear_and_dispose([](operation* each) { intrusive_ptr_release(each); });
}

} // namespace colock::zookeeper::detail
