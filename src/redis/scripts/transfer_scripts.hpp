// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts that replace the holder of a held lock by another holder.

// lock[ index]; held-token token[+owner] ttl -> 1 or 0
// A claim that has already adopted the lock is granted again. A server without memory refuses the first write. GETEX
// must not come before it, because Redis allows the writes after a GETEX. Waiters sleep until the expiry that they
// know, so an earlier expiry is published.
inline constexpr std::string_view adopt = R"lua(
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
local token = type(value) == 'string' and string.sub(value, 1, 32)
local next_token = string.sub(ARGV[2], 1, 32)
if token ~= ARGV[1] and token ~= next_token then
    value = redis.pcall('GETEX', KEYS[1])
    return is_refusal(value) and value or 0
end
local left, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
local refused = KEYS[2] and index_add(KEYS[2], next_token .. KEYS[1], ttl)
if refused then return refused end
if ttl > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
if KEYS[2] and token ~= next_token then index_remove(KEYS[2], token .. KEYS[1]) end
if ttl > 0 and (left < 0 or left > ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return 1
)lua";

// lock[ index]; s+held-token+owner s+token+owner ttl -> 1 or 0
inline constexpr std::string_view adopt_shared = R"lua(
local ttl = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held, before
for i = 1, 2 do
    local score = redis.pcall('ZSCORE', KEYS[1], ARGV[i])
    if is_refusal(score) then return score end
    if type(score) == 'string' and (score == 'inf' or tonumber(score) > now) then held, before = ARGV[i], score end
end
if not held then
    local removed = redis.pcall('ZREM', KEYS[1], 'w' .. ARGV[1])
    return is_refusal(removed) and removed or 0
end
redis.call('ZADD', KEYS[1], ttl > 0 and now + ttl or '+inf', ARGV[2])
local refused = KEYS[2] and index_add(KEYS[2], string.sub(ARGV[2], 2, 33) .. KEYS[1], ttl)
if not refused and held ~= ARGV[2] then
    local removed = redis.pcall('ZREM', KEYS[1], held)
    refused = is_refusal(removed) and removed
end
if not refused then
    sweep(KEYS[1], now, reader, intent)
    refused = update_expiry(KEYS[1], reader, intent)
end
if refused then
    redis.call('ZADD', KEYS[1], before, held)
    if held ~= ARGV[2] and is_refusal(redis.pcall('ZREM', KEYS[1], ARGV[2])) then
        redis.call('ZADD', KEYS[1], 'XX', 0, ARGV[2])
    end
    update_expiry(KEYS[1], reader, intent)
    return refused
end
if KEYS[2] and held ~= ARGV[2] then index_remove(KEYS[2], string.sub(held, 2, 33) .. KEYS[1]) end
if ttl > 0 and (before == 'inf' or tonumber(before) > now + ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return 1
)lua";

// lock...; held-token next-token+owner ttl for each lock -> 1 or 0 for each lock
// A call of `adopt` for each of 64 locks would take 1.6 times as long.
inline constexpr std::string_view hand_over = R"lua(
local values = redis.call('MGET', unpack(KEYS))
local answers = {}
for i = 1, #KEYS do
    local at = 3 * i
    if not values[i] or string.sub(values[i], 1, 32) ~= ARGV[at - 2] then
        local value = redis.pcall('GETEX', KEYS[i])
        if is_refusal(value) then return value end
        answers[i] = 0
    else
        if ARGV[at] ~= '0' then redis.call('SET', KEYS[i], ARGV[at - 1], 'PX', ARGV[at])
        else redis.call('SET', KEYS[i], ARGV[at - 1]) end
        answers[i] = 1
    end
end
return answers
)lua";

} // namespace colock::inline v0::redis::detail::lua
