// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts by which a holder releases its lock, or several holders release theirs.

// lock[ index]; token -> 1 plus the number of notified clients, or 0
// If the user may not publish the message, the release still succeeds.
inline constexpr std::string_view release = R"lua(
local value = redis.pcall('GETEX', KEYS[1])
if is_refusal(value) then return value end
local held = type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1]
if held then redis.call('DEL', KEYS[1]) end
if KEYS[2] then index_remove(KEYS[2], ARGV[1] .. KEYS[1]) end
if not held then return 0 end
local receivers = redis.pcall('PUBLISH', KEYS[1], '')
return type(receivers) == 'number' and receivers + 1 or 1
)lua";

// lock...; token[ index] for each lock -> the result of release for each lock
// A call of `release` for each of 64 locks would take 1.4 times as long.
inline constexpr std::string_view release_many = R"lua(
local words = #ARGV / #KEYS
local values = redis.call('MGET', unpack(KEYS))
local answers, held, members = {}, {}, {}
for i = 1, #KEYS do
    local token, index = ARGV[words * (i - 1) + 1], words == 2 and ARGV[2 * i]
    if index then
        members[index] = members[index] or {}
        table.insert(members[index], token .. KEYS[i])
    end
    if values[i] and string.sub(values[i], 1, 32) == token then
        held[#held + 1] = KEYS[i]
        answers[i] = 1
    else
        local value = redis.pcall('GETEX', KEYS[i])
        if is_refusal(value) then return value end
        answers[i] = 0
    end
end
if #held > 0 then redis.call('DEL', unpack(held)) end
for index, each in pairs(members) do index_remove(index, unpack(each)) end
for i = 1, #KEYS do
    if answers[i] == 1 then
        local receivers = redis.pcall('PUBLISH', KEYS[i], '')
        if type(receivers) == 'number' then answers[i] = receivers + 1 end
    end
end
return answers
)lua";

// lock[ index]; token -> 1 or 0
// Removes the intent of a writer, or releases the lock if the writer holds it. The result is that of the release. GET
// comes first, because ZREM may remove the key, which a script cannot read afterwards in a slot that migrates.
inline constexpr std::string_view withdraw = R"lua(
local value = redis.pcall('GET', KEYS[1])
local removed = redis.pcall('ZREM', KEYS[1], 'w' .. ARGV[1])
local refused = is_refusal(removed) and removed or is_refusal(value) and value
if refused then return refused end
local held = type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1]
if held then redis.call('DEL', KEYS[1]) end
if KEYS[2] then index_remove(KEYS[2], ARGV[1] .. KEYS[1]) end
if held or removed == 1 then redis.pcall('PUBLISH', KEYS[1], '') end
return held and 1 or 0
)lua";

// The part of `release_shared` in front of the functions. It serves the last reader of a lock that belongs to no group.
inline constexpr std::string_view release_last_reader = R"lua(
local removed = redis.pcall('ZREM', KEYS[1], ARGV[1])
if removed == 1 and not KEYS[2] and redis.pcall('PTTL', KEYS[1]) == -2 then
    redis.pcall('PUBLISH', KEYS[1], '')
    return 1
end
)lua";

// lock[ index]; s+token+owner ttl -> 1 or 0
// The removal of a member need not shorten the expiry of a set. The exception is a member without ttl, which has kept
// the set from expiring.
inline constexpr std::string_view release_shared = R"lua(
if is_refusal(removed) then return removed end
if KEYS[2] then index_remove(KEYS[2], string.sub(ARGV[1], 2, 33) .. KEYS[1]) end
if removed ~= 1 then return 0 end
local time = redis.call('TIME')
sweep(KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), reader, intent)
if ARGV[2] == '0' then update_expiry(KEYS[1], reader, intent) end
redis.pcall('PUBLISH', KEYS[1], '')
return 1
)lua";

} // namespace colock::inline v0::redis::detail::lua
