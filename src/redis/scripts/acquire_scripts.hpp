// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts that grant free locks. `acquire_all` grants all of several locks, or none. Fences are taken by a command
// behind the script.
//
// A writer that waits for readers stores its intent in the set of the readers. No new reader gets the lock while an
// intent exists. Intents do not exclude writers, and are removed with the set when a writer gets the lock.

// Prepended to the scripts that grant exclusive locks.
// examine: tells why a lock cannot be taken. Returns an error, or nil, the remaining ms, the owner, and if readers hold
// the lock, the time. Returns nothing if the holder has the token `own`, or if all readers have expired. SET then
// replaces the value. In a slot that migrates, a script cannot write a key that it has deleted, so a set is checked as
// a whole and not emptied before.
inline constexpr std::string_view examine_function = R"lua(
local function examine(key, own)
    local value = redis.pcall('GET', key)
    if is_refusal(value) then return value end
    if type(value) == 'string' then
        if not string.find(value, holder) then return redis.error_reply(foreign) end
        if string.sub(value, 1, 32) == own then return end
        local left = redis.pcall('PTTL', key)
        if type(left) == 'table' then return left end
        return nil, left, string.sub(value, 33)
    end
    local refused, _, last = check_form(key, reader, intent)
    if refused or not last then return refused or value end
    local time = redis.pcall('TIME')
    if time.err then return time end
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    if last > now then return nil, last == math.huge and -1 or last - now, '', now end
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        if not string.find(member, reader) and not string.find(member, intent) then
            return redis.error_reply(foreign)
        end
    end
end
)lua";

// lock[ index]; token+owner ttl intent-ttl -> {1} or {0, remaining ms, owner[, 1 if an intent is stored]}
inline constexpr std::string_view acquire = R"lua(
local ttl, own = tonumber(ARGV[2]), string.sub(ARGV[1], 1, 32)
local function set(...)
    if ttl > 0 then return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], ...) end
    return redis.call('SET', KEYS[1], ARGV[1], ...)
end
if not set('NX') then
    local refused, remaining, owner, now = examine(KEYS[1], own)
    if refused then return refused end
    if remaining then
        if not now or ARGV[3] == '0' then return {0, remaining, owner} end
        redis.call('ZADD', KEYS[1], -(now + ARGV[3]), 'w' .. own)
        local left = redis.call('PTTL', KEYS[1])
        if left >= 0 and left < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
        return {0, remaining, owner, 1}
    end
    set()
end
local refused = KEYS[2] and index_add(KEYS[2], own .. KEYS[1], ttl)
if refused then
    redis.call('DEL', KEYS[1])
    index_remove(KEYS[2], own .. KEYS[1])
    return refused
end
return {1}
)lua";

// lock; token ttl -> {1} or {0, remaining ms, ''}
inline constexpr std::string_view acquire_plain = R"lua(
local ttl = tonumber(ARGV[2])
local taken
if ttl > 0 then taken = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
else taken = redis.call('SET', KEYS[1], ARGV[1], 'NX') end
if not taken then
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1]), ''} end
    if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else redis.call('PERSIST', KEYS[1]) end
end
return {1}
)lua";

// The part of `acquire_shared` in front of the functions, whose definition takes as long as this part. It serves the
// first reader of a lock that belongs to no group.
inline constexpr std::string_view acquire_first_reader = R"lua(
if not KEYS[2] and redis.call('PTTL', KEYS[1]) == -2 then
    local time, expiry = redis.call('TIME'), '+inf'
    if ARGV[2] ~= '0' then expiry = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2] end
    redis.call('ZADD', KEYS[1], expiry, ARGV[1])
    local refused = ARGV[2] ~= '0' and redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
    if type(refused) ~= 'table' then return {1} end
    redis.call('ZREM', KEYS[1], ARGV[1])
    return refused
end
)lua";

// lock[ index]; s+token+owner ttl max-holders -> {1} or {0, remaining ms, owner}
// ZADD is the first write, so that a server without memory refuses before anything has changed. The key must not expire
// before its last member; it may expire later.
// A right may be taken away between two commands of the script. `leave` then makes the new member expire, because a
// member that nobody knows would exclude writers until it expires.
inline constexpr std::string_view acquire_shared = R"lua(
local kind = redis.call('TYPE', KEYS[1]).ok
local left = redis.call('PTTL', KEYS[1])
if kind == 'string' then
    local value = redis.call('GETEX', KEYS[1])
    if not string.find(value, holder) then return redis.error_reply(foreign) end
    return {0, left, string.sub(value, 33)}
end
local foreign_error, first
if kind ~= 'none' then foreign_error, first = check_form(KEYS[1], reader, intent) end
if foreign_error then return foreign_error end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ttl, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local has_intents = first and -first > now
if has_intents then
    local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
    if not score or score ~= 'inf' and tonumber(score) <= now then
        redis.call('ZREM', KEYS[1], 'w' .. ARGV[1])
        return {0, -first - now, ''}
    end
end
redis.call('ZADD', KEYS[1], ttl > 0 and now + ttl or '+inf', ARGV[1])
local function leave()
    local removed = redis.pcall('ZREM', KEYS[1], ARGV[1])
    if is_refusal(removed) then redis.call('ZADD', KEYS[1], 'XX', 0, ARGV[1]) end
    if ttl == 0 then update_expiry(KEYS[1], reader, intent) end
    return is_refusal(removed) and removed or nil
end
if limit > 0 then
    local swept = (has_intents or first and first <= now) and 1000
    while swept == 1000 do swept = sweep(KEYS[1], now, reader, intent) end
    if type(swept) == 'table' then return leave() or swept end
    local holders = redis.pcall('ZCARD', KEYS[1])
    if is_refusal(holders) then return leave() or holders end
    local intents = has_intents and #redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', 0) or 0
    if holders - intents > limit then
        local refused = leave()
        if refused then return refused end
        local soonest = redis.call('ZRANGE', KEYS[1], intents, intents, 'WITHSCORES')
        return {0, soonest[2] == 'inf' and -1 or math.max(soonest[2] - now, 0), string.sub(soonest[1], 34)}
    end
end
local kept
if ttl == 0 then kept = redis.pcall('PERSIST', KEYS[1])
elseif left ~= -1 and left < ttl then kept = redis.pcall('PEXPIRE', KEYS[1], ARGV[2]) end
local member = string.sub(ARGV[1], 2, 33) .. KEYS[1]
local refused = is_refusal(kept) and kept or KEYS[2] and index_add(KEYS[2], member, ttl)
if refused then
    leave()
    if KEYS[2] then index_remove(KEYS[2], member) end
    return refused
end
return {1}
)lua";

// lock... index...; token+owner ttl index-number for each lock
// -> {1} or {0, index of the busy lock, remaining ms, owner}
// SET is the first write, so that a server without memory refuses before anything has changed. If a lock is busy,
// nothing is acquired, and no intent is stored.
inline constexpr std::string_view acquire_all = R"lua(
local count = #ARGV / 3
local function set(i, ...)
    if ARGV[3 * i - 1] ~= '0' then return redis.call('SET', KEYS[i], ARGV[3 * i - 2], 'PX', ARGV[3 * i - 1], ...) end
    return redis.call('SET', KEYS[i], ARGV[3 * i - 2], ...)
end
local function own(i) return string.sub(ARGV[3 * i - 2], 1, 32) end
local taken, others = {}, {}
for i = 1, count do
    if set(i, 'NX') then
        taken[#taken + 1] = KEYS[i]
    else
        local refused, remaining, owner = examine(KEYS[i], own(i))
        if refused or remaining then
            if #taken > 0 then redis.call('DEL', unpack(taken)) end
            return refused or {0, i, remaining, owner}
        end
        others[#others + 1] = i
    end
end
for _, i in ipairs(others) do set(i) end
local members = {}
for i = 1, count do
    local index = KEYS[count + ARGV[3 * i]]
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
        for other, entries in pairs(members) do
            for i = 1, #entries, 2 do index_remove(other, entries[i]) end
        end
        return refused
    end
end
return {1}
)lua";

} // namespace colock::inline v0::redis::detail::lua
