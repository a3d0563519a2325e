// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/context_service.hpp"

#include <colock/clock.hpp>

#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>

#include <algorithm>

namespace colock::inline v0::detail {

bool is_system(const asio::any_io_executor& executor)
{
    const asio::execution_context& system = asio::query(asio::system_executor(), asio::execution::context);
    return &context_of(executor) == &system;
}

bool pending_handler::enroll(std::shared_ptr<handler_registry> registry)
{
    registry_ = std::move(registry);
    {
        const std::lock_guard guard(registry_->mutex_);
        if (!registry_->closed_) {
            registry_->handlers_.push_back(*this);
            registered_ = true;
            intrusive_ptr_add_ref(this);
            return true;
        }
    }
    abandon();
    return false;
}

std::shared_ptr<handler_registry> handler_registry::of(const asio::any_io_executor& executor)
{
    return context_service::of(executor).handlers();
}

void handler_registry::close() noexcept
{
    handler_list abandoned;
    {
        const std::lock_guard guard(mutex_);
        closed_ = true;
        for (auto& each : handlers_)
            each.registered_ = false;
        abandoned.swap(handlers_);
    }
    while (!abandoned.empty()) {
        const boost::intrusive_ptr<pending_handler> next(&abandoned.front(), false);
        abandoned.pop_front();
        next->abandon();
    }
}

asio::execution_context::id context_service::id;

context_service::context_service(asio::execution_context& context) : service(context) {}

context_service& context_service::of(const asio::any_io_executor& executor)
{
    auto& context = context_of(executor);
    // Asio shuts down the newest service first, so the strand service must exist before this service. After its
    // shutdown, the strand service destroys a handler inside the call that posts it. The registry's mutex is held
    // during a post, and must not be held while a handler is destroyed.
    if (!asio::has_service<context_service>(context))
        static_cast<void>(asio::make_strand(executor));
    return asio::use_service<context_service>(context);
}

void context_service::join(const asio::any_io_executor& executor, std::weak_ptr<context_member> member)
{
    // The timer service must be shut down after this service, too. Other threads may use the timers of the context
    // until the members have been notified. During a shutdown, no service can be added.
    if (!asio::has_service<context_service>(context_of(executor)))
        static_cast<void>(lease_timer(executor));
    auto& service = of(executor);
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
    handlers_->close();
    for (const auto& member : members())
        member->context_shutdown();
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

} // namespace colock::inline v0::detail

namespace colock::inline v0 {

void join_context(const asio::any_io_executor& executor, std::weak_ptr<context_member> member)
{
    detail::context_service::join(executor, std::move(member));
}

} // namespace colock::inline v0
