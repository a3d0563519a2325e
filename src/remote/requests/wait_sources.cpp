// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/wait_sources.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace colock::remote {

std::pair<wait_sources::source_ptr, std::uint64_t> wait_sources::watch(const std::string& name)
{
    const std::lock_guard guard(mutex_);
    auto found = known_.find(name);
    if (found == known_.end()) {
        const auto added = std::make_shared<wait_source>(name);
        added->place = idle_.insert(idle_.end(), added);
        try {
            added->entry = found = known_.emplace(added->name, added).first;
            added->known = true;
        } catch (...) {
            idle_.erase(added->place);
            throw;
        }
    }
    auto& watched = *found->second;
    ++watched.interested;
    const auto changes = watched.changes.load(std::memory_order_relaxed);
    if (watched.armed != round_)
        return {found->second, changes};
    // The caller may have missed an event since it last checked the lock, so 0 makes it check again. If no event has
    // arrived since a confirmation, `wait` decides by the connection in which the caller checked.
    return {found->second, watched.confirmed == changes ? changes - 1 : 0};
}

void wait_sources::leave(wait_source& watched, lease_clock::time_point now) noexcept
{
    const std::lock_guard guard(mutex_);
    if (--watched.interested > 0)
        return;
    watched.unused_since = now;
    if (watched.lingers || !watched.known)
        return;
    try {
        lingering_.push_back({now, watched.entry->second});
        watched.lingers = true;
    } catch (...) {
        // Without memory, the source remains until its next use has ended.
    }
}

bool wait_sources::is_armed(const wait_source& watched) const noexcept
{
    const std::lock_guard guard(mutex_);
    return watched.armed == round_;
}

std::uint64_t wait_sources::revision(const wait_source& watched) const noexcept
{
    const std::lock_guard guard(mutex_);
    return watched.armed == round_ ? watched.revision : 0;
}

bool wait_sources::wait(const source_ptr& watched, const claim& who, std::uint64_t seen, lease_clock::time_point now,
    connection_number looked_in, completion<woken>& done)
{
    const std::lock_guard guard(mutex_);
    const auto changes = watched->changes.load(std::memory_order_acquire);
    const bool was_confirmed =
        looked_in != 0 && looked_in == watched->confirmed_in && changes == watched->confirmed && changes == seen + 1;
    if (changes != seen && !was_confirmed)
        return false;
    if (polls_)
        waits_.push_back({now, watched});
    watched->waiters.push_back({&who, std::move(done), now, looked_in});
    return true;
}

bool wait_sources::cancel_wait(const wait_source& watched, const claim& who) noexcept
{
    completion<woken> dropped;
    const std::lock_guard guard(mutex_);
    auto& waiters = const_cast<wait_source&>(watched).waiters;
    const auto found = std::ranges::find(waiters, &who, &wait_source::waiter::who);
    if (found == waiters.end())
        return false;
    dropped.swap(found->done);
    // Removes the waiter without preserving the order, because there may be thousands of waiters.
    if (found != std::prev(waiters.end()))
        *found = std::move(waiters.back());
    waiters.pop_back();
    return true;
}

bool wait_sources::empty() const noexcept
{
    const std::lock_guard guard(mutex_);
    return known_.empty();
}

bool wait_sources::armed(const std::string& name) const
{
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(name);
    return found != known_.end() && found->second->armed == round_;
}

std::vector<wait_sources::source_ptr> wait_sources::take_idle(std::size_t most)
{
    const std::lock_guard guard(mutex_);
    std::vector<source_ptr> taken;
    taken.reserve(std::min(most, idle_.size()));
    while (taken.size() < most && !idle_.empty()) {
        taken.push_back(idle_.front());
        taken.back()->asked = round_;
        asked_.splice(asked_.end(), idle_, idle_.begin());
    }
    return taken;
}

void wait_sources::take_waiters(wait_source& changed, completions& into)
{
    changed.changes.fetch_add(1, std::memory_order_acq_rel);
    for (auto& each : changed.waiters)
        into.push_back(std::move(each.done));
    changed.waiters.clear();
}

wait_sources::completions wait_sources::arm(const std::vector<source_ptr>& asked)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    for (const auto& each : asked) {
        each->armed = round_;
        take_waiters(*each, ended);
    }
    return ended;
}

wait_sources::completions wait_sources::arm_unchanged(const source_ptr& asked, connection_number seen_in)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    asked->armed = round_;
    asked->confirmed = asked->changes.fetch_add(1, std::memory_order_acq_rel) + 1;
    asked->confirmed_in = seen_in;
    std::erase_if(asked->waiters, [&](wait_source::waiter& each) {
        if (each.looked_in == seen_in)
            return false;
        ended.push_back(std::move(each.done));
        return true;
    });
    return ended;
}

wait_sources::completions wait_sources::arm_for(const source_ptr& asked, connection_number seen_in,
    std::uint64_t revision, const std::function<bool(const claim&)>& concerns)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    asked->armed = round_;
    asked->revision = revision;
    asked->changes.fetch_add(1, std::memory_order_acq_rel);
    std::erase_if(asked->waiters, [&](wait_source::waiter& each) {
        if (each.looked_in == seen_in && !concerns(*each.who))
            return false;
        ended.push_back(std::move(each.done));
        return true;
    });
    return ended;
}

wait_sources::completions wait_sources::wake(const std::vector<source_ptr>& which)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    for (const auto& each : which)
        take_waiters(*each, ended);
    return ended;
}

wait_sources::completions wait_sources::changed(const std::vector<std::string>& names)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    for (const auto& name : names) {
        if (const auto found = known_.find(name); found != known_.end())
            take_waiters(*found->second, ended);
    }
    return ended;
}

wait_sources::completions wait_sources::disarmed(const std::vector<std::string>& names)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    for (const auto& name : names) {
        const auto found = known_.find(name);
        if (found == known_.end())
            continue;
        disarm(*found->second);
        take_waiters(*found->second, ended);
    }
    return ended;
}

void wait_sources::disarm(wait_source& which)
{
    if (which.asked == round_)
        idle_.splice(idle_.end(), asked_, which.place);
    which.asked = which.armed = 0;
}

bool wait_sources::lapse(const std::string& name)
{
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(name);
    if (found == known_.end())
        return false;
    disarm(*found->second);
    found->second->changes.fetch_add(1, std::memory_order_acq_rel);
    return found->second->interested > 0;
}

void wait_sources::begin_round() noexcept
{
    const std::lock_guard guard(mutex_);
    ++round_;
    idle_.splice(idle_.end(), asked_);
}

void wait_sources::forget(wait_source& which)
{
    auto& in = which.asked == round_ ? asked_ : idle_;
    which.known = false;
    in.erase(which.place);
    known_.erase(which.entry);
}

wait_sources::unused wait_sources::forget_unused(
    lease_clock::time_point now, lease_clock::duration linger, std::size_t most)
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
            // The source was used since then. It may stay up to twice as long as necessary, so that the order is
            // preserved.
            lingering_.push_back({now, each});
        } else {
            if (each->asked == round_)
                found.asked.push_back(each->name);
            forget(*each);
        }
    }
    return found;
}

void wait_sources::poll(bool on)
{
    const std::lock_guard guard(mutex_);
    if (std::exchange(polls_, on) && !on)
        waits_.clear();
}

wait_sources::completions wait_sources::take_due(lease_clock::time_point before, std::size_t most)
{
    const std::lock_guard guard(mutex_);
    completions ended;
    while (ended.size() < most && !waits_.empty() && waits_.front().since <= before) {
        // If another event has ended this wait, no waiter is as old as `since`.
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

wait_sources::completions wait_sources::drop_all() noexcept
{
    decltype(known_) known;
    completions dropped;
    {
        const std::lock_guard guard(mutex_);
        known.swap(known_);
        for (auto& [name, each] : known)
            each->known = false;
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

interest::interest(std::shared_ptr<wait_sources> of, const std::string& name) : of_(std::move(of))
{
    std::tie(watched_, seen_) = of_->watch(name);
}

interest::~interest()
{
    if (of_)
        of_->leave(*watched_, lease_clock::now());
}

bool interest::wait(const claim& who, completion<woken>& done, connection_number looked_in)
{
    return of_->wait(watched_, who, seen_, lease_clock::now(), looked_in, done);
}

} // namespace colock::remote
