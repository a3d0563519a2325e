// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// The script that prepares the fence counter.

// fence; minimum count -> the last of `count` new fences
// Raises the counter to the server's clock in microseconds and to the highest fence that was granted before. PERSIST is
// the first write, because Redis allows it when the server is out of memory, and then allows the SET after it. A value
// that is not a number is not written by colock and is left unchanged. A counter at which INCRBY may soon overflow is
// not raised. The error is that of INCRBY, because the remedy is the same.
inline constexpr std::string_view anchor = R"lua(
local known = redis.call('GET', KEYS[1]) or '0'
if not string.find(known, '^%d+$') then
    return redis.error_reply('WRONGTYPE the fence counter is a value of another program')
end
if tonumber(known) > 2^62 then return redis.error_reply('ERR increment or decrement would overflow') end
redis.call('PERSIST', KEYS[1])
local time = redis.call('TIME')
local minimum = math.max(time[1] * 1000000 + time[2], tonumber(ARGV[1]))
if tonumber(known) < minimum then
    redis.call('SET', KEYS[1], string.format('%.0f', minimum))
end
return redis.call('INCRBY', KEYS[1], ARGV[2])
)lua";

} // namespace colock::inline v0::redis::detail::lua
