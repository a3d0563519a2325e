// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Lists of locks, and the forced removal of locks by administrators.
#include "memory/holders.hpp"
#include "memory/status_builder.hpp"
#include "util/cursor.hpp"

#include <functional>
#include <optional>
#include <utility>

namespace colock::inline v0::memory {

namespace {

constexpr std::string_view name = "memory";
/// Limits of one step of a walk, because a longer step would delay the caller's event loop.
constexpr std::size_t max_locks = 256;
constexpr std::size_t max_buckets = 2048;

/// The position at which a walk continues.
struct position
{
    std::size_t shard = 0;
    std::size_t bucket = 0;

    [[nodiscard]] static std::optional<position> from(std::string_view cursor)
    {
        const auto text = detail::read_cursor(name, cursor);
        const auto dot = text ? text->find('.') : std::string_view::npos;
        if (dot == std::string_view::npos)
            return std::nullopt;
        const auto shard = detail::read_number(text->substr(0, dot)),
                   bucket = detail::read_number(text->substr(dot + 1));
        if (!shard || !bucket)
            return std::nullopt;
        return position{*shard, *bucket};
    }
    [[nodiscard]] std::string text() const
    {
        return detail::make_cursor(name, std::to_string(shard) + '.' + std::to_string(bucket));
    }
};

} // namespace

std::vector<lock_status> store::inspect(const std::string& key)
{
    const auto hash = std::hash<std::string>{}(key);
    std::vector<lock_status> live;
    const status_builder builder;
    auto& home = shard_of(hash);
    const std::lock_guard guard(home.mutex);
    if (const entry* const at = home.entries.find(hash, key)) {
        for (const auto& held : at->holders) {
            if (builder.now() < held.expires)
                live.push_back(builder.status(*at, held));
        }
    }
    return live;
}

std::vector<lock_status> store::break_key(const std::string& key)
{
    const auto hash = std::hash<std::string>{}(key);
    std::vector<lock_status> removed;
    const status_builder builder;
    store_actions after;
    auto& home = shard_of(hash);
    const std::lock_guard guard(home.mutex);
    entry* const at = home.entries.find(hash, key);
    if (!at)
        return removed;
    remove_expired(home.groups, *at, builder.now(), no_removal_limit, after, ignore_holder);
    for (const auto& held : at->holders)
        removed.push_back(builder.status(*at, held));
    while (!at->holders.empty())
        break_holder(home.groups, *at, at->holders.back(), after);
    hand_off(home, *at, after);
    remove_if_empty(home, *at);
    return removed;
}

template <class Visit>
list_outcome store::walk(std::string_view cursor, Visit visit)
{
    auto at = cursor.empty() ? position{} : position::from(cursor);
    if (!at || at->shard >= shards_.size())
        return {.error = detail::not_a_cursor(name)};
    list_outcome page;
    std::size_t left = max_buckets;
    for (; at->shard < shards_.size(); ++at->shard) {
        auto& home = shards_[at->shard];
        const status_builder builder;
        store_actions after;
        const std::lock_guard guard(home.mutex);
        // A table never shrinks, so this position cannot come from an earlier page.
        if (at->bucket >= home.entries.bucket_count())
            return {.error = detail::not_a_cursor(name)};
        do {
            if (left-- == 0 || !visit(home, at->bucket, builder, after, page.locks)) {
                page.next = at->text();
                return page;
            }
            at->bucket = home.entries.behind(at->bucket);
        } while (at->bucket != 0);
    }
    return page;
}

list_outcome store::list(const filter& which, std::string_view cursor)
{
    return walk(
        cursor, [&](shard& home, std::size_t bucket, const status_builder& builder, store_actions&, auto& matching) {
            if (matching.size() >= max_locks)
                return false;
            for (const entry* at = home.entries.bucket(bucket); at; at = at->next) {
                for (const auto& held : at->holders) {
                    if (held.expires <= builder.now())
                        continue;
                    auto status = builder.status(*at, held);
                    if (which.matches(status))
                        matching.push_back(std::move(status));
                }
            }
            return true;
        });
}

list_outcome store::purge(std::size_t limit, std::string_view cursor)
{
    const auto max_removed = limit == 0 ? max_locks : std::min(limit, max_locks);
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
