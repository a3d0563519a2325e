// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts by which a holder asks whether it still holds its lock.

// lock probe; token -> 1 or 0
inline constexpr std::string_view valid = R"lua(
redis.call('DEL', KEYS[2])
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
return type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1] and 1 or 0
)lua";

// lock probe; s+token+owner -> 1 or 0
inline constexpr std::string_view valid_shared = R"lua(
redis.call('DEL', KEYS[2])
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
if type(value) ~= 'table' then return value == ARGV[1] and 1 or 0 end
local score = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
if is_refusal(score) then return score end
local time = redis.call('TIME')
return type(score) == 'string' and tonumber(score) > time[1] * 1000 + time[2] / 1000 and 1 or 0
)lua";

} // namespace colock::inline v0::redis::detail::lua
