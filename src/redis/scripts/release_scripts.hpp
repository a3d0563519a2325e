// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Scripts by which a holder releases its lock, or several holders release theirs.

// lock probe[ index]; token -> 1 plus the number of notified clients, or 0
// If the user may not publish the message, the release still succeeds.
inline constexpr std::string_view release = R"lua(
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
if KEYS[3] then index_remove(KEYS[3], ARGV[1] .. KEYS[1]) end
if type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    local receivers = redis.pcall('PUBLISH', KEYS[1], '')
    return type(receivers) == 'number' and receivers + 1 or 1
end
redis.call('DEL', KEYS[2])
return 0
)lua";

// lock... probe; token... -> the result of release for each lock
inline constexpr std::string_view release_many = R"lua(
local values = redis.call('MGET', unpack(KEYS, 1, #ARGV))
local answers, held = {}, {}
for i = 1, #ARGV do
    if values[i] and string.sub(values[i], 1, 32) == ARGV[i] then
        held[#held + 1] = KEYS[i]
        answers[i] = 1
    else
        answers[i] = 0
    end
end
if #held < #ARGV then held[#held + 1] = KEYS[#KEYS] end
redis.call('DEL', unpack(held))
for i = 1, #ARGV do
    if answers[i] == 1 then
        local receivers = redis.pcall('PUBLISH', KEYS[i], '')
        if type(receivers) == 'number' then answers[i] = receivers + 1 end
    end
end
return answers
)lua";

// lock... probe; token index for each lock -> the result of release for each lock
inline constexpr std::string_view release_members = R"lua(
local count = #KEYS - 1
local values = redis.call('MGET', unpack(KEYS, 1, count))
local answers, held, released_members = {}, {}, {}
for i = 1, count do
    local token, index = ARGV[2 * i - 1], ARGV[2 * i]
    released_members[index] = released_members[index] or {}
    table.insert(released_members[index], token .. KEYS[i])
    if values[i] and string.sub(values[i], 1, 32) == token then
        held[#held + 1] = KEYS[i]
        answers[i] = 1
    else
        answers[i] = 0
    end
end
if #held < count then held[#held + 1] = KEYS[#KEYS] end
redis.call('DEL', unpack(held))
for index, members in pairs(released_members) do index_remove(index, unpack(members)) end
for i = 1, count do
    if answers[i] == 1 then
        local receivers = redis.pcall('PUBLISH', KEYS[i], '')
        if type(receivers) == 'number' then answers[i] = receivers + 1 end
    end
end
return answers
)lua";

// lock probe intent[ index]; token -> 1 or 0
// Removes the intent of a writer, and releases the lock if the writer holds it. The result is that of the release.
inline constexpr std::string_view withdraw = R"lua(
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
local intent = redis.pcall('GET', KEYS[3])
if is_refusal(intent) then return intent end
if KEYS[4] then index_remove(KEYS[4], ARGV[1] .. KEYS[1]) end
local held = type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1]
local intended = intent == ARGV[1]
if held then redis.call('DEL', KEYS[1]) end
if intended then redis.call('DEL', KEYS[3]) end
if held or intended then redis.pcall('PUBLISH', KEYS[1], '') else redis.call('DEL', KEYS[2]) end
return held and 1 or 0
)lua";

// lock probe[ index]; s+token+owner ttl -> 1 or 0
// The removal of a member need not shorten the expiry of a set. The exception is a member without ttl, which has kept
// the set from expiring.
inline constexpr std::string_view release_shared = R"lua(
local value = redis.pcall('GET', KEYS[1])
if is_refusal(value) then return value end
local removed = type(value) == 'table' and redis.pcall('ZREM', KEYS[1], ARGV[1])
if is_refusal(removed) then return removed end
if KEYS[3] then index_remove(KEYS[3], string.sub(ARGV[1], 2, 33) .. KEYS[1]) end
if value == ARGV[1] then
    redis.call('DEL', KEYS[1])
    redis.pcall('PUBLISH', KEYS[1], '')
    return 1
end
if removed == 1 then
    local time = redis.call('TIME')
    sweep(KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), reader)
    if ARGV[2] == '0' then update_expiry(KEYS[1], reader) end
    redis.pcall('PUBLISH', KEYS[1], '')
    return 1
end
redis.call('DEL', KEYS[2])
return 0
)lua";

} // namespace colock::inline v0::redis::detail::lua
