// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "simulation/model_store.hpp"

#include <algorithm>
#include <utility>

namespace colock::simulation {

namespace {

/// A place in a queue must not outlive its process for long.
constexpr auto place_lifetime = std::chrono::seconds(5);

time_point expiry(time_point now, milliseconds ttl)
{
    return ttl > milliseconds::zero() ? saturating_add(now, ttl) : time_point::max();
}

template <class Claims>
auto find_token(Claims& claims, const token& wanted)
{
    return std::ranges::find_if(claims, [&](const auto& each) { return each.data.token == wanted; });
}

} // namespace

const model_store::holder* model_store::find_conflict(const entry& at, const claim_data& wanted, time_point now) const
{
    std::size_t shared = 0;
    const holder* found = nullptr;
    for (const auto& each : at.holders) {
        if (!is_live(each, now))
            continue;
        const bool excludes = each.data.mode == lock_mode::exclusive || wanted.mode == lock_mode::exclusive ||
                              (wanted.max_holders > 0 && ++shared >= wanted.max_holders);
        if (excludes && (!found || each.expires < found->expires))
            found = &each;
    }
    return found;
}

/// Whether a claim that excludes `wanted` is ahead in the queue. Without an order of arrival, only writers are in the
/// queue, and only readers let them go first.
bool model_store::must_queue(const entry& at, const claim_data& wanted, time_point now) const
{
    for (const auto& each : at.queue) {
        if (each.data.token == wanted.token || (!can_.fifo && wanted.mode == lock_mode::exclusive))
            return false;
        if (now < each.expires && (each.data.mode == lock_mode::exclusive || wanted.mode == lock_mode::exclusive))
            return true;
    }
    return false;
}

create_outcome model_store::busy(const holder* conflict, time_point now) const
{
    if (!conflict)
        return create_outcome::busy();
    const bool is_known = can_.expires && conflict->expires != time_point::max();
    return create_outcome::busy(is_known ? conflict->expires - now : lease_clock::duration::zero(),
        conflict->data.owner->owner, conflict->data.owner->host);
}

create_outcome model_store::create(const claim_data& wanted, time_point now)
{
    entry& at = entries_[wanted.key];
    if (abandoned_.contains(wanted.token.bytes()))
        return create_outcome::busy();
    if (const auto own = find_token(at.holders, wanted.token); own != at.holders.end() && is_live(*own, now)) {
        own->expires = expiry(now, wanted.ttl);
        return create_outcome::granted(own->fence);
    }
    const holder* const conflict = find_conflict(at, wanted, now);
    if (conflict || must_queue(at, wanted, now)) {
        std::erase_if(at.queue, [&](const auto& each) { return each.expires <= now; });
        if (const auto own = find_token(at.queue, wanted.token); own != at.queue.end())
            own->expires = now + place_lifetime;
        else if ((can_.fifo || wanted.mode == lock_mode::exclusive) && wanted.keeps_place)
            at.queue.push_back({wanted, now + place_lifetime});
        report("refuses", wanted.key, wanted.token);
        return busy(conflict, now);
    }
    std::erase_if(at.queue, [&](const auto& each) { return each.data.token == wanted.token; });
    std::erase_if(at.holders, [&](const auto& each) { return !is_live(each, now); });
    at.holders.push_back({wanted, expiry(now, wanted.ttl), now, now, can_.fence ? ++last_fence_ : 0});
    report("grants", wanted.key, wanted.token);
    notify_watchers(at, now);
    return create_outcome::granted(at.holders.back().fence);
}

create_all_outcome model_store::create_all(const std::vector<claim_data>& wanted, time_point now)
{
    create_all_outcome result;
    for (std::size_t n = 0; n < wanted.size(); ++n) {
        entry& at = entries_[wanted[n].key];
        const auto own = find_token(at.holders, wanted[n].token);
        const bool is_held = own != at.holders.end() && is_live(*own, now);
        const holder* const conflict = is_held ? nullptr : find_conflict(at, wanted[n], now);
        if (conflict || (!is_held && must_queue(at, wanted[n], now)) || abandoned_.contains(wanted[n].token.bytes())) {
            result.which = n;
            result.refusal = busy(conflict, now);
            return result;
        }
    }
    result.status = create_status::granted;
    for (const auto& each : wanted)
        result.fences.push_back(create(each, now).fence);
    return result;
}

bool model_store::remove(const claim_data& removed, time_point now)
{
    entry& at = entries_[removed.key];
    const auto found = find_token(at.holders, removed.token);
    const bool was_held = found != at.holders.end() && is_live(*found, now);
    if (found != at.holders.end()) {
        report("removes", removed.key, removed.token);
        at.holders.erase(found);
    }
    std::erase_if(at.queue, [&](const auto& each) { return each.data.token == removed.token; });
    std::erase_if(at.watchers, [&](const auto& each) { return each.data.token == removed.token; });
    notify_watchers(at, now);
    return was_held;
}

release_outcome model_store::release(const claim_data& held, time_point now)
{
    release_outcome result;
    result.status = remove(held, now) ? release_status::released : release_status::not_held;
    const entry& at = entries_[held.key];
    result.others_wait = !at.watchers.empty() || !at.queue.empty();
    return result;
}

release_outcome model_store::abandon(const claim_data& abandoned, time_point now)
{
    abandoned_.insert(abandoned.token.bytes());
    report("abandons", abandoned.key, abandoned.token);
    return release(abandoned, now);
}

extend_outcome model_store::extend(const claim_data& held, milliseconds ttl, time_point now)
{
    entry& at = entries_[held.key];
    const auto found = find_token(at.holders, held.token);
    if (found == at.holders.end() || !is_live(*found, now))
        return {.status = extend_status::not_held};
    const auto until = expiry(now, ttl);
    report("extends", held.key, held.token);
    const bool is_nearer = until < std::exchange(found->expires, until);
    found->renewed = now;
    if (is_nearer)
        notify_watchers(at, now, true);
    return {};
}

bool model_store::is_valid(const std::string& key, const token& held, time_point now) const
{
    const auto at = entries_.find(key);
    if (at == entries_.end())
        return false;
    const auto found = find_token(at->second.holders, held);
    return found != at->second.holders.end() && is_live(*found, now);
}

hand_over_outcome model_store::hand_over(
    const claim_data& held, bool is_abandoned, const claim_data& next, time_point now)
{
    hand_over_outcome result;
    result.released = is_abandoned ? abandon(held, now) : release(held, now);
    result.created = create(next, now);
    return result;
}

create_outcome model_store::adopt(const std::string& ticket, const claim_data& wanted, time_point now)
{
    entry& at = entries_[wanted.key];
    if (const auto own = find_token(at.holders, wanted.token); own != at.holders.end() && is_live(*own, now)) {
        own->expires = expiry(now, wanted.ttl);
        return create_outcome::granted(own->fence);
    }
    token::bytes_type bytes{};
    if (ticket.size() != bytes.size() || abandoned_.contains(wanted.token.bytes()))
        return create_outcome::busy();
    std::copy(ticket.begin(), ticket.end(), bytes.begin());
    const auto found = find_token(at.holders, token(bytes));
    if (found == at.holders.end() || !is_live(*found, now) || found->data.mode != wanted.mode)
        return create_outcome::busy();
    taken_.emplace(bytes, now);
    report("moves", wanted.key, wanted.token);
    *found = {wanted, expiry(now, wanted.ttl), now, now, can_.fence ? ++last_fence_ : 0};
    notify_watchers(at, now, true);
    return create_outcome::granted(found->fence);
}

lock_status model_store::status(const holder& of, time_point now) const
{
    const auto wall_time = [](time_point at) {
        return std::chrono::system_clock::time_point(
            std::chrono::duration_cast<std::chrono::system_clock::duration>(at.time_since_epoch()));
    };
    lock_status result{.key = of.data.key,
        .group = of.data.owner->group,
        .mode = of.data.mode,
        .owner = of.data.owner->owner,
        .host = of.data.owner->host,
        .comment = of.data.owner->comment,
        .created = wall_time(of.created),
        .renewed = wall_time(of.renewed)};
    if (can_.expires && of.expires != time_point::max())
        result.remaining = std::chrono::ceil<milliseconds>(std::max(of.expires, now) - now);
    result.fence = of.fence;
    return result;
}

template <class Condition>
std::vector<lock_status> model_store::take_if(Condition condition, time_point now, bool by_force)
{
    std::vector<lock_status> removed;
    for (auto& [key, at] : entries_) {
        const auto before = removed.size();
        std::erase_if(at.holders, [&](const holder& each) {
            if (!condition(each))
                return false;
            removed.push_back(status(each, now));
            report(by_force ? "breaks" : "purges", key, each.data.token);
            if (by_force)
                taken_.emplace(each.data.token.bytes(), now);
            return true;
        });
        if (removed.size() > before)
            notify_watchers(at, now);
    }
    return removed;
}

group_outcome model_store::extend_group(const std::string& id, milliseconds ttl, time_point now)
{
    const auto belongs = [&](const holder& each) { return each.data.owner->group == id && is_live(each, now); };
    group_outcome result;
    std::vector<holder*> found;
    for (auto& [key, at] : entries_) {
        for (auto& each : at.holders) {
            if (belongs(each))
                found.push_back(&each);
        }
    }
    if (std::ranges::any_of(found, [](const holder* each) { return each->expires == time_point::max(); })) {
        result.error = make_failure(errc::invalid_ttl, "one of the locks has no ttl");
        return result;
    }
    for (holder* each : found) {
        result.locks.push_back(status(*each, now));
        each->expires = std::max(each->expires, expiry(now, ttl));
    }
    return result;
}

std::vector<token> model_store::find(const filter& which, time_point now) const
{
    std::vector<token> found;
    for (const auto& [key, at] : entries_) {
        for (const auto& each : at.holders) {
            if (is_live(each, now) && which.matches(status(each, now)))
                found.push_back(each.data.token);
        }
    }
    return found;
}

std::vector<lock_status> model_store::remove(const std::vector<token>& found, time_point now)
{
    return take_if(
        [&](const holder& each) {
            return is_live(each, now) && std::ranges::find(found, each.data.token) != found.end();
        },
        now, true);
}

list_outcome model_store::list(const filter& which, const std::string& cursor, time_point now) const
{
    constexpr std::size_t keys_per_page = 3;
    list_outcome result;
    auto next = which.key        ? entries_.lower_bound(*which.key)
                : cursor.empty() ? entries_.begin()
                                 : entries_.upper_bound(cursor);
    for (std::size_t seen = 0; next != entries_.end() && seen < keys_per_page; ++next, ++seen) {
        for (const auto& each : next->second.holders) {
            if (auto found = status(each, now); is_live(each, now) && which.matches(found))
                result.locks.push_back(std::move(found));
        }
        result.next = next->first;
    }
    if (next == entries_.end() || which.key)
        result.next.clear();
    return result;
}

list_outcome model_store::purge(std::size_t limit, time_point now)
{
    list_outcome result;
    std::size_t left = limit == 0 ? SIZE_MAX : limit;
    result.locks = take_if(
        [&](const holder& each) {
            if (is_live(each, now) || left == 0)
                return false;
            --left;
            return true;
        },
        now, false);
    if (left == 0)
        result.next = "more";
    return result;
}

void model_store::watch(const claim_data& waiting, std::uint64_t id, time_point now, std::function<void()> notify)
{
    entry& at = entries_[waiting.key];
    if (const auto own = find_token(at.queue, waiting.token); own != at.queue.end())
        own->expires = now + place_lifetime;
    std::erase_if(at.watchers, [&](const auto& each) { return each.data.token == waiting.token && each.id == id; });
    if (!find_conflict(at, waiting, now) && !must_queue(at, waiting, now))
        return notify();
    at.watchers.push_back({waiting, id, std::move(notify)});
}

void model_store::notify_watchers(entry& at, time_point now, bool all)
{
    std::vector<std::function<void()>> due;
    std::erase_if(at.watchers, [&](auto& each) {
        if (!all && (find_conflict(at, each.data, now) || must_queue(at, each.data, now)))
            return false;
        report("notifies", each.data.key, each.data.token);
        due.push_back(std::move(each.notify));
        return true;
    });
    for (const auto& each : due)
        each();
}

void model_store::lose_data(time_point now)
{
    for (const auto& [key, at] : entries_) {
        for (const auto& each : at.holders)
            taken_.emplace(each.data.token.bytes(), now);
    }
    entries_.clear();
}

bool model_store::is_empty(time_point now) const
{
    return std::ranges::all_of(entries_, [&](const auto& each) {
        return !has_holders(each.first, now) &&
               std::ranges::all_of(each.second.queue, [&](const auto& waiting) { return waiting.expires <= now; });
    });
}

std::string model_store::describe(time_point now) const
{
    std::string text = "the server stores:";
    for (const auto& [key, at] : entries_) {
        text += " " + key + " (";
        for (const auto& each : at.holders)
            text += (is_live(each, now) ? "held by " : "expired: ") + each.data.token.hex().substr(0, 6) + " ";
        for (const auto& each : at.queue)
            text += "queued: " + each.data.token.hex().substr(0, 6) + " ";
        text += std::to_string(at.watchers.size()) + " watchers)";
    }
    return text;
}

bool model_store::has_holders(const std::string& key, time_point now) const
{
    const auto at = entries_.find(key);
    return at != entries_.end() &&
           std::ranges::any_of(at->second.holders, [&](const auto& each) { return is_live(each, now); });
}

} // namespace colock::simulation
