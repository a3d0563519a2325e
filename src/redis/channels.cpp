// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/channels.hpp"

#include <algorithm>

namespace colock::redis::detail {

std::pair<channels::channel_ptr, std::uint64_t> channels::watch(const std::string& name)
{
    const std::lock_guard guard(mutex_);
    auto found = known_.find(name);
    if (found == known_.end()) {
        const auto added = std::make_shared<channel>(name);
        added->place = idle_.insert(idle_.end(), added);
        try {
            found = known_.emplace(added->name, added).first;
        } catch (...) {
            idle_.erase(added->place);
            throw;
        }
    }
    auto& watched = *found->second;
    ++watched.interested;
    // On a channel that is armed already, a message may have passed since the watcher last looked at the lock.
    const bool is_armed = watched.armed == round_;
    return {found->second, is_armed ? 0 : watched.changes.load(std::memory_order_relaxed)};
}

void channels::leave(channel& watched, lease_clock::time_point now) noexcept
{
    const std::lock_guard guard(mutex_);
    if (--watched.interested > 0)
        return;
    watched.unused_since = now;
    if (watched.lingers)
        return;
    const auto found = known_.find(watched.name);
    if (found == known_.end() || found->second.get() != &watched)
        return;
    try {
        lingering_.push_back({now, found->second});
        watched.lingers = true;
    } catch (...) {
        // Without memory it stays until somebody has used it again.
    }
}

bool channels::wait(const channel_ptr& watched, const claim& who, std::uint64_t seen, completion<woken>& done)
{
    const std::lock_guard guard(mutex_);
    if (watched->changes.load(std::memory_order_acquire) != seen)
        return false;
    const auto now = lease_clock::now();
    if (polls_)
        waits_.push_back({now, watched});
    watched->waiters.push_back({&who, std::move(done), now});
    return true;
}

void channels::cancel_wait(const channel& watched, const claim& who) noexcept
{
    completion<woken> dropped;
    const std::lock_guard guard(mutex_);
    auto& waiters = const_cast<channel&>(watched).waiters;
    const auto found = std::ranges::find(waiters, &who, &channel::waiter::who);
    if (found == waiters.end())
        return;
    dropped.swap(found->done);
    waiters.erase(found);
}

bool channels::empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return known_.empty();
}

bool channels::armed(const std::string& name) const
{
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(name);
    return found != known_.end() && found->second->armed == round_;
}

std::vector<channels::channel_ptr> channels::take_idle(std::size_t most)
{
    const std::lock_guard guard(mutex_);
    std::vector<channel_ptr> taken;
    taken.reserve(std::min(most, idle_.size()));
    while (taken.size() < most && !idle_.empty()) {
        taken.push_back(idle_.front());
        taken.back()->asked = round_;
        asked_.splice(asked_.end(), idle_, idle_.begin());
    }
    return taken;
}

void channels::take_waiters(channel& changed, completions& into)
{
    changed.changes.fetch_add(1, std::memory_order_acq_rel);
    for (auto& each : changed.waiters)
        into.push_back(std::move(each.done));
    changed.waiters.clear();
}

channels::completions channels::arm(const std::vector<channel_ptr>& asked)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    for (const auto& each : asked) {
        each->armed = round_;
        take_waiters(*each, ended);
    }
    return ended;
}

channels::completions channels::wake(const std::vector<channel_ptr>& which)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    for (const auto& each : which)
        take_waiters(*each, ended);
    return ended;
}

channels::completions channels::changed(const std::vector<std::string>& names)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    for (const auto& name : names) {
        if (const auto found = known_.find(name); found != known_.end())
            take_waiters(*found->second, ended);
    }
    return ended;
}

void channels::begin_round() noexcept
{
    const std::lock_guard guard(mutex_);
    ++round_;
    idle_.splice(idle_.end(), asked_);
}

void channels::forget(channel& which)
{
    auto& in = which.asked == round_ ? asked_ : idle_;
    in.erase(which.place);
    known_.erase(which.name);
}

channels::unused channels::forget_unused(lease_clock::time_point now, lease_clock::duration linger, std::size_t most)
{
    unused found;
    const std::lock_guard guard(mutex_);
    for (std::size_t looked = 0; !lingering_.empty() && lingering_.front().since + linger <= now; ++looked) {
        if (looked == most) {
            found.more = true;
            break;
        }
        const auto each = std::move(lingering_.front().which);
        lingering_.pop_front();
        if (each->interested > 0) {
            each->lingers = false;
        } else if (each->unused_since + linger > now) {
            // Used since then. It may stay twice as long as it has to, and keeps the order.
            lingering_.push_back({now, each});
        } else {
            if (each->asked == round_)
                found.subscribed.push_back(each->name);
            forget(*each);
        }
    }
    return found;
}

void channels::poll(bool on)
{
    const std::lock_guard guard(mutex_);
    polls_ = on;
    if (!on)
        waits_.clear();
}

channels::completions channels::take_due(lease_clock::time_point before, std::size_t most)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    while (ended.size() < most && !waits_.empty() && waits_.front().since <= before) {
        // Another message may have ended that wait; then this finds nothing as old.
        auto& which = *waits_.front().which;
        const auto since = waits_.front().since;
        for (auto each = which.waiters.begin(); each != which.waiters.end();) {
            if (each->since > since) {
                ++each;
                continue;
            }
            which.changes.fetch_add(1, std::memory_order_acq_rel);
            ended.push_back(std::move(each->done));
            each = which.waiters.erase(each);
        }
        waits_.pop_front();
    }
    return ended;
}

channels::completions channels::drop_all() noexcept
{
    decltype(known_) known;
    completions dropped;
    {
        const std::lock_guard guard(mutex_);
        known.swap(known_);
        idle_.clear();
        asked_.clear();
        lingering_.clear();
        waits_.clear();
    }
    for (auto& [name, each] : known) {
        for (auto& waiter : std::exchange(each->waiters, {}))
            dropped.push_back(std::move(waiter.done));
    }
    return dropped;
}

} // namespace colock::redis::detail
