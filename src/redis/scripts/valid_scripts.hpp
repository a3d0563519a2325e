// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts by which a holder asks whether it still holds its lock.

// lock; token -> 1 or 0
inline constexpr std::string_view valid = R"lua(
local value = redis.pcall('GETEX', KEYS[1])
if is_refusal(value) then return value end
return type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1] and 1 or 0
)lua";

// lock; s+token+owner -> 1 or 0
inline constexpr std::string_view valid_shared = R"lua(
local score = redis.pcall('ZREM', KEYS[1], 'w' .. ARGV[1])
if score == 0 then score = redis.pcall('ZSCORE', KEYS[1], ARGV[1]) end
if is_refusal(score) then return score end
if type(score) ~= 'string' then return 0 end
local time = redis.call('TIME')
return (score == 'inf' or tonumber(score) > time[1] * 1000 + time[2] / 1000) and 1 or 0
)lua";

} // namespace colock::inline v0::redis::detail::lua
