// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Functions that maintain the index of a group, and the script that acts on its holders. The index is a sorted set of
// the holders. Each member is a token followed by the key of its lock. The index is written by the script that grants
// the lock. An entry lasts a second longer than its lock, so the index may contain expired holders, but it misses no
// current one.

// Prepended, after form_functions, to each script that grants, extends or releases locks of a group.
// update_expiry: sets the expiry of a sorted set to that of its last member. Returns an error if that member has
// another form or the user may not set the expiry. index_add: adds members to the index; members and ttls alternate in
// the arguments. Called after the first write. Returns an error if it fails. index_remove: removes members from the
// index.
inline constexpr std::string_view group_functions = R"lua(
local function update_expiry(set, form)
    local last = redis.pcall('ZRANGE', set, -1, -1, 'WITHSCORES')
    if last.err then return last end
    if not last[1] then return end
    if not string.find(last[1], form) then return redis.error_reply(foreign) end
    local set_to = last[2] == 'inf' and redis.pcall('PERSIST', set) or redis.pcall('PEXPIREAT', set, last[2])
    if type(set_to) == 'table' then return set_to end
end
local function index_add(index, ...)
    local refused, first = check_form(index, entry)
    if refused then return refused end
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local entries = {...}
    local words = {}
    for i = 1, #entries, 2 do
        local ttl = tonumber(entries[i + 1])
        words[i] = ttl > 0 and now + ttl + 1000 or '+inf'
        words[i + 1] = entries[i]
    end
    local added = redis.pcall('ZADD', index, unpack(words))
    if type(added) == 'table' then return added end
    if first and tonumber(first) <= now then sweep(index, now, entry) end
    return update_expiry(index, entry)
end
local function index_remove(index, ...)
    local removed = redis.pcall('ZREM', index, ...)
    if type(removed) == 'number' and removed > 0 then update_expiry(index, entry) end
end
)lua";

// index probe lock...; what ttl token... -> as inspect, for the locks that are still held
// what: check, release or extend. Locks without a ttl are returned with -1 and not extended. No remaining time is
// shortened.
inline constexpr std::string_view act_on_members = R"lua(
redis.call('DEL', KEYS[2])
local refused = check_form(KEYS[1], entry)
if refused then return refused end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local what, ttl = ARGV[1], tonumber(ARGV[2])
local readers = {}
local function readers_of(lock)
    if readers[lock] then return readers[lock] end
    local known = {}
    if redis.call('TYPE', lock).ok == 'zset' and not check_form(lock, reader) then
        local members = redis.call('ZRANGE', lock, 0, -1, 'WITHSCORES')
        for m = 1, #members, 2 do
            local token = string.sub(members[m], 2, 33)
            if members[m + 1] == 'inf' then known[token] = {lock, 's', members[m], -1}
            elseif tonumber(members[m + 1]) > now then
                known[token] = {lock, 's', members[m], members[m + 1] - now}
            end
        end
    end
    readers[lock] = known
    return known
end
local found, released, extended = {}, {}, {}
for i = 3, #KEYS do
    local lock, token = KEYS[i], ARGV[i]
    local value = redis.pcall('GET', lock)
    local alone = type(value) == 'string'
    local held
    if alone then
        local mode = string.byte(value) == 115 and 's' or 'x'
        local first = mode == 's' and 2 or 1
        if string.sub(value, first, first + 31) == token then
            held = {lock, mode, value, redis.call('PTTL', lock)}
        end
    elseif value then
        held = readers_of(lock)[token]
    end
    if held then found[#found + 1] = held end
    if what == 'release' then
        released[#released + 1] = token .. lock
        if held then
            if alone then
                redis.call('DEL', lock)
            else
                redis.call('ZREM', lock, held[3])
                sweep(lock, now, reader)
                update_expiry(lock, reader)
            end
            redis.pcall('PUBLISH', lock, '')
        end
    elseif what == 'extend' and held and held[4] >= 0 and held[4] < ttl then
        if alone then
            redis.call('PEXPIRE', lock, ttl)
        else
            redis.call('ZADD', lock, 'XX', now + ttl, held[3])
            update_expiry(lock, reader)
        end
        extended[#extended + 1] = token .. lock
        extended[#extended + 1] = ttl
    end
end
if #released > 0 then index_remove(KEYS[1], unpack(released)) end
if #extended > 0 then index_add(KEYS[1], unpack(extended)) end
return found
)lua";

} // namespace colock::inline v0::redis::detail::lua
