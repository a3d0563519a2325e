// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Lists of locks, and the forced removal of locks by administrators.
#include "memory/holders.hpp"
#include "memory/status_builder.hpp"
#include "util/cursor.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace colock::inline v0::memory {

namespace {

/// Limits of one step of a walk, because a longer step would delay the caller's event loop.
constexpr std::size_t max_locks = 256;
constexpr std::size_t max_buckets = 2048;

void add_live(const status_builder& builder, const entry& at, std::vector<lock_status>& live)
{
    for (const auto& held : at.holders) {
        if (builder.now() < held.expires)
            live.push_back(builder.status(at, held));
    }
}

} // namespace

list_outcome store::list_key(const std::string& key, listing_action action)
{
    const auto hash = std::hash<std::string>{}(key);
    list_outcome live;
    const status_builder builder;
    store_actions after;
    auto& home = shard_of(hash);
    const std::lock_guard guard(home.mutex);
    entry* const at = home.entries.find(hash, key);
    if (!at)
        return live;
    add_live(builder, *at, live.locks);
    if (action == listing_action::break_key) {
        remove_expired(home.groups, *at, builder.now(), no_removal_limit, after, ignore_holder);
        while (!at->holders.empty())
            break_holder(home.groups, *at, at->holders.back(), after);
        hand_off(home, *at, after);
        remove_if_empty(home, *at);
    }
    return live;
}

template <class Visit>
list_outcome store::walk(std::string_view cursor, Visit visit)
{
    const auto start = cursor.empty() ? 0 : detail::read_number(cursor);
    if (!start)
        return {.error = detail::not_a_cursor("memory")};
    std::size_t bucket = *start / shards_.size();
    list_outcome page;
    std::size_t left = max_buckets;
    for (std::size_t at = *start % shards_.size(); at < shards_.size(); ++at) {
        auto& home = shards_[at];
        const status_builder builder;
        store_actions after;
        const std::lock_guard guard(home.mutex);
        // A table never shrinks, so this position cannot come from an earlier page.
        if (bucket >= home.entries.bucket_count())
            return {.error = detail::not_a_cursor("memory")};
        do {
            if (left-- == 0 || !visit(home, bucket, builder, after, page.locks)) {
                page.next = std::to_string(bucket * shards_.size() + at);
                return page;
            }
            bucket = home.entries.behind(bucket);
        } while (bucket != 0);
    }
    return page;
}

list_outcome store::listing(const listing_request& request)
{
    if (request.filter.key)
        return list_key(*request.filter.key, request.action);
    return request.action == listing_action::purge ? purge(request.limit, request.cursor) : list(request.cursor);
}

list_outcome store::list(std::string_view cursor)
{
    return walk(
        cursor, [&](shard& home, std::size_t bucket, const status_builder& builder, store_actions&, auto& live) {
            if (live.size() >= max_locks)
                return false;
            for (const entry* at = home.entries.bucket(bucket); at; at = at->next)
                add_live(builder, *at, live);
            return true;
        });
}

list_outcome store::purge(std::size_t limit, std::string_view cursor)
{
    const auto max_removed = std::min(limit, max_locks);
    return walk(cursor,
        [&](shard& home, std::size_t bucket, const status_builder& builder, store_actions& after, auto& removed) {
            for (entry *at = home.entries.bucket(bucket), *next = nullptr; at; at = next) {
                if (removed.size() >= max_removed)
                    return false;
                next = at->next;
                remove_expired(home.groups, *at, builder.now(), max_removed - removed.size(), after,
                    [&](const holder& held) { removed.push_back(builder.status(*at, held)); });
                hand_off(home, *at, after);
                remove_if_empty(home, *at);
            }
            return removed.size() < max_removed;
        });
}

} // namespace colock::inline v0::memory
