// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// The script that extends or releases the locks of a group by its id. See also `acquire_all` in acquire_scripts.hpp and
// `release_many` in release_scripts.hpp.

// index lock...; what ttl token... -> as inspect, for the locks that are still held
// what: check, release or extend. Locks without a ttl are returned with -1 and not extended. No remaining time is
// shortened.
inline constexpr std::string_view extend_or_release_members = R"lua(
local value = redis.pcall('GETEX', KEYS[1])
local refused = is_refusal(value) and value or check_form(KEYS[1], entry, entry)
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
for i = 2, #KEYS do
    local lock, token = KEYS[i], ARGV[i + 1]
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
if #released > 0 then index_remove(KEYS[1], unpack(released)) end
-- The index comes first, so that a refusal changes no lock. An entry may outlive its lock.
refused = #extended > 0 and index_add(KEYS[1], unpack(extended))
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

} // namespace colock::inline v0::redis::detail::lua
