// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string_view>

namespace colock::inline v0::redis::detail::lua {

// Functions that maintain the index of a group. The index is a sorted set of the holders. Each member is a token
// followed by the key of its lock. The index is written by the script that grants the lock. An entry lasts a second
// longer than its lock, so the index may contain expired holders, but it misses no current one.

// Prepended, after form_functions, to each script that grants, extends or releases locks of a group. A script does
// nothing else with an index, and nothing at all if it has no key of an index:
// - index_add: adds members to the index; members and ttls alternate in the arguments. Called after the first write.
//   Returns an error if the write to the index fails.
// - index_remove: removes members from the index.
inline constexpr std::string_view group_functions = R"lua(
local function index_add(index, ...)
    local refused, first = check_form(index, entry, entry)
    if refused then return refused end
    local time = redis.pcall('TIME')
    if time.err then return time end
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
    if first and first <= now then sweep(index, now, entry, entry) end
    return update_expiry(index, entry, entry)
end
local function index_remove(index, ...)
    local removed = redis.pcall('ZREM', index, ...)
    if type(removed) == 'number' and removed > 0 then update_expiry(index, entry, entry) end
end
)lua";

} // namespace colock::inline v0::redis::detail::lua
