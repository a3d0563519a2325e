// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/scripts/scripts.hpp"

#include "redis/scripts/scripts_of_forms.hpp"
#include "redis/scripts/scripts_of_groups.hpp"
#include "redis/scripts/scripts_of_several.hpp"

#include <openssl/evp.h>

#include <array>
#include <new>
#include <utility>

namespace colock::redis::detail {

namespace {

std::string sha1_hex(std::string_view text)
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1)
        throw std::bad_alloc();
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) {
        hex += "0123456789abcdef"[digest[i] >> 4];
        hex += "0123456789abcdef"[digest[i] & 15];
    }
    return hex;
}

namespace lua {

// The first line above each script names its keys; its arguments -> its result. Optional keys are in brackets.

// probe[ fence] -> {command, error} for each command that was refused
// Calls each command of the other scripts in a form that changes nothing: the probe key does not exist, and the calls
// write only to existing keys. The message is published to the channel of a lock with an empty name. The result also
// contains errors that do not refuse the command.
constexpr std::string_view rights = R"lua(
local refused = {}
local function try(command, ...)
    local answer = redis.pcall(command, ...)
    if type(answer) == 'table' and answer.err then refused[#refused + 1] = {command, answer.err} end
end
local probe = KEYS[1]
try('DEL', probe)
try('GET', probe)
try('MGET', probe)
try('SET', probe, '', 'XX', 'PX', 1)
try('PEXPIRE', probe, 1)
try('PERSIST', probe)
try('PTTL', probe)
try('TYPE', probe)
try('TIME')
if KEYS[2] then
    try('PUBLISH', string.sub(probe, 1, -7) .. ':', '')
    try('INCRBY', KEYS[2], 0)
    try('ZADD', probe, 'XX', 0, '')
    try('ZREM', probe, '')
    try('ZCARD', probe)
    try('ZSCORE', probe, '')
    try('ZRANGE', probe, 0, 0)
    try('ZRANGEBYSCORE', probe, 0, 0)
    try('PEXPIREAT', probe, 1)
end
return refused
)lua";

// fence; least -> 1
// Raises the counter to the server's clock in microseconds and to the highest fence that was granted before. PERSIST is
// the first write, because Redis allows it when the server is out of memory, and then allows the SET after it. A value
// that is not a number is not written by colock and is left unchanged. A counter at which INCRBY may soon overflow is
// not raised. The error is that of INCRBY, because the remedy is the same.
constexpr std::string_view anchor = R"lua(
local known = redis.call('GET', KEYS[1]) or '0'
if not string.find(known, '^%d+$') then
    return redis.error_reply('WRONGTYPE the fence counter is a value of another program')
end
if tonumber(known) > 2^62 then return redis.error_reply('ERR increment or decrement would overflow') end
redis.call('PERSIST', KEYS[1])
local time = redis.call('TIME')
local least = math.max(time[1] * 1000000 + time[2], tonumber(ARGV[1]))
if tonumber(known) < least then
    redis.call('SET', KEYS[1], string.format('%.0f', least))
end
return 1
)lua";

// lock fence intent[ index]; token+owner ttl intent-ttl intent-registered
// -> {1, fence} or {0, remaining ms, owner[, intent]}
constexpr std::string_view acquire = R"lua(
local ttl = tonumber(ARGV[2])
local own = string.sub(ARGV[1], 1, 32)
local function set()
    if ttl > 0 then return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) end
    return redis.call('SET', KEYS[1], ARGV[1], 'NX')
end
local function busy_with_readers(remaining, owner)
    if ARGV[3] == '0' then return {0, remaining, owner} end
    local intent = redis.pcall('GET', KEYS[3])
    if intent and not (type(intent) == 'string' and string.find(intent, token)) then
        return redis.error_reply(foreign)
    end
    redis.call('SET', KEYS[3], own, 'PX', ARGV[3])
    return {0, remaining, owner, 1}
end
if not set() then
    local value = redis.pcall('GET', KEYS[1])
    if type(value) == 'string' then
        if not string.find(value, holder) then
            return redis.error_reply(foreign)
        elseif string.byte(value) == 115 then
            return busy_with_readers(redis.call('PTTL', KEYS[1]), string.sub(value, 34))
        elseif string.sub(value, 1, 32) ~= own then
            return {0, redis.call('PTTL', KEYS[1]), string.sub(value, 33)}
        end
        if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else redis.call('PERSIST', KEYS[1]) end
    else
        local kind = redis.call('TYPE', KEYS[1]).ok
        if kind ~= 'zset' then return redis.error_reply('WRONGTYPE the key holds a ' .. kind) end
        local refused, _, last = look(KEYS[1], reader)
        if refused then return refused end
        if last == 'inf' then return busy_with_readers(-1, '') end
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        if tonumber(last) > now then return busy_with_readers(last - now, '') end
        while sweep(KEYS[1], now, reader) == 1000 do end
        if not set() then return busy_with_readers(0, '') end
    end
end
if ARGV[4] == '1' and redis.pcall('GET', KEYS[3]) == own then redis.call('DEL', KEYS[3]) end
local refused = KEYS[4] and enter(KEYS[4], own .. KEYS[1], ttl)
local fence = refused or redis.pcall('INCRBY', KEYS[2], 1)
if type(fence) == 'table' then
    redis.call('DEL', KEYS[1])
    if KEYS[4] then leave(KEYS[4], own .. KEYS[1]) end
    return fence
end
return {1, fence}
)lua";

// lock; token ttl -> {1, 0} or {0, remaining ms, ''}
constexpr std::string_view acquire_plain = R"lua(
local ttl = tonumber(ARGV[2])
local taken
if ttl > 0 then taken = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
else taken = redis.call('SET', KEYS[1], ARGV[1], 'NX') end
if not taken then
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, redis.call('PTTL', KEYS[1]), ''} end
    if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else redis.call('PERSIST', KEYS[1]) end
end
return {1, 0}
)lua";

// lock fence intent probe[ index]; s+token+owner ttl max-holders -> {1, fence} or {0, remaining ms, owner}
// A single reader is stored as a string. A second reader turns the string into a sorted set with two members. ZADD is
// the first write, so that a server without memory refuses before anything has changed. The scores are the expiries of
// the members. The key must not expire before its last member; it may expire later.
constexpr std::string_view acquire_shared = R"lua(
local left = redis.call('PTTL', KEYS[1])
local strangers = left ~= -2 and look(KEYS[1], reader)
if strangers then return strangers end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ttl, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local expiry = ttl > 0 and now + ttl or '+inf'
local alone = false
local added = redis.pcall('ZADD', KEYS[1], 'NX', expiry, ARGV[1])
if type(added) == 'table' then
    local value = redis.pcall('GET', KEYS[1])
    if type(value) ~= 'string' then return added end
    if not string.find(value, holder) then return redis.error_reply(foreign) end
    alone = value == ARGV[1]
    if alone then
        left = -2
    elseif string.byte(value) ~= 115 then
        redis.call('DEL', KEYS[4])
        return {0, left, string.sub(value, 33)}
    elseif not string.find(added.err, 'WRONGTYPE', 1, true) then
        return added
    else
        redis.call('DEL', KEYS[1])
        redis.call('ZADD', KEYS[1], left < 0 and '+inf' or now + left, value, expiry, ARGV[1])
        if left >= 0 then redis.call('PEXPIRE', KEYS[1], math.max(left, 1)) end
        added = 1
    end
end
if added == 1 or added == 0 and tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1])) <= now then
    local writer = redis.call('PTTL', KEYS[3])
    if writer ~= -2 then
        redis.call('ZREM', KEYS[1], ARGV[1])
        local intent = redis.pcall('GET', KEYS[3])
        if type(intent) ~= 'string' or not string.find(intent, token) then return redis.error_reply(foreign) end
        return {0, writer, ''}
    end
end
if added == 0 then redis.call('ZADD', KEYS[1], 'XX', expiry, ARGV[1]) end
if limit > 0 and not alone then
    while sweep(KEYS[1], now, reader) == 1000 do end
    if redis.call('ZCARD', KEYS[1]) > limit then
        redis.call('ZREM', KEYS[1], ARGV[1])
        local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
        return {0, first[2] == 'inf' and -1 or math.max(first[2] - now, 0), string.sub(first[1], 34)}
    end
end
if ttl == 0 then redis.call('PERSIST', KEYS[1])
elseif left ~= -1 and left < ttl then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
local member = string.sub(ARGV[1], 2, 33) .. KEYS[1]
local refused = KEYS[5] and enter(KEYS[5], member, ttl)
local fence = refused or redis.pcall('INCRBY', KEYS[2], 1)
if type(fence) == 'table' then
    if alone then redis.call('DEL', KEYS[1]) else redis.call('ZREM', KEYS[1], ARGV[1]) end
    if KEYS[5] then leave(KEYS[5], member) end
    return fence
end
return {1, fence}
)lua";

// lock fence probe [index]; held-token token+owner ttl -> fence or 0
// A claim that has already adopted the lock is granted again. INCRBY is the first write, so that a server without
// memory refuses before anything has changed. Waiters sleep until the expiry that they know, so an earlier expiry is
// published.
constexpr std::string_view adopt = R"lua(
local value = redis.pcall('GET', KEYS[1])
local token = type(value) == 'string' and string.sub(value, 1, 32)
if token ~= ARGV[1] and token ~= string.sub(ARGV[2], 1, 32) then
    redis.call('DEL', KEYS[3])
    return 0
end
local fence = redis.call('INCRBY', KEYS[2], 1)
local left, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if KEYS[4] then
    local refused = enter(KEYS[4], string.sub(ARGV[2], 1, 32) .. KEYS[1], ttl)
    if refused then return refused end
    if token == ARGV[1] then leave(KEYS[4], token .. KEYS[1]) end
end
if ttl > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
if ttl > 0 and (left < 0 or left > ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return fence
)lua";

// lock probe; held-token token ttl -> 1 or 0
constexpr std::string_view adopt_plain = R"lua(
local value = redis.pcall('GET', KEYS[1])
if value ~= ARGV[1] and value ~= ARGV[2] then
    redis.call('DEL', KEYS[2])
    return 0
end
local left, ttl = redis.call('PTTL', KEYS[1]), tonumber(ARGV[3])
if ttl > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
if ttl > 0 and (left < 0 or left > ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return 1
)lua";

// lock fence probe [index]; s+held-token+owner s+token+owner ttl -> fence or 0
constexpr std::string_view adopt_shared = R"lua(
local ttl = tonumber(ARGV[3])
local function adopts(held)
    local fence = redis.call('INCRBY', KEYS[2], 1)
    if not KEYS[4] then return fence end
    local refused = enter(KEYS[4], string.sub(ARGV[2], 2, 33) .. KEYS[1], ttl)
    if refused then return nil, refused end
    if held == ARGV[1] then leave(KEYS[4], string.sub(held, 2, 33) .. KEYS[1]) end
    return fence
end
local value = redis.pcall('GET', KEYS[1])
if value == ARGV[1] or value == ARGV[2] then
    local fence, refused = adopts(value)
    if refused then return refused end
    local left = redis.call('PTTL', KEYS[1])
    if ttl > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) else redis.call('SET', KEYS[1], ARGV[2]) end
    if ttl > 0 and (left < 0 or left > ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
    return fence
end
redis.call('DEL', KEYS[3])
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then return 0 end
local strangers = look(KEYS[1], reader)
if strangers then return strangers end
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
local fence, refused = adopts(held)
if refused then return refused end
redis.call('ZADD', KEYS[1], ttl > 0 and now + ttl or '+inf', ARGV[2])
if held ~= ARGV[2] then redis.call('ZREM', KEYS[1], held) end
settle(KEYS[1], reader)
if ttl > 0 and (before == 'inf' or tonumber(before) > now + ttl) then redis.pcall('PUBLISH', KEYS[1], '') end
return fence
)lua";

// lock... fence; held-token next-token+owner ttl for each lock -> its fence or 0, for each lock
// A fence of a lock that is not held any more stays unused, which is harmless.
constexpr std::string_view hand_over = R"lua(
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

// lock probe[ index]; token -> 1 plus the number of notified clients, or 0
// If the user may not publish the message, the release still succeeds.
constexpr std::string_view release = R"lua(
if KEYS[3] then leave(KEYS[3], ARGV[1] .. KEYS[1]) end
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    local heard = redis.pcall('PUBLISH', KEYS[1], '')
    return type(heard) == 'number' and heard + 1 or 1
end
redis.call('DEL', KEYS[2])
return 0
)lua";

// lock... probe; token... -> the result of release for each lock
constexpr std::string_view release_many = R"lua(
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
        local heard = redis.pcall('PUBLISH', KEYS[i], '')
        if type(heard) == 'number' then answers[i] = heard + 1 end
    end
end
return answers
)lua";

// lock probe intent[ index]; token -> 1 or 0
// As release, for a writer that has stored an intent.
constexpr std::string_view withdraw = R"lua(
if KEYS[4] then leave(KEYS[4], ARGV[1] .. KEYS[1]) end
local value = redis.pcall('GET', KEYS[1])
local held = type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1]
local intended = redis.pcall('GET', KEYS[3]) == ARGV[1]
if held then redis.call('DEL', KEYS[1]) end
if intended then redis.call('DEL', KEYS[3]) end
if held or intended then redis.pcall('PUBLISH', KEYS[1], '') else redis.call('DEL', KEYS[2]) end
return held and 1 or 0
)lua";

// lock probe[ index]; s+token+owner ttl -> 1 or 0
// The removal of a member need not shorten the expiry of a set. The exception is a member without ttl, which has kept
// the set from expiring.
constexpr std::string_view release_shared = R"lua(
if KEYS[3] then leave(KEYS[3], string.sub(ARGV[1], 2, 33) .. KEYS[1]) end
local value = redis.pcall('GET', KEYS[1])
if value == ARGV[1] then
    redis.call('DEL', KEYS[1])
    redis.pcall('PUBLISH', KEYS[1], '')
    return 1
end
if type(value) == 'table' and redis.pcall('ZREM', KEYS[1], ARGV[1]) == 1 then
    local time = redis.call('TIME')
    sweep(KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), reader)
    if ARGV[2] == '0' then settle(KEYS[1], reader) end
    redis.pcall('PUBLISH', KEYS[1], '')
    return 1
end
redis.call('DEL', KEYS[2])
return 0
)lua";

// lock probe[ index]; token ttl -> 1 or 0
// Waiters sleep until the expiry that they know, so an earlier expiry is published.
constexpr std::string_view extend = R"lua(
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1] then
    local sooner = redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2])
    local extended = redis.call('PEXPIRE', KEYS[1], ARGV[2])
    if sooner then redis.pcall('PUBLISH', KEYS[1], '') end
    local refused = KEYS[3] and enter(KEYS[3], ARGV[1] .. KEYS[1], ARGV[2])
    return refused or extended
end
redis.call('DEL', KEYS[2])
return 0
)lua";

// lock probe[ index]; s+token+owner ttl -> 1 or 0
// DEL comes before ZADD, because Redis allows DEL when the server is out of memory, and then allows the writes after
// it.
constexpr std::string_view extend_shared = R"lua(
local function enter_if_grouped()
    return KEYS[3] and enter(KEYS[3], string.sub(ARGV[1], 2, 33) .. KEYS[1], ARGV[2])
end
local value = redis.pcall('GET', KEYS[1])
if value == ARGV[1] then
    local sooner = redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2])
    local extended = redis.call('PEXPIRE', KEYS[1], ARGV[2])
    if sooner then redis.pcall('PUBLISH', KEYS[1], '') end
    return enter_if_grouped() or extended
end
redis.call('DEL', KEYS[2])
local before = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
if type(before) ~= 'string' then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
sweep(KEYS[1], now, reader)
if tonumber(before) <= now then return 0 end
redis.call('ZADD', KEYS[1], 'XX', now + ARGV[2], ARGV[1])
local strangers = settle(KEYS[1], reader)
if strangers then return strangers end
if tonumber(before) > now + ARGV[2] then redis.pcall('PUBLISH', KEYS[1], '') end
return enter_if_grouped() or 1
)lua";

// lock probe; token -> 1 or 0
constexpr std::string_view valid = R"lua(
redis.call('DEL', KEYS[2])
local value = redis.pcall('GET', KEYS[1])
return type(value) == 'string' and string.sub(value, 1, 32) == ARGV[1] and 1 or 0
)lua";

// lock probe; s+token+owner -> 1 or 0
constexpr std::string_view valid_shared = R"lua(
redis.call('DEL', KEYS[2])
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'table' then return value == ARGV[1] and 1 or 0 end
local score = redis.pcall('ZSCORE', KEYS[1], ARGV[1])
local time = redis.call('TIME')
return type(score) == 'string' and tonumber(score) > time[1] * 1000 + time[2] / 1000 and 1 or 0
)lua";

// probe lock...; layout; handling of foreign values -> {key, 'x' or 's', value, remaining ms or -1} per live holder
// In the layout `plain` every string is a holder. Foreign values are an error for `refuse`, and are skipped otherwise.
constexpr std::string_view inspect = R"lua(
local plain, refuses = ARGV[1] == 'plain', ARGV[2] == 'refuse'
redis.call('DEL', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for i = 2, #KEYS do
    local kind = redis.call('TYPE', KEYS[i]).ok
    if kind == 'string' then
        local value = redis.call('GET', KEYS[i])
        if plain or string.find(value, holder) then
            local mode = string.byte(value) == 115 and 's' or 'x'
            found[#found + 1] = {KEYS[i], mode, value, redis.call('PTTL', KEYS[i])}
        elseif refuses then
            return redis.error_reply(foreign)
        end
    elseif kind == 'zset' and not plain then
        local strangers = look(KEYS[i], reader)
        if strangers and refuses then return strangers end
        local members = strangers and {} or redis.call('ZRANGE', KEYS[i], 0, -1, 'WITHSCORES')
        for m = 1, #members, 2 do
            local score = members[m + 1]
            local remaining = score == 'inf' and -1 or score - now
            if (score == 'inf' or remaining > 0) and string.find(members[m], reader) then
                found[#found + 1] = {KEYS[i], 's', members[m], remaining}
            end
        end
    elseif refuses and kind ~= 'none' then
        return redis.error_reply(foreign)
    end
end
return found
)lua";

// lock probe; prefix of the index keys, value... -> as inspect, for the holders that were removed
// Removes only the holders that were listed by inspect before, because the request may be executed long after the
// listing. A reader that was alone may have become a member of a set since. The group's index must not keep a removed
// holder: the process of the holder may have ended, and then the entry of a lock without ttl would stay forever.
constexpr std::string_view break_holders = R"lua(
redis.call('DEL', KEYS[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
local function removed(value, mode, remaining)
    found[#found + 1] = {KEYS[1], mode, value, remaining}
    local first = mode == 's' and 2 or 1
    local group = ARGV[1] ~= '' and string.match(value, '%z([^%z]+)$')
    if group then leave(ARGV[1] .. group, string.sub(value, first, first + 31) .. KEYS[1]) end
end
local value = redis.pcall('GET', KEYS[1])
for i = 2, value and #ARGV or 1 do
    if value == ARGV[i] then
        local remaining = redis.call('PTTL', KEYS[1])
        redis.call('DEL', KEYS[1])
        removed(value, string.byte(value) == 115 and 's' or 'x', remaining)
        break
    elseif type(value) == 'table' and ARGV[1] ~= '' then
        local score = redis.pcall('ZSCORE', KEYS[1], ARGV[i])
        if type(score) == 'string' then
            redis.call('ZREM', KEYS[1], ARGV[i])
            if score == 'inf' then removed(ARGV[i], 's', -1)
            elseif tonumber(score) > now then removed(ARGV[i], 's', score - now) end
        end
    end
end
if #found > 0 then
    if type(value) == 'table' then
        sweep(KEYS[1], now, reader)
        settle(KEYS[1], reader)
    end
    redis.pcall('PUBLISH', KEYS[1], '')
end
return found
)lua";

// probe lock...; limit -> as inspect, for the holders that were removed
constexpr std::string_view sweep = R"lua(
redis.call('DEL', KEYS[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for i = 2, #KEYS do
    local refused, first = look(KEYS[i], reader)
    if #found < tonumber(ARGV[1]) and not refused and first and tonumber(first) <= now then
        local members = redis.call('ZRANGEBYSCORE', KEYS[i], '-inf', now, 'LIMIT', 0, ARGV[1] - #found)
        for m = 1, #members do
            if string.find(members[m], reader) then
                redis.call('ZREM', KEYS[i], members[m])
                found[#found + 1] = {KEYS[i], 's', members[m], 0}
            end
        end
    end
end
return found
)lua";

} // namespace lua

} // namespace

script::script(std::string text) : text_(std::move(text)), digest_(sha1_hex(text_)) {}

const scripts& scripts::get()
{
    const auto of_forms = [](std::string_view text) { return script(std::string(form_functions) += text); };
    const auto of_groups = [](std::string_view text) {
        return script((std::string(form_functions) += group_functions) += text);
    };
    static const scripts all{
        script(std::string(lua::rights)),
        script(std::string(lua::anchor)),
        of_groups(lua::acquire),
        script(std::string(lua::acquire_plain)),
        of_groups(lua::acquire_shared),
        of_groups(detail::acquire_all),
        of_groups(lua::adopt),
        script(std::string(lua::adopt_plain)),
        of_groups(lua::adopt_shared),
        script(std::string(lua::hand_over)),
        of_groups(lua::release),
        script(std::string(lua::release_many)),
        of_groups(lua::withdraw),
        of_groups(lua::release_shared),
        of_groups(lua::extend),
        of_groups(lua::extend_shared),
        script(std::string(lua::valid)),
        script(std::string(lua::valid_shared)),
        of_forms(lua::inspect),
        of_groups(lua::break_holders),
        of_forms(lua::sweep),
        of_groups(detail::release_members),
        of_groups(detail::act_on_members),
    };
    return all;
}

} // namespace colock::redis::detail
