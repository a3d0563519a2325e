// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/context_service.hpp"

#include <colock/clock.hpp>

#include <boost/asio/strand.hpp>

#include <algorithm>

namespace colock::inline v0::detail {

std::shared_ptr<context_gate> context_gate::of(const asio::any_io_executor& executor)
{
    return context_service::of(executor).gate();
}

void context_gate::close() noexcept
{
    for (unsigned now = state_.fetch_or(closed) | closed; now != closed; now = state_.load())
        state_.wait(now);
}

asio::execution_context::id context_service::id;

context_service::context_service(asio::execution_context& context) : service(context) {}

context_service& context_service::of(const asio::any_io_executor& executor)
{
    auto& context = execution_context_of(executor);
    // Asio shuts down the newest service first, so the strand service must exist before this service. After its
    // shutdown, the strand service destroys a handler inside the call that posts it.
    if (!asio::has_service<context_service>(context))
        static_cast<void>(asio::make_strand(executor));
    return asio::use_service<context_service>(context);
}

void context_service::join(const asio::any_io_executor& executor, std::weak_ptr<context_member> member)
{
    // The timer service must be shut down after this service, too. Other threads may use the timers of the context
    // until the members have been notified. During a shutdown, no service can be added.
    if (!asio::has_service<context_service>(execution_context_of(executor)))
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
    for (const auto& member : members())
        member->context_shutdown();
    gate_->close();
}

} // namespace colock::inline v0::detail

namespace colock::inline v0 {

void join_context(const asio::any_io_executor& executor, std::weak_ptr<context_member> member)
{
    detail::context_service::join(executor, std::move(member));
}

} // namespace colock::inline v0
