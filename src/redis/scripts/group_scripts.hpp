// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// The script that extends or releases the locks of a group by its id. See also `acquire_all` in acquire_scripts.hpp and
// `release_members` in release_scripts.hpp.

// index probe lock...; what ttl token... -> as inspect, for the locks that are still held
// what: check, release or extend. Locks without a ttl are returned with -1 and not extended. No remaining time is
// shortened.
inline constexpr std::string_view extend_or_release_members = R"lua(
redis.call('DEL', KEYS[2])
local refused = check_form(KEYS[1], entry)
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local what, ttl = ARGV[1], tonumber(ARGV[2])
local readers = {}
local function readers_of(lock)
    if readers[lock] then return readers[lock] end
    local known = {}
    if redis.call('TYPE', lock).ok == 'zset' then
        local foreign_error = check_form(lock, reader)
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
for i = 3, #KEYS do
    local lock, token = KEYS[i], ARGV[i]
    local value = redis.pcall('GET', lock)
    if is_refusal(value) then return value end
    local alone = type(value) == 'string'
    local held
    if alone then
        local mode = string.byte(value) == 115 and 's' or 'x'
        local first = mode == 's' and 2 or 1
        if string.sub(value, first, first + 31) == token then
            held = {lock, mode, value, redis.call('PTTL', lock)}
        end
    elseif value then
        local known, refused = readers_of(lock)
        if refused then return refused end
        held = known[token]
    end
    if held then found[#found + 1] = held end
    if what == 'release' then
        released[#released + 1] = token .. lock
        if held then
            if alone then
                redis.call('DEL', lock)
            else
                redis.call('ZREM', lock, held[3])
                sweep(lock, now, reader)
                update_expiry(lock, reader)
            end
            redis.pcall('PUBLISH', lock, '')
        end
    elseif what == 'extend' and held and held[4] >= 0 and held[4] < ttl then
        changes[#changes + 1] = {lock, not alone and held[3]}
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
        update_expiry(change[1], reader)
    else
        redis.call('PEXPIRE', change[1], ttl)
    end
end
return found
)lua";

} // namespace colock::inline v0::redis::detail::lua
