// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts by which a holder extends its lock.

// lock[ index]; token ttl -> 1 or 0
// Waiters sleep until the expiry that they know, so an earlier expiry is published.
inline constexpr std::string_view extend = R"lua(
local value = redis.pcall('GETEX', KEYS[1])
if is_refusal(value) then return value end
if type(value) ~= 'string' or string.sub(value, 1, 32) ~= ARGV[1] then return 0 end
local is_shortened = redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2])
local extended = redis.call('PEXPIRE', KEYS[1], ARGV[2])
if is_shortened then redis.pcall('PUBLISH', KEYS[1], '') end
return KEYS[2] and index_add(KEYS[2], ARGV[1] .. KEYS[1], ARGV[2]) or extended
)lua";

// lock[ index]; s+token+owner ttl -> 1 or 0
// ZREM comes before ZADD, because Redis allows ZREM when the server is out of memory, and then allows the writes after
// it.
inline constexpr std::string_view extend_shared = R"lua(
local before = redis.pcall('ZREM', KEYS[1], 'w' .. ARGV[1])
if before == 0 then before = redis.pcall('ZSCORE', KEYS[1], ARGV[1]) end
if is_refusal(before) then return before end
if type(before) ~= 'string' then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
sweep(KEYS[1], now, reader, intent)
if before ~= 'inf' and tonumber(before) <= now then return 0 end
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
local refused = before == 'inf' and update_expiry(KEYS[1], reader, intent)
    or left ~= -1 and left < tonumber(ARGV[2]) and redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
if type(refused) == 'table' then return refused end
if before == 'inf' or tonumber(before) > now + ARGV[2] then redis.pcall('PUBLISH', KEYS[1], '') end
return KEYS[2] and index_add(KEYS[2], string.sub(ARGV[1], 2, 33) .. KEYS[1], ARGV[2]) or 1
)lua";

} // namespace colock::inline v0::redis::detail::lua
