// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/spi/lease.hpp>

#include <algorithm>

namespace colock::inline v0 {

bool session_lease::has_ended(time_point now) noexcept
{
    // A session that was seen as ended stays ended.
    auto known = until_.load(std::memory_order_acquire);
    while (known != over) {
        if (now.time_since_epoch().count() < known)
            return false;
        if (until_.compare_exchange_weak(known, over, std::memory_order_acq_rel))
            return true;
    }
    return true;
}

bool session_lease::extend(time_point until) noexcept
{
    const auto requested = until.time_since_epoch().count();
    auto known = until_.load(std::memory_order_acquire);
    while (!has_ended(lease_clock::now())) {
        if (requested <= known || until_.compare_exchange_weak(known, requested, std::memory_order_acq_rel))
            return true;
    }
    notify_ended();
    return false;
}

void session_lease::end() noexcept
{
    until_.store(over, std::memory_order_release);
    notify_ended();
}

void session_lease::watch(const std::shared_ptr<watcher>& target)
{
    const std::lock_guard guard(mutex_);
    std::erase_if(watchers_, [](const auto& each) { return each.expired(); });
    const auto is_known = [&](const auto& each) { return !each.owner_before(target) && !target.owner_before(each); };
    if (std::ranges::none_of(watchers_, is_known))
        watchers_.push_back(target);
}

std::vector<std::shared_ptr<session_lease::watcher>> session_lease::watchers()
{
    std::vector<std::shared_ptr<watcher>> alive;
    const std::lock_guard guard(mutex_);
    for (const auto& each : watchers_) {
        if (auto strong = each.lock())
            alive.push_back(std::move(strong));
    }
    return alive;
}

void session_lease::notify_ended() noexcept
{
    for (const auto& each : watchers())
        each->on_session_ended(*this);
}

} // namespace colock::inline v0
