// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts that replace the holder of a held lock by another holder.

// lock fence probe [index]; held-token token+owner ttl -> fence or 0
// A claim that has already adopted the lock is granted again. INCRBY is the first write, so that a server without
// memory refuses before anything has changed. Waiters sleep until the expiry that they know, so an earlier expiry is
// published.
inline constexpr std::string_view adopt = R"lua(
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
local token = type(value) == 'string' and string.sub(value, 1, 32)
if token ~= ARGV[1] and token ~= string.sub(ARGV[2], 1, 32) then
    redis.call('DEL', KEYS[3])
    return 0
end
local fence = redis.call('INCRBY', KEYS[2], 1)
local remaining, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if KEYS[4] then
    local refused = index_add(KEYS[4], string.sub(ARGV[2], 1, 32) .. KEYS[1], ttl)
    if refused then return refused end
    if token == ARGV[1] then index_remove(KEYS[4], token .. KEYS[1]) end
end
if ttl > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
if ttl > 0 and (remaining < 0 or remaining > ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return fence
)lua";

// lock probe; held-token token ttl -> 1 or 0
inline constexpr std::string_view adopt_plain = R"lua(
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
if value ~= ARGV[1] and value ~= ARGV[2] then
    redis.call('DEL', KEYS[2])
    return 0
end
local remaining, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if ttl > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
if ttl > 0 and (remaining < 0 or remaining > ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return 1
)lua";

// lock fence probe [index]; s+held-token+owner s+token+owner ttl -> fence or 0
inline constexpr std::string_view adopt_shared = R"lua(
local ttl = tonumber(ARGV[3])
local function take_fence(held)
    local fence = redis.call('INCRBY', KEYS[2], 1)
    if not KEYS[4] then return fence end
    local refused = index_add(KEYS[4], string.sub(ARGV[2], 2, 33) .. KEYS[1], ttl)
    if refused then return nil, refused end
    if held == ARGV[1] then index_remove(KEYS[4], string.sub(held, 2, 33) .. KEYS[1]) end
    return fence
end
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
if value == ARGV[1] or value == ARGV[2] then
    local fence, refused = take_fence(value)
    if refused then return refused end
    local remaining = redis.call('PTTL', KEYS[1])
    if ttl > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
    if ttl > 0 and (remaining < 0 or remaining > ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
    return fence
end
redis.call('DEL', KEYS[3])
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then return 0 end
local foreign_error = check_form(KEYS[1], reader)
if foreign_error then return foreign_error end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
sweep(KEYS[1], now, reader)
local held = ARGV[1]
local before = redis.call('ZSCORE', KEYS[1], held)
if not before then
    held = ARGV[2]
    before = redis.call('ZSCORE', KEYS[1], held)
    if not before then return 0 end
end
local fence, refused = take_fence(held)
if refused then return refused end
redis.call('ZADD', KEYS[1], ttl > 0 and now + ttl or '+inf', ARGV[2])
if held ~= ARGV[2] then redis.call('ZREM', KEYS[1], held) end
refused = update_expiry(KEYS[1], reader)
if refused then
    redis.call('ZADD', KEYS[1], before, held)
    if held ~= ARGV[2] then redis.call('ZREM', KEYS[1], ARGV[2]) end
    return refused
end
if ttl > 0 and (before == 'inf' or tonumber(before) > now + ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return fence
)lua";

// lock... fence; held-token next-token+owner ttl for each lock -> its fence or 0, for each lock
// A fence of a lock that is not held any more stays unused, which is harmless.
inline constexpr std::string_view hand_over = R"lua(
local count = #KEYS - 1
local fence = redis.call('INCRBY', KEYS[count + 1], count) - count
local values = redis.call('MGET', unpack(KEYS, 1, count))
local answers = {}
for i = 1, count do
    local at = 3 * i
    if not values[i] or string.sub(values[i], 1, 32) ~= ARGV[at - 2] then
        answers[i] = 0
    else
        if ARGV[at] ~= '0' then redis.call('SET', KEYS[i], ARGV[at - 1], 'PX', ARGV[at])
        else redis.call('SET', KEYS[i], ARGV[at - 1]) end
        answers[i] = fence + i
    end
end
return answers
)lua";

} // namespace colock::inline v0::redis::detail::lua
