// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts by which a holder extends its lock.

// lock probe[ index]; token ttl -> 1 or 0
// Waiters sleep until the expiry that they know, so an earlier expiry is published.
inline constexpr std::string_view extend = R"lua(
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
if type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1] then
    local is_shortened = redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2])
    local extended = redis.call('PEXPIRE', KEYS[1], ARGV[2])
    if is_shortened then redis.pcall('PUBLISH', KEYS[1], '') end
    local refused = KEYS[3] and index_add(KEYS[3], ARGV[1] .. KEYS[1], ARGV[2])
    return refused or extended
end
redis.call('DEL', KEYS[2])
return 0
)lua";

// lock probe[ index]; s+token+owner ttl -> 1 or 0
// DEL comes before ZADD, because Redis allows DEL when the server is out of memory, and then allows the writes after
// it.
inline constexpr std::string_view extend_shared = R"lua(
local function index_add_if_grouped()
    return KEYS[3] and index_add(KEYS[3], string.sub(ARGV[1], 2, 33) .. KEYS[1], ARGV[2])
end
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
if value == ARGV[1] then
    local is_shortened = redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2])
    local extended = redis.call('PEXPIRE', KEYS[1], ARGV[2])
    if is_shortened then redis.pcall('PUBLISH', KEYS[1], '') end
    return index_add_if_grouped() or extended
end
redis.call('DEL', KEYS[2])
local before = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
if is_refusal(before) then return before end
if type(before) ~= 'string' then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
sweep(KEYS[1], now, reader)
if tonumber(before) <= now then return 0 end
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[1])
local refused = update_expiry(KEYS[1], reader)
if refused then return refused end
if tonumber(before) > now + ARGV[2] then redis.pcall('PUBLISH', KEYS[1], '') end
return index_add_if_grouped() or 1
)lua";

} // namespace colock::inline v0::redis::detail::lua
