// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts that extend or release the locks of a group by its id, and maintain the index of a group in a cluster. See
// also `acquire_all` in acquire_scripts.hpp and `release_many` in release_scripts.hpp.

// lock...[ index]; what ttl token... -> as inspect, for the locks that are still held
// what: check, release or extend. Locks without a ttl are returned with -1 and not extended. No remaining time is
// shortened.
inline constexpr std::string_view extend_or_release_members = R"lua(
local value = redis.pcall('GETEX', KEYS[1])
local index = KEYS[#ARGV - 1]
local refused = is_refusal(value) and value or index and check_form(index, entry, entry)
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local what, ttl = ARGV[1], tonumber(ARGV[2])
local readers = {}
local function readers_of(lock)
    if readers[lock] then return readers[lock] end
    local known = {}
    if redis.call('TYPE', lock).ok == 'zset' then
        local foreign_error = check_form(lock, reader, intent)
        if is_refusal(foreign_error) then return nil, foreign_error end
        local members = foreign_error and {} or redis.call('ZRANGE', lock, 0, -1, 'WITHSCORES')
        for m = 1, #members, 2 do
            local token = string.sub(members[m], 2, 33)
            if members[m + 1] == 'inf' then known[token] = {lock, 's', members[m], -1}
            elseif tonumber(members[m + 1]) > now then
                known[token] = {lock, 's', members[m], members[m + 1] - now}
            end
        end
    end
    readers[lock] = known
    return known
end
local found, released, extended, changes = {}, {}, {}, {}
for i = 1, #ARGV - 2 do
    local lock, token = KEYS[i], ARGV[i + 2]
    local value = redis.pcall('GET', lock)
    if is_refusal(value) then return value end
    local held
    if type(value) == 'string' then
        if string.sub(value, 1, 32) == token then held = {lock, 'x', value, redis.call('PTTL', lock)} end
    elseif value then
        local known, refused = readers_of(lock)
        if refused then return refused end
        held = known[token]
    end
    if held then found[#found + 1] = held end
    if what == 'release' then
        released[#released + 1] = token .. lock
        if held then
            if held[2] == 'x' then
                redis.call('DEL', lock)
            else
                redis.call('ZREM', lock, held[3])
                sweep(lock, now, reader, intent)
                update_expiry(lock, reader, intent)
            end
            redis.pcall('PUBLISH', lock, '')
        end
    elseif what == 'extend' and held and held[4] >= 0 and held[4] < ttl then
        changes[#changes + 1] = {lock, held[2] == 's' and held[3]}
        extended[#extended + 1] = token .. lock
        extended[#extended + 1] = ttl
    end
end
if index and #released > 0 then index_remove(index, unpack(released)) end
-- The index comes first, so that a refusal changes no lock. An entry may outlive its lock.
refused = index and #extended > 0 and index_add(index, unpack(extended))
if refused then return refused end
for _, change in ipairs(changes) do
    if change[2] then
        redis.call('ZADD', change[1], 'XX', now + ttl, change[2])
        update_expiry(change[1], reader, intent)
    else
        redis.call('PEXPIRE', change[1], ttl)
    end
end
return found
)lua";

// index; entry ttl for each -> 1
// No entry is shortened, because the lock keeps its time if the request that follows fails.
inline constexpr std::string_view enter_group = R"lua(
local refused, first = check_form(KEYS[1], entry, entry)
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #ARGV, 2 do
    redis.call('ZADD', KEYS[1], 'GT', ARGV[i + 1] == '0' and '+inf' or now + ARGV[i + 1], ARGV[i])
end
if first and first <= now then sweep(KEYS[1], now, entry, entry) end
return update_expiry(KEYS[1], entry, entry) or 1
)lua";

// index; entry... -> 1
inline constexpr std::string_view leave_group = R"lua(
index_remove(KEYS[1], unpack(ARGV))
return 1
)lua";

} // namespace colock::inline v0::redis::detail::lua
