// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::redis::detail {

// Scripts that decide on several locks at once: all or none.

// lock... fence index...; token+owner ttl index-number for each lock
// -> {1, last fence} or {0, index of the busy lock, remaining ms, owner}
// Most often all locks are free, so the script first acquires each of them as if it were free. If one is not, the
// script undoes this before it examines anything. The first write is one that the server refuses if it is out of
// memory. A refusal leaves nothing behind, not even a writer's intent.
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
        local refused = enter(index, unpack(each))
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
        local kind = redis.call('TYPE', KEYS[i]).ok
        if kind ~= 'zset' then return redis.error_reply('WRONGTYPE the key holds a ' .. kind) end
        local refused, _, last = look(KEYS[i], reader)
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

} // namespace colock::redis::detail
