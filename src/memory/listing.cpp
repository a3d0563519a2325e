// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// What is told of the locks, and what an administrator removes.
#include "memory/holders.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace colock::memory {

namespace {

using time_point = lease_clock::time_point;

/// Tells lease_clock's times as wall-clock times, all by one pair of readings.
class reader
{
public:
    [[nodiscard]] time_point now() const noexcept { return now_; }

    [[nodiscard]] lock_status status(const entry& at, const holder& held) const
    {
        const owner_data& data = held.data();
        lock_status status;
        status.key = at.key;
        status.group = data.group;
        status.mode = at.mode;
        status.owner = data.owner;
        status.host = data.host;
        status.comment = data.comment;
        status.created = wall_time(held.created);
        status.renewed = wall_time(held.renewed);
        if (held.expires != time_point::max())
            status.remaining = std::chrono::ceil<std::chrono::milliseconds>(std::max(held.expires, now_) - now_);
        status.fence = held.fence;
        return status;
    }

private:
    [[nodiscard]] std::chrono::system_clock::time_point wall_time(time_point when) const
    {
        return std::chrono::time_point_cast<std::chrono::system_clock::duration>(wall_now_ - (now_ - when));
    }

    const time_point now_ = lease_clock::now();
    const std::chrono::system_clock::time_point wall_now_ = std::chrono::system_clock::now();
};

} // namespace

std::vector<lock_status> store::inspect(const std::string& key)
{
    const auto hash = std::hash<std::string>{}(key);
    std::vector<lock_status> live;
    const reader read;
    auto& home = shard_of(hash);
    const std::lock_guard guard(home.mutex);
    if (const entry* const at = home.entries.find(hash, key)) {
        for (const auto& held : at->holders) {
            if (read.now() < held.expires)
                live.push_back(read.status(*at, held));
        }
    }
    return live;
}

std::vector<lock_status> store::break_key(const std::string& key)
{
    const auto hash = std::hash<std::string>{}(key);
    std::vector<lock_status> removed;
    const reader read;
    aftermath after;
    auto& home = shard_of(hash);
    const std::lock_guard guard(home.mutex);
    entry* const at = home.entries.find(hash, key);
    if (!at)
        return removed;
    remove_expired(*at, read.now(), all, after, unseen);
    for (const auto& held : at->holders)
        removed.push_back(read.status(*at, held));
    while (!at->holders.empty()) {
        after.make_room_for_call();
        if (auto owner = detach(at->holders.back()))
            after.break_claim(std::move(owner));
        at->holders.pop_back();
    }
    hand_off(home, *at, after);
    remove_if_empty(home, *at);
    return removed;
}

std::vector<lock_status> store::list(const filter& which)
{
    std::vector<lock_status> matching;
    for (auto& home : shards_) {
        const reader read;
        const std::lock_guard guard(home.mutex);
        for (std::size_t bucket = 0; bucket < home.entries.bucket_count(); ++bucket) {
            for (const entry* at = home.entries.bucket(bucket); at; at = at->next) {
                for (const auto& held : at->holders) {
                    if (held.expires <= read.now())
                        continue;
                    auto status = read.status(*at, held);
                    if (which.matches(status))
                        matching.push_back(std::move(status));
                }
            }
        }
    }
    return matching;
}

std::vector<lock_status> store::purge(std::size_t limit)
{
    if (limit == 0)
        limit = all;
    std::vector<lock_status> removed;
    for (auto& home : shards_) {
        const reader read;
        aftermath after;
        const std::lock_guard guard(home.mutex);
        for (std::size_t bucket = 0; bucket < home.entries.bucket_count(); ++bucket) {
            for (entry *at = home.entries.bucket(bucket), *next = nullptr; at; at = next) {
                next = at->next;
                remove_expired(*at, read.now(), limit - removed.size(), after,
                    [&](const holder& held) { removed.push_back(read.status(*at, held)); });
                hand_off(home, *at, after);
                remove_if_empty(home, *at);
            }
        }
    }
    return removed;
}

} // namespace colock::memory
