// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts that act for any client: they list or remove the holders of given keys.

// lock...; layout; handling of foreign values -> {key, 'x' or 's', value, remaining ms or -1} per live holder
// In the layout `plain` every string is a holder. Foreign values are an error for `refuse`, and are skipped otherwise.
inline constexpr std::string_view inspect = R"lua(
local plain, refuses = ARGV[1] == 'plain', ARGV[2] == 'refuse'
local value = redis.pcall('GETEX', KEYS[1])
if is_refusal(value) then return value end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for i = 1, #KEYS do
    local kind = redis.call('TYPE', KEYS[i]).ok
    if kind == 'string' then
        local value = redis.call('GET', KEYS[i])
        if plain or string.find(value, holder) then
            found[#found + 1] = {KEYS[i], 'x', value, redis.call('PTTL', KEYS[i])}
        elseif refuses then
            return redis.error_reply(foreign)
        end
    elseif kind == 'zset' and not plain then
        local foreign_error = check_form(KEYS[i], reader, intent)
        if foreign_error and (refuses or is_refusal(foreign_error)) then return foreign_error end
        local members = foreign_error and {} or redis.call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES')
        for m = 1, #members, 2 do
            local score = members[m + 1]
            local remaining = score == 'inf' and -1 or score - now
            if (score == 'inf' or remaining > 0) and string.find(members[m], reader) then
                found[#found + 1] = {KEYS[i], 's', members[m], remaining}
            end
        end
    elseif refuses and kind ~= 'none' then
        return redis.error_reply(foreign)
    end
end
return found
)lua";

// lock; prefix of the index keys, value... -> as inspect, for the holders that were removed
// Removes only the holders that were listed by inspect before, because the request may be executed long after the
// listing. The group's index must not keep a removed holder: the process of the holder may have ended, and then the
// entry of a lock without ttl would stay forever. Intents stay.
inline constexpr std::string_view break_holders = R"lua(
local value = redis.pcall('GETEX', KEYS[1])
if is_refusal(value) then return value end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
local function removed(value, mode, remaining)
    found[#found + 1] = {KEYS[1], mode, value, remaining}
    local first = mode == 's' and 2 or 1
    local group = ARGV[1] ~= '' and string.match(value, '%z([^%z]+)$')
    if group then index_remove(ARGV[1] .. group, string.sub(value, first, first + 31) .. KEYS[1]) end
end
for i = 2, value and #ARGV or 1 do
    if value == ARGV[i] then
        local remaining = redis.call('PTTL', KEYS[1])
        redis.call('DEL', KEYS[1])
        removed(value, 'x', remaining)
        break
    elseif type(value) == 'table' and ARGV[1] ~= '' then
        local score = redis.pcall('ZSCORE', KEYS[1], ARGV[i])
        if is_refusal(score) then return score end
        if type(score) == 'string' then
            redis.call('ZREM', KEYS[1], ARGV[i])
            if score == 'inf' then removed(ARGV[i], 's', -1)
            elseif tonumber(score) > now then removed(ARGV[i], 's', score - now) end
        end
    end
end
if #found > 0 then
    if type(value) == 'table' then
        sweep(KEYS[1], now, reader, intent)
        update_expiry(KEYS[1], reader, intent)
    end
    redis.pcall('PUBLISH', KEYS[1], '')
end
return found
)lua";

// lock...; limit -> as inspect, for the holders that were removed
inline constexpr std::string_view purge = R"lua(
local value = redis.pcall('GETEX', KEYS[1])
if is_refusal(value) then return value end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for i = 1, #KEYS do
    local refused, first = check_form(KEYS[i], reader, intent)
    if is_refusal(refused) then return refused end
    if #found < tonumber(ARGV[1]) and not refused and first and first <= now then
        local members = redis.call('ZRANGEBYSCORE', KEYS[i], 0, now, 'LIMIT', 0, ARGV[1] - #found)
        for m = 1, #members do
            if string.find(members[m], reader) then
                redis.call('ZREM', KEYS[i], members[m])
                found[#found + 1] = {KEYS[i], 's', members[m], 0}
            end
        end
    end
end
return found
)lua";

} // namespace colock::inline v0::redis::detail::lua
