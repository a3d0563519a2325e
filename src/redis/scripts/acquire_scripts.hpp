// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts that grant free locks. `acquire_all` grants all of several locks, or none.
//
// A writer that waits for readers stores its intent: its token, in a key of its own that expires. No new reader gets
// the lock while the intent exists.

// lock fence intent[ index]; token+owner ttl intent-ttl intent-registered
// -> {1, fence} or {0, remaining ms, owner[, intent]}
inline constexpr std::string_view acquire = R"lua(
local ttl = tonumber(ARGV[2])
local own = string.sub(ARGV[1], 1, 32)
local function set()
    if ttl > 0 then return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) end
    return redis.call('SET', KEYS[1], ARGV[1], 'NX')
end
local function busy_with_readers(remaining, owner)
    if ARGV[3] == '0' then return {0, remaining, owner} end
    local intent = redis.pcall('GET', KEYS[3])
    if is_refusal(intent) then return intent end
    if intent and not (type(intent) == 'string' and string.find(intent, token)) then
        return redis.error_reply(foreign)
    end
    redis.call('SET', KEYS[3], own, 'PX', ARGV[3])
    return {0, remaining, owner, 1}
end
if not set() then
    local value = redis.pcall('GET', KEYS[1])
    if type(value) == 'string' then
        if not string.find(value, holder) then
            return redis.error_reply(foreign)
        elseif string.byte(value) == 115 then
            return busy_with_readers(redis.call('PTTL', KEYS[1]), string.sub(value, 34))
        elseif string.sub(value, 1, 32) ~= own then
            return {0, redis.call('PTTL', KEYS[1]), string.sub(value, 33)}
        end
        if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else redis.call('PERSIST', KEYS[1]) end
    else
        if is_refusal(value) then return value end
        local kind = redis.call('TYPE', KEYS[1]).ok
        if kind ~= 'zset' then return redis.error_reply('WRONGTYPE the key holds a ' .. kind) end
        local refused, _, last = check_form(KEYS[1], reader)
        if refused then return refused end
        if last == 'inf' then return busy_with_readers(-1, '') end
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        if tonumber(last) > now then return busy_with_readers(last - now, '') end
        while sweep(KEYS[1], now, reader) == 1000 do end
        if not set() then return busy_with_readers(0, '') end
    end
end
local intent = ARGV[4] == '1' and redis.pcall('GET', KEYS[3])
if intent == own then redis.call('DEL', KEYS[3]) end
local refused = is_refusal(intent) and intent or KEYS[4] and index_add(KEYS[4], own .. KEYS[1], ttl)
local fence = refused or redis.pcall('INCRBY', KEYS[2], 1)
if type(fence) == 'table' then
    redis.call('DEL', KEYS[1])
    if KEYS[4] then index_remove(KEYS[4], own .. KEYS[1]) end
    return fence
end
return {1, fence}
)lua";

// lock; token ttl -> {1, 0} or {0, remaining ms, ''}
inline constexpr std::string_view acquire_plain = R"lua(
local ttl = tonumber(ARGV[2])
local taken
if ttl > 0 then taken = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
else taken = redis.call('SET', KEYS[1], ARGV[1], 'NX') end
if not taken then
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1]), ''} end
    if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else redis.call('PERSIST', KEYS[1]) end
end
return {1, 0}
)lua";

// lock fence intent probe[ index]; s+token+owner ttl max-holders -> {1, fence} or {0, remaining ms, owner}
// A single reader is stored as a string. A second reader turns the string into a sorted set with two members. ZADD is
// the first write, except that expired members may have been removed before, so that a server without memory refuses
// before anything else has changed. The scores are the expiries of
// the members. The key must not expire before its last member; it may expire later.
// A right may be taken away between two commands of the script. `leave` then makes the new member expire, because a
// member that nobody knows would exclude writers until it expires.
inline constexpr std::string_view acquire_shared = R"lua(
local remaining = redis.call('PTTL', KEYS[1])
local foreign_error, first_score
if remaining ~= -2 then foreign_error, first_score = check_form(KEYS[1], reader) end
if foreign_error then return foreign_error end
local function leave()
    local removed = redis.pcall('ZREM', KEYS[1], ARGV[1])
    if not is_refusal(removed) then return end
    redis.call('ZADD', KEYS[1], 'XX', 0, ARGV[1])
    return removed
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ttl, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local expiry = ttl > 0 and now + ttl or '+inf'
if limit > 0 and first_score and tonumber(first_score) <= now then
    while sweep(KEYS[1], now, reader) == 1000 do end
    remaining = redis.call('PTTL', KEYS[1])
end
local alone = false
local added = redis.pcall('ZADD', KEYS[1], 'NX', expiry, ARGV[1])
if type(added) == 'table' then
    local value = redis.pcall('GET', KEYS[1])
    if type(value) ~= 'string' then return is_refusal(value) and value or added end
    if not string.find(value, holder) then return redis.error_reply(foreign) end
    alone = value == ARGV[1]
    if alone then
        remaining = -2
    elseif string.byte(value) ~= 115 then
        redis.call('DEL', KEYS[4])
        return {0, remaining, string.sub(value, 33)}
    elseif not string.find(added.err, 'WRONGTYPE', 1, true) then
        return added
    else
        redis.call('DEL', KEYS[1])
        redis.call('ZADD', KEYS[1], remaining < 0 and '+inf' or now + remaining, value, expiry, ARGV[1])
        if remaining >= 0 then redis.call('PEXPIRE', KEYS[1], math.max(remaining, 1)) end
        added = 1
    end
end
if added == 1 or added == 0 and tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1])) <= now then
    local writer = redis.call('PTTL', KEYS[3])
    if writer ~= -2 then
        local refused = leave()
        local intent = refused or redis.pcall('GET', KEYS[3])
        if is_refusal(intent) then return intent end
        if type(intent) ~= 'string' or not string.find(intent, token) then return redis.error_reply(foreign) end
        return {0, writer, ''}
    end
end
if added == 0 then redis.call('ZADD', KEYS[1], 'XX', expiry, ARGV[1]) end
if limit > 0 and not alone then
    local holders = redis.pcall('ZCARD', KEYS[1])
    if is_refusal(holders) then return leave() or holders end
    if holders > limit then
        local refused = leave()
        if refused then return refused end
        local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
        return {0, first[2] == 'inf' and -1 or math.max(first[2] - now, 0), string.sub(first[1], 34)}
    end
end
local kept
if ttl == 0 then kept = redis.pcall('PERSIST', KEYS[1])
elseif remaining ~= -1 and remaining < ttl then kept = redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) end
local member = string.sub(ARGV[1], 2, 33) .. KEYS[1]
local refused = is_refusal(kept) and kept or KEYS[5] and index_add(KEYS[5], member, ttl)
local fence = refused or redis.pcall('INCRBY', KEYS[2], 1)
if type(fence) == 'table' then
    if alone then redis.call('DEL', KEYS[1]) else leave() end
    if KEYS[5] then index_remove(KEYS[5], member) end
    return fence
end
return {1, fence}
)lua";

// lock... fence index...; token+owner ttl index-number for each lock
// -> {1, last fence} or {0, index of the busy lock, remaining ms, owner}
// Most often all locks are free, so the script first acquires each of them with NX. If a lock is not free, the script
// releases the others before it examines each lock. INCRBY is the first write, so that a server without memory refuses
// before anything has changed. If a lock is busy, nothing is acquired, and no intent is stored.
inline constexpr std::string_view acquire_all = R"lua(
local count = #ARGV / 3
local fence = redis.call('INCRBY', KEYS[count + 1], count)
local function set(i, ...)
    if ARGV[3 * i - 1] ~= '0' then return redis.call('SET', KEYS[i], ARGV[3 * i - 2], 'PX', ARGV[3 * i - 1], ...) end
    return redis.call('SET', KEYS[i], ARGV[3 * i - 2], ...)
end
local function own(i) return string.sub(ARGV[3 * i - 2], 1, 32) end
local function granted()
    local members = {}
    for i = 1, count do
        local index = KEYS[count + 1 + ARGV[3 * i]]
        if ARGV[3 * i] ~= '0' then
            members[index] = members[index] or {}
            table.insert(members[index], own(i) .. KEYS[i])
            table.insert(members[index], ARGV[3 * i - 1])
        end
    end
    for index, each in pairs(members) do
        local refused = index_add(index, unpack(each))
        if refused then
            redis.call('DEL', unpack(KEYS, 1, count))
            return refused
        end
    end
    return {1, fence}
end
local free = 0
while free < count and set(free + 1, 'NX') do free = free + 1 end
if free == count then return granted() end
if free > 0 then redis.call('DEL', unpack(KEYS, 1, free)) end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, count do
    local value = redis.pcall('GET', KEYS[i])
    if type(value) == 'string' then
        if not string.find(value, holder) then
            return redis.error_reply(foreign)
        elseif string.byte(value) == 115 then
            return {0, i, redis.call('PTTL', KEYS[i]), string.sub(value, 34)}
        elseif string.sub(value, 1, 32) ~= own(i) then
            return {0, i, redis.call('PTTL', KEYS[i]), string.sub(value, 33)}
        end
    elseif value then
        if is_refusal(value) then return value end
        local kind = redis.call('TYPE', KEYS[i]).ok
        if kind ~= 'zset' then return redis.error_reply('WRONGTYPE the key holds a ' .. kind) end
        local refused, _, last = check_form(KEYS[i], reader)
        if refused then return refused end
        if last == 'inf' then return {0, i, -1, ''} end
        if tonumber(last) > now then return {0, i, last - now, ''} end
        while sweep(KEYS[i], now, reader) == 1000 do end
        if redis.call('TYPE', KEYS[i]).ok ~= 'none' then return {0, i, 0, ''} end
    end
end
for i = 1, count do set(i) end
return granted()
)lua";

} // namespace colock::inline v0::redis::detail::lua
