// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/context_service.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

#include <algorithm>

namespace colock::detail {

asio::execution_context::id context_service::id;

context_service::context_service(asio::execution_context& context) : service(context) {}

void context_service::join(const asio::any_io_executor& executor, std::weak_ptr<context_member> member)
{
    auto& service = asio::use_service<context_service>(asio::query(executor, asio::execution::context));
    const std::lock_guard guard(service.mutex_);
    auto& members = service.members_;
    if (members.size() >= service.prune_at_) {
        std::erase_if(members, [](const auto& known) { return known.expired(); });
        service.prune_at_ = std::max<std::size_t>(64, 2 * members.size());
    }
    members.push_back(std::move(member));
}

std::vector<std::shared_ptr<context_member>> context_service::members()
{
    std::vector<std::shared_ptr<context_member>> alive;
    const std::lock_guard guard(mutex_);
    alive.reserve(members_.size());
    for (const auto& member : members_) {
        if (auto strong = member.lock())
            alive.push_back(std::move(strong));
    }
    return alive;
}

void context_service::shutdown() noexcept
{
    for (const auto& member : members())
        member->context_shutdown();
}

void context_service::notify_fork(asio::execution_context::fork_event event)
{
    if (event != asio::execution_context::fork_child)
        return;
    for (const auto& member : members())
        member->context_forked();
}

std::shared_ptr<executor_cell> executor_cell::make(asio::any_io_executor executor)
{
    auto cell = std::make_shared<executor_cell>();
    cell->executor_ = std::move(executor);
    context_service::join(cell->executor_, cell);
    return cell;
}

asio::any_io_executor executor_cell::get() const
{
    const std::lock_guard guard(mutex_);
    return executor_;
}

void executor_cell::context_shutdown() noexcept
{
    asio::any_io_executor last;
    const std::lock_guard guard(mutex_);
    last.swap(executor_);
}

} // namespace colock::detail

namespace colock {

void join_context(const asio::any_io_executor& executor, std::weak_ptr<context_member> member)
{
    detail::context_service::join(executor, std::move(member));
}

} // namespace colock
