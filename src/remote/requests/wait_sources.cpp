// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/wait_sources.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace colock::inline v0::remote {

std::pair<wait_sources::source_ptr, std::uint64_t> wait_sources::add_user(const std::string& name)
{
    const std::lock_guard guard(mutex_);
    auto found = known_.find(name);
    if (found == known_.end()) {
        const auto added = std::make_shared<wait_source>(name);
        added->place = unrequested_.insert(unrequested_.end(), added);
        try {
            added->entry = found = known_.emplace(added->name, added).first;
            added->known = true;
        } catch (...) {
            unrequested_.erase(added->place);
            throw;
        }
    }
    auto& source = *found->second;
    ++source.user_count;
    const auto changes = source.changes.load(std::memory_order_relaxed);
    if (source.active_round != round_)
        return {found->second, changes};
    // The caller may have missed an event since it last checked the lock, so 0 makes it check again. If no event has
    // arrived since a confirmation, `wait` decides by the connection in which the caller checked.
    return {found->second, source.confirmed == changes ? changes - 1 : 0};
}

void wait_sources::remove_user(wait_source& source, lease_clock::time_point now) noexcept
{
    const std::lock_guard guard(mutex_);
    if (--source.user_count > 0)
        return;
    source.unused_since = now;
    if (source.lingers || !source.known)
        return;
    try {
        lingering_.push_back({now, source.entry->second});
        source.lingers = true;
    } catch (...) {
        // Without memory, the source remains until its next use has ended.
    }
}

bool wait_sources::is_active(const wait_source& source) const noexcept
{
    const std::lock_guard guard(mutex_);
    return source.active_round == round_;
}

std::uint64_t wait_sources::revision(const wait_source& source) const noexcept
{
    const std::lock_guard guard(mutex_);
    return source.active_round == round_ ? source.revision : 0;
}

bool wait_sources::wait(const source_ptr& source, const claim& waiting_claim, std::uint64_t seen,
    lease_clock::time_point now, connection_number checked_on, completion<wait_outcome>& done, bool polls)
{
    const std::lock_guard guard(mutex_);
    const auto changes = source->changes.load(std::memory_order_acquire);
    const bool was_confirmed =
        checked_on != 0 && checked_on == source->confirmed_in && changes == source->confirmed && changes == seen + 1;
    if (changes != seen && !was_confirmed)
        return false;
    if (source->is_ended && source->known)
        mark_inactive(*source);
    if (polls_ || polls)
        waits_.push_back({now, source});
    source->waiters.push_back({&waiting_claim, std::move(done), now, checked_on});
    return true;
}

bool wait_sources::cancel_wait(const wait_source& source, const claim& waiting_claim) noexcept
{
    completion<wait_outcome> dropped;
    const std::lock_guard guard(mutex_);
    auto& waiters = const_cast<wait_source&>(source).waiters;
    const auto found = std::ranges::find(waiters, &waiting_claim, &wait_source::waiter::waiting_claim);
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

bool wait_sources::is_active(const std::string& name) const
{
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(name);
    return found != known_.end() && found->second->active_round == round_;
}

std::vector<wait_sources::source_ptr> wait_sources::take_unrequested(std::size_t max_count)
{
    const std::lock_guard guard(mutex_);
    std::vector<source_ptr> taken;
    taken.reserve(std::min(max_count, unrequested_.size()));
    while (taken.size() < max_count && !unrequested_.empty()) {
        taken.push_back(unrequested_.front());
        taken.back()->requested_round = round_;
        requested_.splice(requested_.end(), unrequested_, unrequested_.begin());
    }
    return taken;
}

void wait_sources::take_waiters(wait_source& source, completions& result)
{
    source.changes.fetch_add(1, std::memory_order_acq_rel);
    for (auto& each : source.waiters)
        result.push_back(std::move(each.done));
    source.waiters.clear();
}

wait_sources::completions wait_sources::activate(const std::vector<source_ptr>& sources)
{
    const std::lock_guard guard(mutex_);
    completions result;
    for (const auto& each : sources) {
        each->active_round = round_;
        take_waiters(*each, result);
    }
    return result;
}

wait_sources::completions wait_sources::set_active(const std::string& name, bool is_active)
{
    const std::lock_guard guard(mutex_);
    completions result;
    const auto found = known_.find(name);
    if (found == known_.end())
        return result;
    auto& source = *found->second;
    source.active_round = is_active ? round_ : 0;
    source.is_ended = !is_active;
    take_waiters(source, result);
    return result;
}

wait_sources::completions wait_sources::activate_unchanged(const source_ptr& source, connection_number checked_on)
{
    const std::lock_guard guard(mutex_);
    completions result;
    source->active_round = round_;
    source->confirmed = source->changes.fetch_add(1, std::memory_order_acq_rel) + 1;
    source->confirmed_in = checked_on;
    std::erase_if(source->waiters, [&](wait_source::waiter& each) {
        if (each.checked_on == checked_on)
            return false;
        result.push_back(std::move(each.done));
        return true;
    });
    return result;
}

wait_sources::completions wait_sources::activate_for(const source_ptr& source, connection_number checked_on,
    std::uint64_t revision, const std::function<bool(const claim&)>& concerns)
{
    const std::lock_guard guard(mutex_);
    completions result;
    source->active_round = round_;
    source->revision = revision;
    source->changes.fetch_add(1, std::memory_order_acq_rel);
    std::erase_if(source->waiters, [&](wait_source::waiter& each) {
        if (each.checked_on == checked_on && !concerns(*each.waiting_claim))
            return false;
        result.push_back(std::move(each.done));
        return true;
    });
    return result;
}

wait_sources::completions wait_sources::wake(const std::vector<source_ptr>& sources)
{
    const std::lock_guard guard(mutex_);
    completions result;
    for (const auto& each : sources)
        take_waiters(*each, result);
    return result;
}

wait_sources::completions wait_sources::wake_keys(const std::vector<std::string>& names)
{
    const std::lock_guard guard(mutex_);
    completions result;
    for (const auto& name : names) {
        if (const auto found = known_.find(name); found != known_.end())
            take_waiters(*found->second, result);
    }
    return result;
}

wait_sources::completions wait_sources::wake_if(const std::function<bool(std::string_view)>& is_woken)
{
    const std::lock_guard guard(mutex_);
    completions result;
    for (const auto& [name, source] : known_) {
        if (is_woken(name))
            take_waiters(*source, result);
    }
    return result;
}

wait_sources::completions wait_sources::deactivate_and_wake(const std::vector<std::string>& names)
{
    const std::lock_guard guard(mutex_);
    completions result;
    for (const auto& name : names) {
        const auto found = known_.find(name);
        if (found == known_.end())
            continue;
        mark_inactive(*found->second);
        take_waiters(*found->second, result);
    }
    return result;
}

void wait_sources::mark_inactive(wait_source& source)
{
    if (source.requested_round == round_)
        unrequested_.splice(unrequested_.end(), requested_, source.place);
    source.requested_round = source.active_round = 0;
    source.is_ended = false;
}

bool wait_sources::deactivate(const std::string& name)
{
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(name);
    if (found == known_.end())
        return false;
    mark_inactive(*found->second);
    found->second->changes.fetch_add(1, std::memory_order_acq_rel);
    return found->second->user_count > 0;
}

void wait_sources::begin_round() noexcept
{
    const std::lock_guard guard(mutex_);
    ++round_;
    unrequested_.splice(unrequested_.end(), requested_);
}

void wait_sources::forget(wait_source& source)
{
    auto& list = source.requested_round == round_ ? requested_ : unrequested_;
    source.known = false;
    list.erase(source.place);
    known_.erase(source.entry);
}

wait_sources::unused wait_sources::forget_unused(
    lease_clock::time_point now, lease_clock::duration linger, std::size_t max_count)
{
    unused found;
    const std::lock_guard guard(mutex_);
    for (std::size_t checked_count = 0; !lingering_.empty() && lingering_.front().since + linger <= now;
        ++checked_count)
    {
        if (checked_count == max_count) {
            found.more = true;
            break;
        }
        const auto each = std::move(lingering_.front().source);
        lingering_.pop_front();
        if (each->user_count > 0) {
            each->lingers = false;
        } else if (each->unused_since + linger > now) {
            // The source was used since then. It may stay up to twice as long as necessary, so that the order is
            // preserved.
            lingering_.push_back({now, each});
        } else {
            if (each->requested_round == round_)
                found.requested.push_back(each->name);
            forget(*each);
        }
    }
    return found;
}

void wait_sources::set_polling(bool polls)
{
    const std::lock_guard guard(mutex_);
    if (std::exchange(polls_, polls) && !polls)
        waits_.clear();
}

wait_sources::completions wait_sources::take_due(lease_clock::time_point before, std::size_t max_count)
{
    const std::lock_guard guard(mutex_);
    completions result;
    while (result.size() < max_count && !waits_.empty() && waits_.front().since <= before) {
        // If another event has ended this wait, no waiter is as old as `since`.
        auto& source = *waits_.front().source;
        const auto since = waits_.front().since;
        for (auto each = source.waiters.begin(); each != source.waiters.end();) {
            if (each->since > since) {
                ++each;
                continue;
            }
            source.changes.fetch_add(1, std::memory_order_acq_rel);
            result.push_back(std::move(each->done));
            each = source.waiters.erase(each);
        }
        waits_.pop_front();
    }
    return result;
}

wait_sources::completions wait_sources::drop_all() noexcept
{
    decltype(known_) all_sources;
    completions dropped;
    {
        const std::lock_guard guard(mutex_);
        all_sources.swap(known_);
        for (auto& [name, each] : all_sources)
            each->known = false;
        unrequested_.clear();
        requested_.clear();
        lingering_.clear();
        waits_.clear();
    }
    for (auto& [name, each] : all_sources) {
        for (auto& waiter : std::exchange(each->waiters, {}))
            dropped.push_back(std::move(waiter.done));
    }
    return dropped;
}

source_subscription::source_subscription(std::shared_ptr<wait_sources> sources, const std::string& name)
    : sources_(std::move(sources))
{
    std::tie(watched_, seen_) = sources_->add_user(name);
}

source_subscription::~source_subscription()
{
    if (sources_)
        sources_->remove_user(*watched_, lease_clock::now());
}

bool source_subscription::wait(
    const claim& waiting_claim, completion<wait_outcome>& done, connection_number checked_on, bool polls)
{
    return sources_->wait(watched_, waiting_claim, seen_, lease_clock::now(), checked_on, done, polls);
}

} // namespace colock::inline v0::remote
